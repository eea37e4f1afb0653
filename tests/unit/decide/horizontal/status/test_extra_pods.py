"""The advice that a selector matches more pods than its target has."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    UPSTREAM,
    average,
    condition,
    cpu,
    explained,
    external,
    hpa,
    observe,
    pod,
    run,
    samples,
    scale,
    series,
)
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, HpaCondition

ADVICE = "SelectorMatchesExtraPods"
TOLD = HorizontalPodAutoscalerStatus(
    conditions=(HpaCondition(type=ADVICE, status="True", reason="SelectorOverlap", message="2 more"),)
)
OURS = (pod("web-1"), pod("web-2"))
FOREIGN = pod("scrape-1")


def seen(*pods, replicas=2, running=None, **spec):
    """What is seen of a workload with so many replicas of which so many run, all pods at their target."""
    autoscaler = hpa(cpu(50), **spec)
    found = observe(autoscaler, replicas, samples({one.name: 50 for one in pods}), pods=pods)
    if running is None:
        return found
    return msgspec.structs.replace(found, scale=scale(replicas, seen=running))


@pytest.mark.parametrize(
    ("observation", "extra"),
    [
        pytest.param(seen(*OURS), 0, id="as many pods as replicas"),
        pytest.param(seen(*OURS, FOREIGN), 1, id="a Job's pod has the labels"),
        pytest.param(seen(*OURS, pod("done", phase="Succeeded")), 0, id="a pod that has ended is not active"),
        pytest.param(seen(*OURS, pod("bad", phase="Failed")), 0, id="nor is one that failed"),
        pytest.param(seen(*OURS, pod("going", is_deleted=True)), 0, id="nor is one that is being deleted"),
        pytest.param(seen(*OURS, pod("new"), replicas=3, running=2), 0, id="the status lags while it grows"),
        pytest.param(seen(*OURS, pod("surge"), running=3), 0, id="a rollout surges"),
        pytest.param(seen(*OURS, pod("surge"), FOREIGN, running=3), 1, id="a rollout hides nobody"),
        pytest.param(seen(*OURS, FOREIGN, status=TOLD), 1, id="it stays as long as it is true"),
    ],
)
def test_active_pods_beyond_the_replicas_are_told(observation, extra):
    decision = run(observation)
    told = condition(decision, ADVICE)
    assert (told is not None) == bool(extra)
    assert explained(observation).pods_extra == extra
    if told is not None:
        assert (told.status, told.reason) == ("True", "SelectorOverlap")
        assert f", {extra} more than the target has" in told.message
        assert f", {extra} more than the target has" in str(explained(observation))


def test_it_is_taken_away_when_it_is_no_longer_true():
    decision = run(seen(*OURS, status=TOLD))
    assert condition(decision, ADVICE) is None
    assert decision.status_changed


def test_it_is_not_there_where_owners_decide_what_counts():
    assert (
        condition(run(seen(*OURS, FOREIGN, status=TOLD, selection_strategy="OwnerReference")), ADVICE) is None
    )


def test_it_is_not_there_while_paused_at_zero():
    queue = external(average("10"))
    paused = observe(hpa(queue, status=TOLD), 0, series(50), pods=(FOREIGN,))
    assert condition(run(paused), ADVICE) is None


def test_it_changes_no_number_and_tells_no_event():
    told = run(seen(*OURS, FOREIGN))
    without = run(msgspec.structs.replace(seen(*OURS, FOREIGN), rules=UPSTREAM))
    assert (told.desired, told.events) == (without.desired, without.events)
    assert condition(without, ADVICE) is None
