"""Usage alone shows that a decision still holds only where a whole comparison shows it, and a look asks the same."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import NOW, cpu, hpa, memory, observe, pods, run, scale
from tests.unit.operator.horizontal.fakes import no_rivals
from tests.unit.operator.horizontal.test_usage import listed
from trimtab.clock import VirtualClock
from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.observation.observation import StaleInput
from trimtab.model.times import format_time, from_ns, to_ns
from trimtab.operator.horizontal.config import DecisionConfig
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.horizontal.observe import InputCaches, SnapshotBuilder
from trimtab.operator.horizontal.pods import MatchedPods, PodMatcher
from trimtab.operator.horizontal.queries import MetricQueries, build_queries, query_for
from trimtab.operator.horizontal.targets import ResolvedTarget
from trimtab.operator.horizontal.usage import ALL_NAMESPACES, ClusterUsage

UNUSED: Any = None
"""A collaborator that these tests do not need."""

CALM = {"cpu": "50m", "memory": "0"}


def samples(chosen, usages, age, namespace):
    date = format_time(from_ns(to_ns(NOW) + int((15 - age) * 1e9)))
    usage = {pod.name: [used] for pod, used in zip(chosen, usages, strict=True) if used is not None}
    listing = ClusterUsage(listed(usage, date, namespace))
    for found in listing.namespaces.values():
        found.moved_at = -age
    return {ALL_NAMESPACES: listing}


class Life:
    """One HPA that was decided on calm usage, 15 seconds before its next sync."""

    def __init__(self, metrics) -> None:
        self.stale: tuple[StaleInput, ...] = ()
        self.hpa = hpa(*metrics)
        self.pods = pods(4)
        self.state = HpaState(OWN_HPAS, self.hpa)
        self.target = ResolvedTarget(served=None, scale=scale(4))
        config = DecisionConfig(*(getattr(observe(), name) for name in ("settings", "gates", "rules")))
        matcher = PodMatcher(config.gates, UNUSED, UNUSED, UNUSED)
        ownership: Any = self
        self.snapshots = SnapshotBuilder(
            VirtualClock(NOW),
            config,
            ownership,
            InputCaches(UNUSED, matcher, UNUSED, self.freshness(), UNUSED, no_rivals()),
            UNUSED,
        )
        self.settle()

    def freshness(self) -> Any:
        life = self

        class Known:
            def stale_inputs(self, _resource, _hpa, *, is_target_read):
                return life.stale

        return Known()

    @property
    def queries(self) -> MetricQueries:
        namespace = self.hpa.metadata.namespace
        per_metric = [query_for(metric, namespace, "app=web") for metric in self.hpa.spec.metrics]
        return build_queries(self.hpa, self.target, tuple(query for query in per_metric if query))

    def settle(self, calm=None) -> None:
        calm = calm or samples(self.pods, [CALM] * 4, 20, self.hpa.metadata.namespace)
        for _ in range(2):
            decision = run(self.observe(self.pods, calm))
            self.state.memory.keep(decision.memory)
            self.hpa = msgspec.structs.replace(self.hpa, status=decision.status)
            self.state.replace_hpa(self.hpa, "")
        observation = self.observe(self.pods, calm)
        self.state.record_decision(Record(observation=observation, decision=run(observation)), 0.0)

    def observe(self, chosen, fetched):
        return self.snapshots.observe(
            self.state,
            self.queries,
            MatchedPods(chosen, ()),
            fetched,
            {},
            self.state.memory.own,
            NOW.timestamp(),
        )

    def is_standing(self, chosen, fetched):
        now = NOW.timestamp() + 15
        found = self.snapshots.values_within(self.state, self.queries, MatchedPods(chosen, ()), fetched, now)
        return found is not None

    def is_worth_a_look(self, fetched):
        return self.snapshots.is_worth_a_look(self.state, self.queries, fetched)

    def epoch_for(self, _key):
        return self.state.memory.epoch


@given(
    st.sampled_from([[cpu(50)], [cpu(50), memory(50)]]),
    st.lists(
        st.sampled_from([CALM, CALM, CALM, {"cpu": "51m", "memory": "0"}, {"cpu": "x"}, None]),
        min_size=4,
        max_size=4,
    ),
    st.sampled_from([0.0, 20.0, 200.0, 1e6]),
    st.sampled_from([4, 4, 4, 3]),
    st.booleans(),
)
def test_usage_alone_shows_it_only_where_the_whole_comparison_does(metrics, usages, age, many, is_stale):
    life = Life(metrics)
    life.stale = (StaleInput(input="pods", message="pods"),) if is_stale else ()
    fetched, chosen = samples(life.pods, usages, age, life.hpa.metadata.namespace), life.pods[:many]
    last = life.state.standing
    whole = last is not None and last.holds(life.observe(chosen, fetched), NOW.timestamp() + 15)
    assert whole or not life.is_standing(chosen, fetched)


@pytest.mark.parametrize("metrics", [[cpu(50)], [cpu(50), memory(50)]])
@pytest.mark.parametrize(
    ("last_pod", "is_standing"),
    [
        pytest.param(CALM, True, id="the same usage"),
        pytest.param({"cpu": "51m", "memory": "0"}, False, id="another usage of one pod"),
        pytest.param(None, False, id="no sample of one pod"),
    ],
)
def test_usage_that_stays_the_same_needs_no_observation(metrics, last_pod, is_standing):
    life = Life(metrics)
    fetched = samples(life.pods, [CALM] * 3 + [last_pod], 20, life.hpa.metadata.namespace)
    assert life.is_standing(life.pods, fetched) is is_standing
    life.stale = (StaleInput(input="pods", message="pods"),)
    assert not life.is_standing(life.pods, fetched)


@pytest.mark.parametrize(
    ("usage", "is_inside"),
    [(184, True), (220, True), (183, False), (221, False)],
    ids=["at its lower edge", "at its upper edge", "just below", "just above"],
)
def test_a_look_leaves_alone_what_is_within_its_band(usage, is_inside):
    life = Life([cpu(50)])
    shares = [{"cpu": f"{usage // 4 + (place < usage % 4)}m", "memory": "0"} for place in range(4)]
    fetched = samples(life.pods, shares, 20, life.hpa.metadata.namespace)
    assert life.is_worth_a_look(fetched) is not is_inside
    assert not life.is_standing(life.pods, fetched), "a sync shows the new values"


@pytest.mark.parametrize(
    ("cpu_milli", "memory_bytes", "is_inside"),
    [
        pytest.param(50, 500_000, True, id="both at their target"),
        pytest.param(90, 500_000, False, id="only the first above it"),
        pytest.param(50, 900_000, False, id="only the second above it"),
    ],
)
def test_one_of_two_metrics_outside_its_band_is_decided_about(cpu_milli, memory_bytes, is_inside):
    life = Life([cpu(50), memory(50)])
    at_target = samples(life.pods, [{"cpu": "50m", "memory": "500"}] * 4, 20, life.hpa.metadata.namespace)
    life.settle(at_target)
    shares = [{"cpu": f"{cpu_milli + place % 2}m", "memory": f"{memory_bytes // 1000}"} for place in range(4)]
    fetched = samples(life.pods, shares, 20, life.hpa.metadata.namespace)
    assert life.is_worth_a_look(fetched) is not is_inside
