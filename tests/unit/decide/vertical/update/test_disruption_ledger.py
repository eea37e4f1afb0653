"""The ledger of disruptions: what counts, for how long, what is replaced, and what is never evicted."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
    FOLLOWER,
    LEADER,
    NOW,
    Recorder,
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
from trimtab.decide.vertical.update.actions import ActionResult, Resize
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.decide.vertical.update.resize.status import ResizeStatus, resize_status
from trimtab.model.core.pod import ResourceRequirements
from trimtab.model.json import wire

MINUTE = timedelta(minutes=1)
NOT_READY = {"type": "Ready", "status": "False", "lastTransitionTime": NOW.isoformat()}
LEADER_SCOPE = scope("leader", pods=LEADER)
BIG, SMALL = "8Gi", "1Gi"


def has(memory, limit=None, **more):
    limits = {"limits": {"memory": limit}} if limit else {}
    return {"name": "app", "resources": {"requests": {"cpu": "100m", "memory": memory}, **limits}, **more}


def noted(memory, *, limit=None, at=NOW, vpa="shop/base", **more):
    """Return the note of a resize that was requested."""
    wanted = {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": limit} if limit else {}}
    resources = {"app": wire.convert(wanted, ResourceRequirements)}
    return {
        RESIZE_ANNOTATION: wire.encode(ResizeAnnotation(vpa=vpa, at=at, resources=resources, **more)).decode()
    }


def error(message="attempting to set pod memory limit (1) below current usage (2)"):
    return {**resize_condition("PodResizeInProgress", "Error"), "message": message}


def sent(api):
    """Return what each resize asks for, as requests/cpu=... pairs."""
    return {
        action.pod.name: {
            operation["path"].partition("/resources/")[2]: operation["value"]
            for operation in action.operations
            if isinstance(operation["value"], str)
        }
        for action in api.actions
        if isinstance(action, Resize)
    }


def written_note(action) -> ResizeAnnotation:
    assert isinstance(action, Resize)
    return wire.decode(action.plan.annotations_before[RESIZE_ANNOTATION], ResizeAnnotation)


def base(memory=BIG, mode="InPlaceOrRecreate", **more):
    return vpa("base", recommended(memory), mode=mode, **more)


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate", "InPlace"])
def test_pods_that_are_not_ready_are_not_up(mode):
    """RV-H4: of four replicas two may be down; two that run and are not Ready use that up."""
    unready = [pod(f"db-{place}", memory=BIG, conditions=[NOT_READY]) for place in range(2)]
    seen = world([base(mode=mode)], [*unready, pod("db-2"), pod("db-3")])
    assert run(seen)[0] == []


@pytest.mark.parametrize(
    ("condition", "restarts", "may_go"),
    [
        pytest.param(None, False, False, id="requested, and the kubelet has not said anything"),
        pytest.param(resize_condition("PodResizeInProgress", ""), False, False, id="in progress"),
        pytest.param(resize_condition(), True, False, id="deferred, and would restart at any moment"),
        pytest.param(resize_condition(), False, True, id="deferred, and would restart nothing"),
        pytest.param(resize_condition(reason="Infeasible"), True, True, id="infeasible: not tried again"),
    ],
)
def test_a_resize_counts_until_it_is_done(condition, restarts, may_go):
    """RV-H4: also in the next loop, and for an updater that has just started."""
    busy = pod(
        "db-0",
        memory=BIG,
        statuses=[has(SMALL)],
        annotations=noted(BIG),
        conditions=[condition] if condition else [],
    )
    pods = [restarting(busy) if restarts else busy, pod("db-1", memory=BIG), pod("db-2")]
    seen = world([base()], pods)
    assert (("resize", "db-2") in run(seen, now=NOW + MINUTE)[0]) is may_go


def test_what_was_requested_a_moment_ago_counts_before_it_is_seen():
    seen = world([base()], [pod(f"db-{place}") for place in range(3)])
    asked, first = run(seen)
    assert len(asked) == 1
    assert run(seen, first.state, now=NOW + MINUTE)[0] == [], "the cache shows the pods as they were"
    evicting = world([base(mode="Recreate")], [pod(f"db-{place}") for place in range(3)])
    asked, first = run(evicting)
    assert len(asked) == 1
    assert run(evicting, first.state, now=NOW + MINUTE)[0] == []


@pytest.mark.parametrize(
    ("minutes", "statuses", "acts"),
    [
        pytest.param(1, (), False, id="it is left to start"),
        pytest.param(11, (), True, id="it had its time"),
        pytest.param(
            1,
            [
                has(
                    SMALL,
                    lastState={
                        "terminated": {
                            "reason": "OOMKilled",
                            "startedAt": NOW.isoformat(),
                            "finishedAt": NOW.isoformat(),
                        }
                    },
                )
            ],
            True,
            id="it is killed for want of memory",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_pod_that_is_down_costs_no_budget(minutes, statuses, acts, mode):
    down = restarting(pod("db-0", conditions=[NOT_READY], statuses=statuses))
    others = [pod(f"db-{place}", memory=BIG) for place in (1, 2)]
    asked, result = run(world([base(mode=mode)], [down, *others]), now=NOW + minutes * MINUTE)
    assert bool(asked) is acts
    if not acts:
        assert why(result, "db-0") == "it is not Ready yet"


def test_a_role_that_moved_on_takes_its_request_back():
    """RV-M3 (a): the follower asks for the leader's size no longer."""
    former = pod(
        "db-0",
        FOLLOWER,
        memory=BIG,
        statuses=[has(SMALL)],
        annotations=noted(BIG, vpa="shop/leader"),
        conditions=[resize_condition()],
    )
    leader = vpa("leader", recommended(BIG), scope="leader", mode="InPlaceOrRecreate", min_replicas=1)
    followers = [pod(f"db-{place}", FOLLOWER, memory=SMALL) for place in (1, 2)]
    api = Recorder()
    run(world([base(SMALL), leader], [former, *followers], [LEADER_SCOPE]), api=api)
    assert sent(api) == {"db-0": {"requests/memory": SMALL}}
    api = Recorder()
    _, result = run(world([leader], [former, *followers], [LEADER_SCOPE]), api=api)
    assert sent(api) == {"db-0": {"requests/memory": SMALL}}, "also where no VPA controls the pod"
    assert "shop/leader" in result.events[0].message
    by_hand = msgspec.structs.replace(
        former, metadata=msgspec.structs.replace(former.metadata, annotations=noted("7Gi"))
    )
    assert run(world([leader], [by_hand, *followers], [LEADER_SCOPE]))[0] == [], "not what we asked for"


@pytest.mark.parametrize(
    ("mode", "wanted", "is_taken_back"),
    [
        pytest.param("Recreate", SMALL, True, id="the pod has the right size"),
        pytest.param("Recreate", "4Gi", True, id="the pod should have another size"),
        pytest.param("Recreate", BIG, False, id="the request is for what is recommended"),
        pytest.param("Initial", SMALL, True, id="no running pod may change"),
        pytest.param("Initial", BIG, True, id="no running pod may change, to no size"),
        pytest.param("InPlaceOrRecreate", SMALL, True, id="as in place"),
    ],
)
@pytest.mark.parametrize("minutes", [1, 120])
def test_a_request_that_waits_is_taken_back_whatever_the_mode_of_the_new_role(
    mode, wanted, is_taken_back, minutes
):
    former = pod(
        "db-0",
        FOLLOWER,
        memory=BIG,
        statuses=[has(SMALL)],
        annotations=noted(BIG, vpa="shop/leader"),
        conditions=[resize_condition()],
    )
    leader = vpa("leader", recommended(BIG), scope="leader", mode="InPlaceOrRecreate", min_replicas=1)
    others = [pod(f"db-{place}", FOLLOWER, memory=wanted) for place in (1, 2)]
    api = Recorder()
    seen = world([base(wanted, mode=mode), leader], [former, *others], [LEADER_SCOPE])
    run(seen, api=api, now=NOW + minutes * MINUTE)
    assert sent(api) == ({"db-0": {"requests/memory": SMALL}} if is_taken_back else {})
    if is_taken_back:
        assert len(api.actions) == 1, "it is not evicted in the same loop"


@pytest.mark.parametrize(
    ("requested", "reported", "is_current"),
    [
        pytest.param(0.7, 0.9, True, id="reported in the second of the request"),
        pytest.param(0.0, 0.9, True, id="a request on the second"),
        pytest.param(0.7, 1.2, True, id="reported in the next second"),
        pytest.param(0.7, -0.1, False, id="reported in the second before"),
    ],
)
@pytest.mark.parametrize("minutes", [1, 9])
def test_a_condition_without_generation_is_compared_with_the_request_by_the_second(
    requested, reported, is_current, minutes
):
    """Kubelets before 1.33 report no generation, and the API server cuts fractions of seconds off."""
    requested_at, reported_at = (NOW + timedelta(seconds=seconds) for seconds in (requested, reported))
    moment = reported_at.replace(microsecond=0).isoformat()
    resized = pod(
        memory=BIG,
        statuses=[has(SMALL)],
        annotations=noted(BIG, at=requested_at),
        conditions=[{**resize_condition(reason="Infeasible"), "lastTransitionTime": moment}],
    )
    expected = ResizeStatus.INFEASIBLE if is_current else ResizeStatus.IN_PROGRESS
    assert resize_status(resized, requested_at + minutes * MINUTE) is expected


def test_what_was_said_in_the_second_of_a_new_request_is_about_the_earlier_one():
    now = NOW + timedelta(seconds=0.7)
    condition = {**resize_condition(reason="Infeasible"), "lastTransitionTime": NOW.isoformat()}
    waiting = pod("db-0", memory=BIG, statuses=[has(SMALL)], annotations=noted(BIG), conditions=[condition])
    others = [pod(f"db-{place}", memory="2Gi") for place in (1, 2)]
    api = Recorder()
    run(world([base("2Gi")], [waiting, *others]), api=api, now=now)
    (action,) = api.actions
    note = {RESIZE_ANNOTATION: wire.encode(written_note(action)).decode()}
    asked = pod("db-0", memory="2Gi", statuses=[has(SMALL)], annotations=note, conditions=[condition])
    assert resize_status(asked, now + MINUTE) is ResizeStatus.IN_PROGRESS


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
@pytest.mark.parametrize(
    ("wanted", "is_sent"),
    [
        pytest.param("2Gi", True, id="a smaller size may fit"),
        pytest.param("8100Mi", False, id="a little less is not worth another request"),
    ],
)
def test_a_request_that_waits_is_replaced_by_a_smaller_one(mode, reason, wanted, is_sent):
    """RV-M3 (b)."""
    waiting = pod(
        "db-0",
        memory=BIG,
        statuses=[has(SMALL)],
        annotations=noted(BIG),
        conditions=[resize_condition(reason=reason)],
    )
    bounds = {"lower": {"memory": "1500Mi"}, "upper": {"memory": "9Gi" if wanted != "2Gi" else "3Gi"}}
    one = vpa("base", recommended(wanted, **bounds), mode=mode)
    others = [pod(f"db-{place}", memory=wanted) for place in (1, 2)]
    api = Recorder(db_0=ActionResult.DONE)
    asked, _ = run(world([one], [waiting, *others]), api=api)
    assert (sent(api).get("db-0") == {"requests/memory": wanted}) is is_sent
    assert ("evict", "db-0") not in asked or not is_sent


def shrinking(**more):
    """Return a former leader that should be small and has page cache: 1Gi/2Gi asked, 8Gi/16Gi given."""
    return pod(
        "db-0",
        **{
            "memory": SMALL,
            "limits": {"memory": "2Gi"},
            "statuses": [has(BIG, "16Gi")],
            "annotations": noted(SMALL, limit="2Gi"),
            "conditions": [error()],
            **more,
        },
    )


def small_others():
    return [pod(f"db-{place}", memory=SMALL, limits={"memory": "2Gi"}) for place in (1, 2)]


def test_a_refused_decrease_keeps_the_limit_lowers_the_request_and_never_evicts():
    """F1: the kubelet refuses a memory limit below what is in use, page cache included."""
    seen = world([base(SMALL)], [shrinking(), *small_others()])
    api = Recorder()
    asked, result = run(seen, api=api)
    assert asked == [("resize", "db-0")]
    assert sent(api) == {"db-0": {"limits/memory": "16Gi"}}, "the request stays as low as it was asked for"
    assert any("below current usage" in event.message for event in result.events)
    (action,) = api.actions
    note = written_note(action)
    assert isinstance(action, Resize)
    assert (note.refusals, note.refused_at) == (1, NOW)
    held = pod(
        "db-0",
        memory=SMALL,
        limits={"memory": "16Gi"},
        statuses=[has(SMALL, "16Gi")],
        annotations=action.plan.annotations_before,
    )
    later = world([base(SMALL)], [held, *small_others()])
    assert run(later, now=NOW + 4 * MINUTE)[0] == [], "with the patience of Deferred"
    api = Recorder()
    run(later, now=NOW + 5 * MINUTE, api=api)
    assert sent(api) == {"db-0": {"limits/memory": "2Gi"}}, "then it is tried again"
    again = written_note(api.actions[0])
    assert (again.refusals, again.refused_at) == (1, None), "the next refusal is the second"


def test_a_guaranteed_pod_waits_with_its_memory_and_gives_its_cpu_back():
    guaranteed = pod(
        "db-0",
        cpu="100m",
        memory=SMALL,
        limits={"cpu": "100m", "memory": SMALL},
        statuses=[
            {
                "name": "app",
                "resources": {
                    "requests": {"cpu": "2", "memory": BIG},
                    "limits": {"cpu": "2", "memory": BIG},
                },
            }
        ],
        annotations={
            "trimtab.dev/original-resources": '{"app":{"before":{"requests":{"cpu":"1","memory":"4Gi"},'
            '"limits":{"cpu":"1","memory":"4Gi"}}}}',
        },
        conditions=[error()],
    )
    one = vpa("base", recommended(SMALL, "100m"), mode="InPlaceOrRecreate")
    api = Recorder()
    asked, _ = run(world([one], [guaranteed, pod("db-1"), pod("db-2")]), api=api)
    assert sent(api)["db-0"] == {"requests/memory": BIG, "limits/memory": BIG}
    assert ("evict", "db-0") not in asked


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param([resize_condition(reason="Infeasible")], id="infeasible"),
        pytest.param([resize_condition(reason="Deferred")], id="deferred for hours"),
        pytest.param([resize_condition("PodResizeInProgress", "Error")], id="an error"),
    ],
)
@pytest.mark.parametrize(
    "outcome", [ActionResult.DONE, ActionResult.FAILED, ActionResult.INFEASIBLE, ActionResult.INVALID]
)
def test_no_pod_is_evicted_only_to_shrink(conditions, outcome):
    large = pod("db-0", memory=SMALL, statuses=[has(BIG)], conditions=conditions)
    seen = world([base(SMALL)], [large, *(pod(f"db-{place}", memory=SMALL) for place in (1, 2))])
    state = None
    for hours in range(4):
        api = Recorder(db_0=outcome)
        asked, result = run(seen, state, now=NOW + timedelta(hours=hours), api=api)
        assert ("evict", "db-0") not in asked
        state = result.state


def test_what_is_waited_for_is_said_in_the_kubelets_own_words():
    """F3, F4: in the result of the pod, and in one event per state."""
    said = {**resize_condition(), "message": "Node didn't have enough resource: cpu"}
    waiting = pod("db-0", memory=BIG, statuses=[has(SMALL)], annotations=noted(BIG), conditions=[said])
    seen = world([base()], [waiting, pod("db-1", memory=BIG), pod("db-2", memory=BIG)])
    _, first = run(seen)
    assert why(first, "db-0") == "its resize waits: Deferred: Node didn't have enough resource: cpu"
    (event,) = first.events
    assert (event.reason, event.object) == ("InPlaceResizeDeferred", "shop/db-0")
    assert "Node didn't have enough resource: cpu" in event.message
    _, second = run(seen, first.state, now=NOW + MINUTE)
    assert second.events == (), "once"
    api = Recorder()
    run(seen, second.state, now=NOW + 6 * MINUTE, api=api)
    assert "Node didn't have enough resource" in api.actions[0].reason, "an eviction says why"
    done = pod("db-0", memory=BIG, statuses=[has(BIG)], annotations=noted(BIG))
    _, last = run(world([base()], [done, *seen.pods[1:]]), second.state, now=NOW + 2 * MINUTE)
    assert [event.reason for event in last.events] == ["InPlaceResizedByVPA"]
    assert not last.state.disruptions


def test_the_patience_of_a_fresh_updater_begins_where_the_kubelets_wait_began():
    since = {**resize_condition(), "lastTransitionTime": (NOW - 6 * MINUTE).isoformat()}
    waiting = pod("db-0", memory=BIG, statuses=[has(SMALL)], conditions=[since])
    seen = world([base()], [waiting, pod("db-1", memory=BIG), pod("db-2", memory=BIG)])
    assert run(seen)[0] == [("evict", "db-0")]


def test_a_role_that_waits_for_the_budget_says_whose():
    leader = vpa("leader", recommended(BIG), scope="leader", mode="InPlaceOrRecreate", min_replicas=1)
    busy = pod("db-1", FOLLOWER, memory="2Gi", statuses=[has(SMALL)], annotations=noted("2Gi"), conditions=[])
    seen = world([leader], [pod("db-0", LEADER), busy, pod("db-2", FOLLOWER)], [LEADER_SCOPE])
    asked, result = run(seen, now=NOW + MINUTE)
    assert asked == []
    assert [str(creator) for creator in result.short_of_budget] == ["StatefulSet/shop/db"]


def test_without_the_budget_resizes_that_restart_nothing_go_on():
    seen = world([base()], [pod(f"db-{place}") for place in range(3)])
    assert len(run(seen, settings=UpdaterSettings(skips_budget_in_place=True))[0]) == 3
    seen = world([base()], [restarting(pod(f"db-{place}")) for place in range(3)])
    assert len(run(seen, settings=UpdaterSettings(skips_budget_in_place=True))[0]) == 1
