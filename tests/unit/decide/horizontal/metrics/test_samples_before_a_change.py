"""Samples from before a scale-down: the pods that carried the load count, for the kinds that multiply pods (R4-3)."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.decide.horizontal.builders import (
    OWNER,
    T,
    average,
    behavior,
    cpu,
    external,
    hpa,
    object_metric,
    observe,
    pods,
    pods_metric,
    rules,
    run,
    series,
    usage_of,
    value,
)
from trimtab.decide.horizontal.memory import Memory, Recommendation, ScaleEvent
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome, times
from trimtab.decide.horizontal.observation.samples import Move
from trimtab.decide.horizontal.reasons import Code
from trimtab.decide.horizontal.rules import Rules

PROPOSED, BEFORE = ProposalOutcome.PROPOSED, ProposalOutcome.MEASURED_BEFORE
AT_ONCE = behavior(down=rules(("Percent", 100, 15), window=0))


@pytest.mark.parametrize(
    ("ratio", "pods", "removed", "current", "want"),
    [
        pytest.param(0.5, 4, 0, 4, (2, PROPOSED), id="nothing was removed"),
        pytest.param(0.5, 4, 4, 4, (4, BEFORE), id="8 pods carried half a load each"),
        pytest.param(0.25, 4, 4, 4, (2, PROPOSED), id="even 8 pods had too little to do"),
        pytest.param(0.7, 4, 9, 4, (4, BEFORE), id="never more than there are"),
        pytest.param(1.5, 4, 4, 4, (6, PROPOSED), id="growth is upstream's"),
        pytest.param(0.5, 9, 4, 4, (5, PROPOSED), id="nor less than upstream asks for"),
    ],
)
def test_a_ratio_below_1_is_multiplied_by_the_pods_that_carried_the_load(ratio, pods, removed, current, want):
    assert times(ratio, pods, removed, current)[:2] == want


def dated(samples: Any, lacked: float | None) -> Any:
    """Return samples of which the last list without them was asked for `lacked` seconds ago."""
    before = None if lacked is None else T - lacked
    return replace(samples, moves=(Move(T - 20, T, before),))


def removed(ago, number=4):
    return Memory(
        owner=OWNER, recommendations=(Recommendation(4, T - 600),), scale_down=(ScaleEvent(number, T - ago),)
    )


METRICS = {
    "Resource": (cpu(50), usage_of(pods(4), 25)),
    "Pods": (pods_metric("100m"), usage_of(pods(4), 50)),
    "Object by value": (object_metric(value(100)), series(50)),
    "External by value": (external(value(100)), series(50)),
}


@pytest.mark.parametrize("kind", METRICS)
def test_half_the_load_on_pods_of_which_half_are_gone_changes_nothing(kind):
    metric, samples = METRICS[kind]
    seen = observe(
        hpa(metric, behavior=AT_ONCE), 4, dated(samples, 2.0), pods=pods(4), memory=removed(ago=1.0)
    )
    decision = run(seen)
    assert (decision.desired, decision.reason.code) == (4, Code.MEASURED_BEFORE)
    assert run(replace(seen, memory=removed(ago=120.0))).desired == 2
    assert run(replace(seen, rules=Rules.KUBERNETES_1_37)).desired == 2, "upstream lowers once more"


@pytest.mark.parametrize("metric", [external(average(100)), object_metric(average(100))])
def test_a_total_that_replicas_share_multiplies_no_pods(metric):
    seen = observe(hpa(metric, behavior=AT_ONCE), 4, dated(series(150), 2.0), memory=removed(ago=1.0))
    assert run(seen).desired == 2


@pytest.mark.parametrize(
    ("lacked", "ago", "want"),
    [
        pytest.param(
            10.0, 39.0, 4, id="its window of 15 s and a delay of 15 s before the last list without it"
        ),
        pytest.param(10.0, 41.0, 2, id="the change came before that"),
        pytest.param(None, 34.0, 4, id="a date that never moved says itself when it was taken"),
        pytest.param(None, 36.0, 2, id="and when it began"),
    ],
)
def test_a_sample_began_before_the_last_list_without_it(lacked, ago, want):
    seen = observe(
        hpa(cpu(50), behavior=AT_ONCE),
        4,
        dated(usage_of(pods(4), 25), lacked),
        pods=pods(4),
        memory=removed(ago),
    )
    assert run(seen).desired == want


def test_the_earliest_sample_counts():
    samples = usage_of(pods(4), 25)
    late = {name: replace(sample, timestamp=T - 1) for name, sample in list(samples.samples.items())[1:]}
    moves = (Move(T - 20, T - 60, T - 62), Move(T - 1, T - 1, T - 2))
    mixed = replace(samples, samples={**samples.samples, **late}, moves=moves)
    seen = observe(hpa(cpu(50), behavior=AT_ONCE), 4, mixed, pods=pods(4), memory=removed(ago=70.0))
    assert run(seen).desired == 4


def test_what_was_added_since_does_not_count():
    """Replicas went 4, 8, 4 since the sample began: it is about 4."""
    memory = replace(removed(ago=1.0), scale_up=(ScaleEvent(4, T - 2.0),))
    seen = observe(
        hpa(cpu(50), behavior=AT_ONCE), 4, dated(usage_of(pods(4), 25), 5.0), pods=pods(4), memory=memory
    )
    assert run(seen).desired == 2
