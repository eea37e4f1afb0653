"""While a cache is stale replicas are not lowered, everything else is decided, and the user is told why."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    UPSTREAM,
    average,
    external,
    hpa,
    marked,
    observe,
    run,
    series,
    unreadable,
)
from trimtab.decide.horizontal.observation.observation import ScaleFailure, StaleInput
from trimtab.decide.horizontal.reasons import Code
from trimtab.decide.horizontal.standing import find_standing

QUEUE = external(average(100))
PODS = StaleInput(input="pods", message="pods of namespace shop: no sign from the server for more than 60 s")
TARGET = StaleInput(input="target", message="deployments: deployments.apps is forbidden")
OWN = StaleInput(input="hpa", message="horizontalpodautoscalers: no sign from the server for more than 60 s")
EACH = [pytest.param(cache, id=cache.input) for cache in (PODS, TARGET, OWN)]


def told(decision):
    return [event.reason for event in decision.events]


@pytest.mark.parametrize("cache", EACH)
def test_replicas_are_not_lowered_and_the_condition_names_the_cache(cache):
    decision = run(observe(hpa(QUEUE), 4, series(100), stale_inputs=(cache,), settings=NO_WINDOW))
    assert decision.desired == 4
    assert decision.scale_to is None
    condition = decision.status.condition("CachesStale")
    assert (condition.status, condition.reason) == ("True", "CacheTooOld")
    assert cache.message in condition.message
    assert told(decision) == ["CachesStale"]
    assert decision.reason.code == Code.CACHES_STALE


@pytest.mark.parametrize("cache", EACH)
def test_replicas_are_raised_all_the_same(cache):
    decision = run(observe(hpa(QUEUE), 4, series(700), stale_inputs=(cache,)))
    assert decision.desired == 7
    assert decision.status.condition("CachesStale").status == "True"


@pytest.mark.parametrize(
    ("cache", "want"),
    [
        pytest.param(PODS, 4, id="maxReplicas does not depend on pods"),
        pytest.param(OWN, 6, id="maxReplicas may have been raised"),
        pytest.param(TARGET, 6, id="the replicas may have been lowered already"),
    ],
)
def test_more_replicas_than_the_maximum(cache, want):
    decision = run(observe(hpa(QUEUE, high=4), 6, series(400), stale_inputs=(cache,)))
    assert decision.desired == want
    assert (decision.reason.code == Code.CACHES_STALE) is (want == 6)


@pytest.mark.parametrize("cache", EACH)
def test_fewer_replicas_than_the_minimum_are_raised(cache):
    assert run(observe(hpa(QUEUE, low=3), 2, series(100), stale_inputs=(cache,))).desired == 3


def test_nothing_goes_to_zero():
    assert (
        run(observe(hpa(QUEUE, low=0), 1, series(0), stale_inputs=(PODS,), settings=NO_WINDOW)).desired == 1
    )
    assert run(observe(hpa(QUEUE, low=0), 1, series(0), settings=NO_WINDOW)).desired == 0


def test_a_workload_at_zero_wakes_up():
    seen = observe(hpa(QUEUE, low=0, status=marked()), 0, series(500), pods=(), stale_inputs=(PODS, OWN))
    assert run(seen).desired > 0


def test_the_condition_goes_away_and_the_event_does_not_repeat():
    stale = observe(hpa(QUEUE), 4, series(400), stale_inputs=(PODS,))
    first = run(stale)
    hpa_after = msgspec.structs.replace(stale.hpa, status=first.status)
    again = run(msgspec.structs.replace(stale, hpa=hpa_after, memory=first.memory))
    assert (told(again), again.status_changed) == ([], False)
    fresh = run(msgspec.structs.replace(stale, hpa=hpa_after, memory=first.memory, stale_inputs=()))
    assert fresh.status.condition("CachesStale") is None


def test_other_obstacles_keep_their_reasons():
    unread = run(observe(hpa(QUEUE), 4, unreadable(), stale_inputs=(PODS,)))
    assert unread.reason.code == Code.METRICS_FAILED
    missing = observe(
        hpa(QUEUE), 4, scale=None, scale_failure=ScaleFailure(message="gone"), stale_inputs=(PODS,)
    )
    assert run(missing).reason.code == Code.SCALE_UNREADABLE
    assert run(missing).status.condition("CachesStale").status == "True"
    calm = run(observe(hpa(QUEUE), 4, series(400), stale_inputs=(PODS,)))
    assert calm.reason.code == Code.WITHIN_TOLERANCE


def test_upstream_goes_on_with_what_it_knows():
    seen = observe(
        hpa(QUEUE),
        4,
        series(100),
        stale_inputs=(PODS,),
        settings=NO_WINDOW,
        rules=UPSTREAM,
    )
    assert run(seen).desired == 1
    assert run(seen).status.condition("CachesStale") is None


def test_a_decision_on_stale_caches_never_stands():
    seen = observe(hpa(QUEUE), 4, series(400))
    decision = run(seen)
    settled = msgspec.structs.replace(
        seen, hpa=msgspec.structs.replace(seen.hpa, status=decision.status), memory=decision.memory
    )
    decision = run(settled)
    last = find_standing(settled, decision)
    assert last is not None
    now = decision.now + 1
    later = msgspec.structs.replace(settled, memory=decision.memory)
    assert last.holds(later, now)
    stale = msgspec.structs.replace(later, stale_inputs=(PODS,))
    assert not last.holds(stale, now)
    assert find_standing(stale, run(stale)) is None


@given(
    current=st.integers(1, 20),
    load=st.integers(0, 3000),
    stale=st.lists(st.sampled_from((PODS, TARGET, OWN)), min_size=1, max_size=3, unique=True),
)
def test_stale_caches_change_nothing_but_scale_downs(current, load, stale):
    seen = observe(hpa(QUEUE, low=0, high=15), current, series(load), settings=NO_WINDOW)
    fresh = run(seen)
    held = run(msgspec.structs.replace(seen, stale_inputs=tuple(stale)))
    if fresh.desired >= current:
        assert held.desired == fresh.desired
    elif stale == [PODS] and current > 15:
        assert held.desired == 15
    else:
        assert held.desired == current
