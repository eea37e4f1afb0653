"""Generations: which spec a status and its conditions describe, in each version of Kubernetes."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    average,
    external,
    hpa,
    observe,
    run,
    series,
    unreadable,
)
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

QUEUE = external(average(100))


def status_at(generation, observed, rules, **fields):
    """Decide on a spec of a generation, with a status that describes another."""
    status = HorizontalPodAutoscalerStatus(observed_generation=observed)
    seen = observe(hpa(QUEUE, metadata={"generation": generation}, status=status), 4, series(400), **fields)
    return run(msgspec.structs.replace(seen, rules=rules)).status


@pytest.mark.parametrize(
    ("rules", "generation", "observed", "want", "without_scale"),
    [
        pytest.param(Rules.KUBERNETES_1_36, 5, None, None, None, id="1.36 does not set it"),
        pytest.param(Rules.KUBERNETES_1_36, 5, 4, None, 4, id="1.36 drops what another controller set"),
        pytest.param(Rules.KUBERNETES_1_37, 5, 4, 5, 4, id="1.37 sets it with each new status"),
        pytest.param(Rules.KUBERNETES_1_37, 0, None, 0, None, id="1.37 sets 0 where there is no generation"),
        pytest.param(Rules.TRIMTAB, 5, 4, 5, 5, id="ours sets it always"),
        pytest.param(Rules.TRIMTAB, 0, None, None, None, id="ours needs a generation"),
        pytest.param(Rules.TRIMTAB, 0, 3, 3, 3, id="ours keeps it without a generation"),
    ],
)
def test_the_status_names_the_generation_that_was_decided_on(
    rules, generation, observed, want, without_scale
):
    assert status_at(generation, observed, rules).observed_generation == want
    assert status_at(generation, observed, rules, scale=None).observed_generation == without_scale


def generations(status):
    return {condition.type: condition.observed_generation for condition in status.conditions}


def test_each_condition_names_the_generation_that_it_describes():
    first = run(observe(hpa(QUEUE, metadata={"generation": 4}), 4, series(400)))
    assert set(generations(first.status).values()) == {4}
    # The new spec's metric cannot be read, so nothing is known about its limits.
    changed = hpa(QUEUE, metadata={"generation": 5}, status=first.status)
    second = run(observe(changed, 4, unreadable()), NOW + timedelta(seconds=15))
    found = generations(second.status)
    assert (found["ScalingActive"], found["AbleToScale"], found["ScalingLimited"]) == (5, 5, 4)


@pytest.mark.parametrize("rules", [Rules.KUBERNETES_1_36, Rules.KUBERNETES_1_37], ids=["1.36", "1.37"])
def test_upstream_sets_no_generation_of_conditions_and_keeps_those_of_others(rules):
    first = run(observe(hpa(QUEUE), 4, series(400)))
    status = msgspec.structs.replace(
        first.status,
        conditions=tuple(
            msgspec.structs.replace(condition, observed_generation=9) for condition in first.status.conditions
        ),
    )
    seen = observe(hpa(QUEUE, metadata={"generation": 10}, status=status), 4, unreadable(), rules=rules)
    assert set(generations(run(seen).status).values()) == {9}
    fresh = observe(hpa(QUEUE, status=HorizontalPodAutoscalerStatus()), 4, series(400), rules=rules)
    assert set(generations(run(fresh).status).values()) == {None}


def test_a_server_that_drops_the_generation_of_conditions_is_not_written_to_in_every_sync():
    """Kubernetes 1.36 prunes the field; comparing with what it stored must not find a difference."""
    first = run(observe(hpa(QUEUE), 4, series(400)))
    pruned = msgspec.structs.replace(
        first.status,
        conditions=tuple(
            msgspec.structs.replace(condition, observed_generation=None)
            for condition in first.status.conditions
        ),
    )
    assert not decide(observe(hpa(QUEUE, status=pruned), 4, series(400)), NOW).status_changed
    assert not decide(observe(hpa(QUEUE, status=first.status), 4, series(400)), NOW).status_changed
    changed = hpa(QUEUE, metadata={"generation": 2}, status=pruned)
    assert decide(observe(changed, 4, series(400)), NOW).status_changed


@pytest.mark.parametrize(
    "rules", [Rules.TRIMTAB, Rules.KUBERNETES_1_36, Rules.KUBERNETES_1_37], ids=["ours", "1.36", "1.37"]
)
def test_an_active_strategy_is_announced_once_per_generation_whatever_the_status_names(rules):
    """Under 1.36 no status names a generation, and the event came in every sync."""
    chosen = hpa(QUEUE, selection_strategy="OwnerReference", metadata={"generation": 3})
    seen = observe(chosen, 4, series(400), pods=(), rules=rules)
    first = run(seen)
    again = msgspec.structs.replace(
        seen, hpa=msgspec.structs.replace(chosen, status=first.status), memory=first.memory
    )
    assert "SelectionStrategyActive" in [event.reason for event in first.events]
    assert "SelectionStrategyActive" not in [event.reason for event in run(again).events]


def test_a_strategy_that_an_annotation_brings_is_announced_without_a_new_generation():
    """An annotation of a native HPA changes no generation."""
    memory = msgspec.structs.replace(observe(hpa(QUEUE), 4).memory, strategy="LabelSelector")
    seen = observe(hpa(QUEUE, selection_strategy="OwnerReference"), 4, series(400), pods=(), memory=memory)
    assert [event.reason for event in run(seen).events] == ["StrategyChanged", "SelectionStrategyActive"]
