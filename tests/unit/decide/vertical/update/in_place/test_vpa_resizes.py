"""A pod with a resize under way, by mode, state, age, restarts and whether the recommendation moved on."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
    NOW,
    pod,
    recommended,
    resize_condition,
    restarting,
    run,
    scope,
    vpa,
    why,
    world,
)
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.model.core.pod import ResourceRequirements
from trimtab.model.json import wire

WANTED = wire.convert({"requests": {"cpu": "200m", "memory": "4Gi"}}, ResourceRequirements)
HAS_LESS = [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}]
STATES = {
    "deferred": resize_condition(),
    "infeasible": resize_condition(reason="Infeasible"),
    "unknown": resize_condition(reason="Odd"),
    "error": resize_condition("PodResizeInProgress", "Error"),
    "in progress": resize_condition("PodResizeInProgress", ""),
}
FREE = UpdaterSettings(eviction_limits=NO_EVICTION_LIMITS)
NOTHING: list[tuple[str, str]] = []
RESIZE, EVICT = [("resize", "db-0")], [("evict", "db-0")]


def requested(state, age, *, restarts=False):
    """Make a pod of 1Gi for which 4Gi were requested so long ago, with the kubelet's condition of that time."""
    condition = {**STATES[state], "lastTransitionTime": (NOW - age).isoformat()}
    note = ResizeAnnotation(vpa="shop/base", at=NOW - age, resources={"app": WANTED})
    made = pod(
        cpu="200m",
        memory="4Gi",
        conditions=[condition],
        statuses=HAS_LESS,
        annotations={RESIZE_ANNOTATION: wire.encode(note).decode()},
    )
    return restarting(made) if restarts else made


def loop(mode, member, target="4Gi", state=None):
    others = [pod(f"db-{place}", cpu="200m", memory=target) for place in (1, 2, 3)]
    seen = world([vpa("base", recommended(target, "200m"), mode=mode)], [member, *others])
    return run(msgspec.structs.replace(seen, serves_resize=True), state)


@pytest.mark.parametrize("restarts", [False, True], ids=["stays up", "restarts"])
@pytest.mark.parametrize(
    ("state", "minutes", "in_place", "or_recreate"),
    [
        pytest.param("deferred", 5, NOTHING, NOTHING, id="deferred for 5 minutes: wait"),
        pytest.param(
            "deferred", 6, "revert", EVICT, id="deferred for longer: evict, or take back what would restart"
        ),
        pytest.param("infeasible", 0, NOTHING, EVICT, id="infeasible: evict at once"),
        pytest.param("unknown", 0, NOTHING, EVICT, id="a state that is not known: evict at once"),
        pytest.param("error", 0, NOTHING, EVICT, id="an error: evict at once"),
        pytest.param("in progress", 60, NOTHING, NOTHING, id="in progress for an hour: wait"),
        pytest.param("in progress", 61, NOTHING, EVICT, id="in progress for longer: evict"),
    ],
)
def test_a_resize_that_does_not_come_about(state, minutes, in_place, or_recreate, restarts):
    member = requested(state, timedelta(minutes=minutes), restarts=restarts)
    asked, result = loop("InPlaceOrRecreate", member)
    assert asked == or_recreate
    assert state.partition(" ")[0][:4] in why(result, "db-0").lower() or state == "unknown"
    asked, result = loop("InPlace", member)
    assert asked == ((RESIZE if restarts else NOTHING) if in_place == "revert" else in_place)
    assert sorted(entry.pod for entry in result.pod_results) == [f"shop/db-{place}" for place in range(4)]


@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("target", ["8Gi", "2Gi"], ids=["more", "less"])
def test_a_waiting_resize_is_replaced_when_the_recommendation_moves_on(mode, state, target):
    asked, _ = loop(mode, requested(state, timedelta(minutes=1)), target)
    assert asked == (NOTHING if state == "in progress" else RESIZE)


@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
@pytest.mark.parametrize("state", STATES)
def test_a_waiting_resize_is_taken_back_when_the_actual_size_is_right_again(mode, state):
    asked, result = loop(mode, requested(state, timedelta(minutes=1)), "1Gi")
    if state == "in progress":
        assert asked == NOTHING
    else:
        assert asked == RESIZE
        assert "resize waits" in why(result, "db-0") or "outside" in why(result, "db-0")


def test_a_pod_is_not_evicted_only_to_shrink():
    member = requested("infeasible", timedelta(minutes=9))
    shrinking = msgspec.structs.replace(
        member,
        status=msgspec.structs.replace(
            member.status,
            container_statuses=pod(
                statuses=[{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "8Gi"}}}]
            ).status.container_statuses,
        ),
    )
    asked, result = loop("InPlaceOrRecreate", shrinking)
    assert asked == NOTHING
    assert "it is not evicted only to shrink" in why(result, "db-0")


def test_an_infeasible_resize_in_mode_in_place_is_remembered_until_something_is_lower():
    _, first = loop("InPlace", requested("infeasible", timedelta(minutes=1)))
    assert set(first.state.infeasible) == {"uid-db-0"}
    asked, second = loop("InPlace", pod(), state=first.state)
    assert asked == NOTHING
    assert "nothing recommended is lower now" in why(second, "db-0")
    assert [event.reason for event in second.events] == ["InPlaceResizeSkipped"]
    asked, _ = loop("InPlace", pod(), "3Gi", state=first.state)
    assert asked == RESIZE
    asked, _ = loop("InPlaceOrRecreate", pod(), state=first.state)
    assert asked == RESIZE


@pytest.mark.parametrize(
    ("member", "replicas", "why_not"),
    [
        pytest.param(pod(phase="Pending"), 2, "it is Pending", id="pending"),
        pytest.param(pod(), 0, "unknown or below the minimum", id="a group whose replicas are not known"),
    ],
)
def test_a_pod_that_cannot_be_resized_says_why(member, replicas, why_not):
    seen = world(
        [vpa("base", recommended("4Gi"), mode="InPlace")],
        [member, pod("db-1", memory="4Gi")],
        replicas=replicas,
    )
    asked, result = run(msgspec.structs.replace(seen, serves_resize=True))
    assert asked == NOTHING
    assert why_not in why(result, "db-0")


def test_a_vpa_without_recommendation_says_so():
    asked, result = run(world([vpa("base", mode="InPlace")], [pod(), pod("db-1")]), UpdaterState())
    assert asked == NOTHING
    assert why(result, "db-0") == "there is no recommendation yet"


@pytest.mark.parametrize("place", [0, 3], ids=["first", "last"])
def test_a_resize_left_from_another_mode_is_taken_back_and_the_other_pods_are_evicted(place):
    waiting = requested("deferred", timedelta(minutes=1))
    names = [f"db-{number}" for number in range(4)]
    pods = [pod(name) for name in names if name != names[place]]
    metadata = msgspec.structs.replace(waiting.metadata, name=names[place], uid=f"uid-{names[place]}")
    pods.insert(place, msgspec.structs.replace(waiting, metadata=metadata))
    seen = world([vpa("base", recommended("8Gi", "200m"), mode="Recreate")], pods)
    asked, _ = run(msgspec.structs.replace(seen, serves_resize=True), settings=FREE)
    others = [("evict", name) for name in names if name != names[place]]
    assert asked == [("resize", names[place]), *others[:2]]


@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
@pytest.mark.parametrize(
    ("minutes", "restarts", "want"),
    [
        pytest.param(1, False, RESIZE, id="a resize that restarts nothing does not wait for Ready"),
        pytest.param(1, True, NOTHING, id="one that restarts waits while the pod starts"),
        pytest.param(60, True, RESIZE, id="and not once the pod is stuck"),
    ],
)
def test_a_starting_pod_is_not_restarted(mode, minutes, restarts, want):
    since = (NOW - timedelta(minutes=minutes)).isoformat()
    starting = pod(conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": since}])
    asked, result = loop(mode, restarting(starting) if restarts else starting)
    assert asked == want
    assert (why(result, "db-0") == "it is not Ready yet") is (want == NOTHING)


@pytest.mark.parametrize("role", [None, "leader"], ids=["no role", "a role"])
def test_a_role_that_waits_for_the_budget_is_named(role):
    labels = {"role": "leader"} if role else {}
    owner = vpa("base", recommended("4Gi"), mode="InPlace", scope=role, min_replicas=1)
    pods = [restarting(pod(f"db-{place}", labels)) for place in range(2)]
    seen = world([owner], pods, [scope("leader", {"role": "leader"})])
    asked, result = run(msgspec.structs.replace(seen, serves_resize=True))
    assert asked == RESIZE
    assert why(result, "db-1") == "its group cannot spare another pod now"
    assert bool(result.short_of_budget) is (role is not None)
