"""A write whose answer was lost keeps its place in the budget until the pod, read live, shows what became of it."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, Recorder, pod, recommended, run, vpa, world
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.decide.vertical.update.lost_responses import (
    FIRST_CHECK,
    LAST_CHECK,
    mark_lost,
    next_check,
    resolve_lost,
)

ONE_AT_A_TIME = UpdaterSettings(eviction_tolerance=0.0, eviction_limits=NO_EVICTION_LIMITS)
LATE = NOW + LAST_CHECK
EARLY = LATE - timedelta(seconds=1)
PODS = [pod("db-0"), pod("db-1")]


def lost(mode):
    """Return the world, and the state after the answer to the first request was lost."""
    seen = world([vpa("base", recommended("4Gi"), mode=mode, min_replicas=1)], PODS)
    api = Recorder(db_0=ActionResult.UNKNOWN)
    _, result = run(seen, settings=ONE_AT_A_TIME, api=api)
    assert [name for _, name in api.asked] == ["db-0"]
    return seen, mark_lost(result.state, {"uid-db-0": NOW})


def deleted(member):
    return msgspec.structs.replace(
        member, metadata=msgspec.structs.replace(member.metadata, deletion_timestamp=NOW)
    )


def of_another_uid(member):
    return msgspec.structs.replace(member, metadata=msgspec.structs.replace(member.metadata, uid="another"))


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_request_that_was_not_carried_out_gives_its_place_back(mode):
    """It held its place for an hour."""
    seen, state = lost(mode)
    asked, _ = run(seen, state, now=LATE, settings=ONE_AT_A_TIME)
    assert asked == [], "it may have been carried out"
    after = resolve_lost(state, {"uid-db-0": PODS[0]}, LATE)
    asked, _ = run(seen, after, now=LATE, settings=ONE_AT_A_TIME)
    assert [name for _, name in asked] == ["db-0"]


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_request_that_may_still_be_carried_out_keeps_its_place(mode):
    seen, state = lost(mode)
    after = resolve_lost(state, {"uid-db-0": PODS[0]}, EARLY)
    assert set(after.disruptions) == {"uid-db-0"}
    assert run(seen, after, now=EARLY, settings=ONE_AT_A_TIME)[0] == []


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        pytest.param("Recreate", None, id="the pod is gone"),
        pytest.param("Recreate", deleted(PODS[0]), id="the pod is being deleted"),
        pytest.param("Recreate", of_another_uid(PODS[0]), id="another pod has its name"),
        pytest.param("InPlaceOrRecreate", pod("db-0", memory="4Gi"), id="the pod is asked for its new size"),
    ],
)
@pytest.mark.parametrize("read_at", [EARLY, LATE], ids=["early", "late"])
def test_a_request_that_was_carried_out_keeps_its_place_until_the_cache_shows_it(mode, found, read_at):
    seen, state = lost(mode)
    after = resolve_lost(state, {"uid-db-0": found}, read_at)
    assert set(after.disruptions) == {"uid-db-0"}
    assert next_check(after) is None, "there is nothing left to find out"
    assert run(seen, after, now=LATE, settings=ONE_AT_A_TIME)[0] == []


def test_a_pod_that_could_not_be_read_keeps_its_place():
    _, state = lost("Recreate")
    assert resolve_lost(state, {}, LATE) == state


def test_the_pod_is_read_soon_and_once_more_when_nothing_can_come_any_more():
    _, state = lost("Recreate")
    assert next_check(state) == NOW + FIRST_CHECK
    read = resolve_lost(state, {"uid-db-0": PODS[0]}, NOW + FIRST_CHECK)
    assert next_check(read) == LATE


def test_what_was_answered_is_not_read():
    seen = world([vpa("base", recommended("4Gi"), min_replicas=1)], PODS)
    _, result = run(seen, settings=ONE_AT_A_TIME)
    assert next_check(mark_lost(result.state, {})) is None
