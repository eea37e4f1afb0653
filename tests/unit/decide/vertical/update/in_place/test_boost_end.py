"""A startup boost ends in place, in every update mode, and is never answered by an eviction."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
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
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import ActionResult, Resize
from trimtab.decide.vertical.update.loop_state import UPSTREAM_SETTINGS
from trimtab.decide.vertical.update.observation import ObservedController
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire

GATES = FeatureGates(cpu_startup_boost=True, in_place=True)
MODES = ["Off", "Initial", "Recreate", "Auto", "InPlace", "InPlaceOrRecreate"]
BOOST = {"cpu": {"type": "Factor", "factor": 10, "durationSeconds": 15}}
POLICIES = [{"containerName": "app", "startupBoost": BOOST}]


def boosted(name="db-0", *, ready_for=60, **more):
    """A pod that was given 1 core instead of 100m, and has been ready for so many seconds."""
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": (NOW - timedelta(seconds=ready_for)).isoformat(),
    }
    note = '{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{}}'
    return pod(
        name,
        cpu="1",
        conditions=[ready, *more.pop("conditions", ())],
        annotations={"vpaCpuStartupBoost/app": note},
        **more,
    )


def played(mode, *pods, target="200m", rules=Rules.TRIMTAB, api=None):
    recommendation = recommended("1Gi", cpu=target) if target else None
    owner = vpa("base", recommendation, mode=mode, policies=POLICIES, min_replicas=1)
    api = api or Recorder()
    seen = msgspec.structs.replace(world([owner], pods), serves_resize=True)
    _, result = run(seen, gates=GATES, rules=rules, settings=UPSTREAM_SETTINGS, api=api)
    return api, result


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["200m", None], ids=["recommended", "not recommended"])
def test_a_boost_that_is_over_is_taken_back_in_every_mode(mode, target, rules):
    """It stayed for good outside of the in-place modes, and pods in mode Recreate were evicted and came back boosted."""
    api, _ = played(mode, boosted("db-0"), boosted("db-1"), target=target, rules=rules)
    assert [type(action) for action in api.actions] == [Resize, Resize]
    want = "200m" if target and mode != "Off" else "100m"
    for action in api.actions:
        values = {operation["path"].rpartition("/")[2]: operation["value"] for operation in action.operations}
        assert values["cpu"] == want
        assert values.get("memory", "1Gi") == "1Gi"
        assert action.plan.annotations_after["vpaCpuStartupBoost/app"] is None


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param({"ready_for": 10}, id="the boost is not over"),
        pytest.param({"phase": "Pending"}, id="pending"),
        pytest.param({"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}, id="resizing"),
    ],
)
def test_a_boosted_pod_is_left_alone_until_then(mode, waiting, rules):
    api, result = played(mode, boosted("db-0", **waiting), boosted("db-1", **waiting), rules=rules)
    assert api.actions == []
    assert {entry.action for entry in result.pod_results} == {"none"}


@pytest.mark.parametrize("outcome", [ActionResult.FAILED, ActionResult.INVALID, ActionResult.INFEASIBLE])
@pytest.mark.parametrize("mode", MODES)
def test_a_failure_is_tried_again_and_never_answered_by_an_eviction(mode, outcome):
    api = Recorder(db_0=outcome, db_1=outcome)
    played(mode, boosted("db-0"), boosted("db-1"), api=api)
    assert api.asked == [("resize", "db-0"), ("resize", "db-1")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("policies", "gates"),
    [
        pytest.param(POLICIES, FeatureGates(in_place=True), id="the gate is off now"),
        pytest.param([], GATES, id="the VPA boosts no more"),
    ],
)
def test_a_boost_that_was_given_is_taken_back_whoever_asks_for_none_any_more(mode, policies, gates):
    owner = vpa("base", recommended("1Gi", cpu="200m"), mode=mode, policies=policies, min_replicas=1)
    seen = world([owner], [boosted("db-0"), boosted("db-1")])
    asked, _ = run(seen, gates=gates, settings=UPSTREAM_SETTINGS)
    assert asked == [("resize", "db-0"), ("resize", "db-1")]
    assert run(seen, gates=FeatureGates(), rules=Rules.VPA_1_8)[0].count(("resize", "db-0")) <= 1


def test_a_boost_whose_end_restarts_the_container_is_taken_back_within_the_budget():
    pods = [restarting(boosted(f"db-{place}")) for place in range(4)]
    api, result = played("Recreate", *pods)
    assert [action.pod.name for action in api.actions] == ["db-0", "db-1"], "two of four"
    _, later = run(
        world([vpa("base", recommended("1Gi", cpu="200m"), policies=POLICIES)], pods),
        result.state,
        gates=GATES,
    )
    assert why(later, "db-2") == "its group cannot spare another pod now"


def test_the_end_of_a_boost_takes_no_memory_back():
    """A VPA that controls memory alone sized it at admission; the note tells of the template."""
    note = '{"requests":{"cpu":"100m","memory":"512Mi"},"limits":{}}'
    one = msgspec.structs.replace(
        boosted(),
        metadata=msgspec.structs.replace(boosted().metadata, annotations={"vpaCpuStartupBoost/app": note}),
    )
    api, _ = played("Initial", one, target=None)
    (action,) = api.actions
    assert isinstance(action, Resize)
    assert [each["path"].rpartition("/resources/")[2] for each in action.operations] == ["requests/cpu"]


def test_a_note_that_could_not_be_taken_away_is_taken_away_later():
    """Without that the pod would count as boosted for good, and never be sized again."""
    sized = msgspec.structs.replace(boosted(), spec=pod(cpu="200m").spec)
    api, _ = played("InPlaceOrRecreate", sized)
    (action,) = api.actions
    assert isinstance(action, Resize)
    assert action.operations == ()
    assert action.plan.annotations_after["vpaCpuStartupBoost/app"] is None


def test_a_loop_is_due_when_the_next_boost_ends():
    _, result = played("Recreate", boosted("db-0", ready_for=5), boosted("db-1", ready_for=12))
    assert result.requeue_at == NOW + timedelta(seconds=15 - 12 + 1)


OTHERS = vpa("base", recommended("1Gi", cpu="200m"), policies=POLICIES, target="StatefulSet/other")
ROLE = vpa("leader", recommended("1Gi", cpu="200m"), policies=POLICIES, scope="leader")
OFF = vpa("base", recommended("1Gi", cpu="200m"), mode="Off")
LEFT_OVER = [
    pytest.param([], id="the last VPA of its namespace was deleted"),
    pytest.param([OTHERS], id="its VPA was deleted, and others are there"),
    pytest.param([ROLE], id="it has another role now"),
    pytest.param([OFF], id="its VPA is in mode Off, and boosts no more"),
]


@pytest.mark.parametrize("vpas", LEFT_OVER)
def test_a_boost_that_no_vpa_gives_any_more_is_taken_back(vpas):
    """It stayed for good: only VPAs that control a pod ended its boost."""
    api = Recorder()
    seen = world(vpas, [boosted("db-0"), boosted("db-1")], [scope("leader", pods=LEADER)])
    _, result = run(seen, gates=GATES_AND_SCOPES, api=api)
    assert api.asked == [("resize", "db-0"), ("resize", "db-1")]
    for action in api.actions:
        assert isinstance(action, Resize)
        values = {
            operation["path"].rpartition("/resources/")[2]: operation["value"]
            for operation in action.operations
        }
        assert values == {"requests/cpu": "100m"}, "what it had before, and nothing else"
        assert action.plan.annotations_after["vpaCpuStartupBoost/app"] is None
    assert {entry.vpa for entry in result.pod_results} == {None}
    assert run(seen, gates=GATES_AND_SCOPES, rules=Rules.VPA_1_8)[0] == [], "upstream leaves it"


def test_nv_3_a_boost_stays_while_it_is_not_known_whose_pod_it_is():
    vpas = [vpa("base", recommended("1Gi", cpu="200m"), policies=POLICIES), ROLE]
    asked, result = run(world(vpas, [boosted("db-0"), boosted("db-1")]), gates=GATES_AND_SCOPES)
    assert asked == []
    assert "which VPA controls it is not known" in why(result, "db-0")


GATES_AND_SCOPES = FeatureGates(cpu_startup_boost=True, in_place=True, vpa_selector_refinement=True)


@pytest.mark.parametrize(
    "outcome", [ActionResult.FAILED, ActionResult.INVALID, ActionResult.INFEASIBLE, ActionResult.UNKNOWN]
)
def test_a_left_over_boost_is_never_answered_by_an_eviction(outcome):
    api = Recorder(db_0=outcome)
    run(world([], [boosted("db-0")]), gates=GATES, api=api)
    assert api.asked == [("resize", "db-0")]


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        pytest.param({"phase": "Pending"}, "its CPU is boosted while it starts", id="pending"),
        pytest.param(
            {"conditions": [resize_condition("PodResizeInProgress", "")]},
            "a resize is under way",
            id="resizing",
        ),
    ],
)
def test_a_left_over_boost_stays_until_then(waiting, words):
    asked, result = run(world([], [boosted("db-0", **waiting)]), gates=GATES)
    assert asked == []
    assert why(result, "db-0") == words


def test_a_left_over_boost_stays_until_the_pod_is_ready():
    one = pod(
        cpu="1",
        conditions=[{"type": "Ready", "status": "False"}],
        annotations={"vpaCpuStartupBoost/app": '{"requests":{"cpu":"100m"}}'},
    )
    asked, result = run(world([], [one]), gates=GATES)
    assert asked == []
    assert why(result, "db-0") == "its CPU is boosted while it starts"


def test_a_boost_stays_while_the_selector_of_its_vpa_cannot_be_read():
    """The target may be unreadable for a moment; its VPA has not gone."""
    owner = vpa("base", recommended("1Gi", cpu="200m"), policies=POLICIES)
    seen = world([owner], [boosted("db-0")])
    unread = msgspec.structs.replace(
        seen, vpas=tuple(msgspec.structs.replace(observed, selector=None) for observed in seen.vpas)
    )
    assert run(unread, gates=GATES)[0] == []


def test_a_left_over_boost_stays_while_its_owner_is_not_known():
    seen = world(
        [], [boosted("db-0")], controllers={"StatefulSet/shop/other": ObservedController(replicas=1)}
    )
    assert run(seen, gates=GATES)[0] == []


def test_a_left_over_boost_whose_end_restarts_the_container_keeps_to_the_budget():
    pods = [restarting(boosted(f"db-{place}")) for place in range(4)]
    assert run(world([], pods), gates=GATES)[0] == [("resize", "db-0"), ("resize", "db-1")], "two of four"


@pytest.mark.parametrize("mode", ["Off", "Recreate", None])
def test_the_end_of_a_boost_that_waits_is_not_taken_back(mode):
    """That would ask for the boosted size again, on a pod that no longer says that it is boosted."""
    vpas = [vpa("base", mode=mode, policies=POLICIES)] if mode else []
    api = Recorder()
    before = boosted("db-0")
    run(world(vpas, [before]), gates=GATES, api=api)
    (action,) = api.actions
    assert isinstance(action, Resize)
    given = before.spec.containers[0].resources
    after = pod(
        cpu="100m",
        annotations=dict(action.plan.annotations_before),
        conditions=[resize_condition()],
        statuses=[{"name": "app", "resources": wire.to_builtins(given)}],
    )
    asked, result = run(world(vpas, [after]), gates=GATES)
    assert asked == []
    if not vpas:
        assert any("The end of its startup boost waits" in event.message for event in result.events)


def test_the_end_of_a_left_over_boost_takes_no_memory_back():
    note = '{"requests":{"cpu":"100m","memory":"512Mi"},"limits":{}}'
    before = boosted()
    metadata = msgspec.structs.replace(before.metadata, annotations={"vpaCpuStartupBoost/app": note})
    api = Recorder()
    run(world([], [msgspec.structs.replace(before, metadata=metadata)]), gates=GATES, api=api)
    (action,) = api.actions
    assert isinstance(action, Resize)
    assert [each["path"].rpartition("/resources/")[2] for each in action.operations] == ["requests/cpu"]


@pytest.mark.parametrize("mode", ["Recreate", "InPlace", "InPlaceOrRecreate"])
@pytest.mark.parametrize(
    ("rules", "is_changed"),
    [pytest.param(Rules.TRIMTAB, False, id="default"), pytest.param(Rules.VPA_1_8, True, id="as upstream")],
)
def test_a_boosted_pod_does_not_waive_the_minimum_of_replicas_for_its_siblings(mode, rules, is_changed):
    """The end of a boost does not ask for the minimum, so nothing needs the waiver."""
    owner = vpa("base", recommended("4Gi", cpu="200m"), mode=mode, policies=POLICIES, min_replicas=5)
    seen = msgspec.structs.replace(
        world([owner], [boosted("db-0"), *(pod(f"db-{place}") for place in (1, 2, 3))]), serves_resize=True
    )
    asked, _ = run(seen, gates=GATES, rules=rules, settings=UPSTREAM_SETTINGS)
    assert any(name != "db-0" for _, name in asked) is is_changed
    assert ("resize", "db-0") in asked, "its boost is over"


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
@pytest.mark.parametrize("mode", MODES)
def test_a_boost_whose_note_is_unreadable_stops_no_other_pod(mode, rules):
    broken = boosted("db-0")
    metadata = msgspec.structs.replace(broken.metadata, annotations={"vpaCpuStartupBoost/app": "{"})
    pods = (msgspec.structs.replace(broken, metadata=metadata), boosted("db-1"))
    api, _ = played(mode, *pods, target="", rules=rules)
    alone, _ = played(mode, pods[1], target="", rules=rules)
    assert api.asked == alone.asked


@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
def test_an_unreadable_boost_of_a_sidecar_leaves_the_resize_out_as_upstream(mode):
    """Upstream's rules size a pod whose VPA asks for no boost any more. Its error would end the loop for all pods."""
    app = boosted("db-0", memory="4Gi")
    sidecar = msgspec.structs.replace(app.spec.containers[0], name="side")
    spec = msgspec.structs.replace(app.spec, containers=(*app.spec.containers, sidecar))
    asked = {}
    for note in ('{"requests":{"cpu":"100m"}}', "{"):
        metadata = msgspec.structs.replace(app.metadata, annotations={"vpaCpuStartupBoost/side": note})
        owner = vpa("base", recommended("1Gi", cpu="200m"), mode=mode, min_replicas=1)
        members = [msgspec.structs.replace(app, spec=spec, metadata=metadata)]
        seen = msgspec.structs.replace(world([owner], members), serves_resize=True)
        asked[note], _ = run(seen, gates=GATES, rules=Rules.VPA_1_8, settings=UPSTREAM_SETTINGS)
    readable, unreadable = asked.values()
    assert readable == [("resize", "db-0")]
    assert ("resize", "db-0") not in unreadable
