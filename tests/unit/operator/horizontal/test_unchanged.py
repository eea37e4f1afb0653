"""Seeing from usage alone that a decision would repeat itself never says so where a whole comparison would not."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import NOW, cpu, hpa, memory, observe, pods, run, scale
from tests.unit.operator.horizontal.inputs.test_pod_usage import listed
from trimtab.decide.horizontal.records.unchanged import steady
from trimtab.model.times import format_time, from_ns, to_ns
from trimtab.operator.horizontal.inputs.hpa_cache import HpaState
from trimtab.operator.horizontal.inputs.kinds import OWN_HPAS
from trimtab.operator.horizontal.inputs.metric_queries import queries_for_hpa, query_for
from trimtab.operator.horizontal.inputs.pod_usage import ALL_NAMESPACES, ClusterUsage
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget
from trimtab.operator.horizontal.snapshot import DecisionConfig, MatchedPods, SnapshotBuilder

NOBODY: Any = None
"""What an observer is not asked for here."""

CALM = {"cpu": "50m", "memory": "0"}


def answers(chosen, usages, age, namespace):
    date = format_time(from_ns(to_ns(NOW) + int((15 - age) * 1e9)))
    said = {pod.name: [used] for pod, used in zip(chosen, usages, strict=True) if used is not None}
    return {ALL_NAMESPACES: ClusterUsage(listed(said, date, namespace))}


class Life:
    """One HPA that decided once on calm usage, and is about to look again fifteen seconds later."""

    def __init__(self, metrics) -> None:
        self.hpa = hpa(*metrics)
        self.pods = pods(4)
        self.autoscaler = HpaState(OWN_HPAS, self.hpa)
        self.aim = ResolvedTarget(served=None, scale=scale(4))
        rules = DecisionConfig(*(getattr(observe(), name) for name in ("settings", "gates", "compat")))
        self.observer = SnapshotBuilder(rules, NOBODY, NOBODY, NOBODY, NOBODY)
        place = self.hpa.metadata.namespace
        asked = [query_for(spec, place, "app=web") for spec in self.hpa.spec.metrics]
        self.autoscaler.questions = tuple(one for one in asked if one is not None)
        self.plan = queries_for_hpa(self.hpa, self.aim, self.autoscaler.questions)
        self.settle()

    def settle(self) -> None:
        calm = answers(self.pods, [CALM] * 4, 20, self.hpa.metadata.namespace)
        for _ in range(2):
            seen = self.see(self.pods, calm)
            decision = run(seen)
            self.autoscaler.memory.own = decision.memory
            self.hpa = msgspec.structs.replace(self.hpa, status=decision.status)
            self.autoscaler.hpa = self.hpa
        self.plan = queries_for_hpa(self.hpa, self.aim, self.autoscaler.questions)
        seen = self.see(self.pods, calm)
        self.autoscaler.steady = steady(seen, run(seen))

    def see(self, chosen, told):
        return self.observer.observe(self.autoscaler, self.aim, MatchedPods(chosen, ()), told, {})


@given(
    st.sampled_from([[cpu(50)], [cpu(50), memory(50)]]),
    st.lists(
        st.sampled_from([CALM, CALM, CALM, {"cpu": "51m", "memory": "0"}, {"cpu": "x"}, None]),
        min_size=4,
        max_size=4,
    ),
    st.sampled_from([0.0, 20.0, 200.0, 1e6]),
    st.sampled_from([4, 4, 4, 3]),
)
def test_it_says_so_only_where_the_whole_comparison_does(metrics, usages, age, many):
    life = Life(metrics)
    told = answers(life.pods, usages, age, life.hpa.metadata.namespace)
    now = NOW.timestamp() + 15
    sight = MatchedPods(life.pods[:many], ())
    quick = life.observer.repeats(life.autoscaler, life.plan, sight, told, now)
    held = life.autoscaler.steady
    whole = held is not None and held.covers(life.see(sight.pods, told), now)
    assert whole or not quick


@pytest.mark.parametrize("metrics", [[cpu(50)], [cpu(50), memory(50)]])
def test_usage_that_stays_the_same_is_seen_without_an_observation(metrics):
    life = Life(metrics)
    told = answers(life.pods, [CALM] * 4, 20, life.hpa.metadata.namespace)
    now = NOW.timestamp() + 15
    assert life.observer.repeats(life.autoscaler, life.plan, MatchedPods(life.pods, ()), told, now)
    told = answers(life.pods, [CALM] * 3 + [{"cpu": "51m", "memory": "0"}], 20, life.hpa.metadata.namespace)
    assert not life.observer.repeats(life.autoscaler, life.plan, MatchedPods(life.pods, ()), told, now)
