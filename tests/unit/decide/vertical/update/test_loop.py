"""Update loops: SCP-E1, E2, E5 to E8, N2, N4, and the edge cases of 5.3 that the updater decides."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    FOLLOWER,
    LEADER,
    NOW,
    Recorder,
    observed,
    pod,
    recommended,
    resize_condition,
    run,
    scope,
    vpa,
    why,
    world,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import ActionResult, Resize
from trimtab.decide.vertical.update.loop_state import UPSTREAM_SETTINGS, UpdaterSettings
from trimtab.decide.vertical.update.observation import ObservedController
from trimtab.model.feature_gates import FeatureGates

LEADER_MEMORY, BASE_MEMORY = "9616998332", "1168723596"
"""The targets of fixture F5: the leader peaks at 8e9 bytes, a follower at 1e9."""

LEADER_SCOPE = scope("leader", pods=LEADER)
SKIPS_BUDGET = UpdaterSettings(skips_budget_in_place=True)


def leader_vpa(**more):
    return vpa("leader", recommended(LEADER_MEMORY), scope="leader", **{"mode": "InPlaceOrRecreate", **more})


def base_vpa(**more):
    return vpa("base", recommended(BASE_MEMORY), **{"mode": "InPlaceOrRecreate", **more})


def three_pods(leader=0, memory=BASE_MEMORY):
    return [pod(f"db-{place}", LEADER if place == leader else FOLLOWER, memory=memory) for place in range(3)]


def memory_set(api: Recorder) -> dict[str, str]:
    """Return the memory request that each resized pod was given."""
    return {
        action.pod.name: operation["value"]
        for action in api.actions
        if isinstance(action, Resize)
        for operation in action.operations
        if operation["path"].endswith("requests/memory")
    }


def test_scp_e1_the_leader_gets_the_leaders_target_and_the_others_the_base():
    pods = [pod(f"db-{place}", LEADER if place == 0 else FOLLOWER, memory="2Gi") for place in range(3)]
    seen = world([base_vpa(min_replicas=1), leader_vpa(min_replicas=1)], pods, [LEADER_SCOPE])
    api = Recorder()
    run(seen, settings=SKIPS_BUDGET, api=api)
    assert memory_set(api) == {"db-0": LEADER_MEMORY, "db-1": BASE_MEMORY, "db-2": BASE_MEMORY}


def test_scp_e2_when_the_label_moves_both_pods_are_resized_in_the_next_loop():
    pods = three_pods(leader=1)
    pods[0] = pod("db-0", FOLLOWER, memory=LEADER_MEMORY)
    seen = world([base_vpa(min_replicas=1), leader_vpa(min_replicas=1)], pods, [LEADER_SCOPE])
    api = Recorder()
    run(seen, settings=SKIPS_BUDGET, api=api)
    assert memory_set(api) == {"db-1": LEADER_MEMORY, "db-0": BASE_MEMORY}


def test_scp_e5_a_single_leader_is_resized_in_place_and_not_evicted():
    seen = world([leader_vpa(min_replicas=1)], three_pods(), [LEADER_SCOPE])
    asked, result = run(seen)
    assert asked == [("resize", "db-0")]
    assert [event.reason for event in result.events] == ["InPlaceResizeRequested"]


def test_scp_e6_an_infeasible_resize_below_the_minimum_of_replicas_never_becomes_an_eviction():
    pods = three_pods()
    pods[0] = pod("db-0", LEADER, conditions=[resize_condition(reason="Infeasible")])
    seen = world([leader_vpa(min_replicas=2)], pods, [LEADER_SCOPE])
    for api in (Recorder(), Recorder(db_0=ActionResult.INFEASIBLE)):
        asked, _ = run(seen, settings=SKIPS_BUDGET, api=api)
        assert ("evict", "db-0") not in asked
    healthy = world([leader_vpa(min_replicas=2)], three_pods(), [LEADER_SCOPE])
    asked, _ = run(healthy, settings=SKIPS_BUDGET, api=Recorder(db_0=ActionResult.FAILED))
    assert asked == [("resize", "db-0")], "a failed resize is not followed by an eviction either"


def test_scp_e7_the_roles_of_an_active_standby_pair_are_sized_independently_one_after_the_other():
    active = vpa(
        "active", recommended(LEADER_MEMORY), scope="active", mode="InPlaceOrRecreate", min_replicas=1
    )
    standby = vpa(
        "standby", recommended(BASE_MEMORY), scope="standby", mode="InPlaceOrRecreate", min_replicas=1
    )
    scopes = [scope("active", pods={"ha": "active"}), scope("standby", pods={"ha": "standby"})]
    pods = [pod("db-0", {"ha": "active"}, memory="3Gi"), pod("db-1", {"ha": "standby"}, memory="3Gi")]
    api = Recorder()
    _, result = run(world([active, standby], pods, scopes), api=api)
    assert memory_set(api) == {"db-0": LEADER_MEMORY}, "the pair shares a budget of one"
    pods[0] = pod("db-0", {"ha": "active"}, memory=LEADER_MEMORY)
    run(world([active, standby], pods, scopes), result.state, now=NOW + timedelta(minutes=1), api=api)
    assert memory_set(api) == {"db-0": LEADER_MEMORY, "db-1": BASE_MEMORY}


def test_scp_e8_only_the_hot_shard_grows():
    hot = vpa("hot", recommended("4Gi"), scope="hot", mode="InPlaceOrRecreate", min_replicas=1)
    pods = [pod(f"db-{place}", {"load": "high"} if place == 3 else {}) for place in range(5)]
    seen = world(
        [hot, vpa("base", recommended("1Gi"), mode="Recreate")], pods, [scope("hot", pods={"load": "high"})]
    )
    asked, _ = run(seen)
    assert asked == [("resize", "db-3")]


def test_scp_n2_the_base_does_not_touch_pods_of_an_initial_vpa():
    vpas = [
        vpa("leader", recommended(LEADER_MEMORY), scope="leader", mode="Initial"),
        vpa("base", recommended("4Gi")),
    ]
    seen = world(vpas, three_pods(), [LEADER_SCOPE])
    asked, result = run(seen)
    assert ("evict", "db-0") not in asked
    assert why(result, "db-0") == "update mode Initial changes no running pod"
    everything = UpdaterSettings(eviction_tolerance=1.0, eviction_limits=UPSTREAM_SETTINGS.eviction_limits)
    upstream, _ = run(seen, settings=everything, rules=Rules.VPA_1_8)
    assert ("evict", "db-0") in upstream


def test_scp_n4_both_roles_act_within_one_shared_budget_of_one():
    vpas = [leader_vpa(mode="Recreate", min_replicas=1), vpa("base", recommended("4Gi"), min_replicas=1)]
    seen = world(vpas, three_pods(), [LEADER_SCOPE])
    asked, result = run(seen)
    assert len(asked) == 1
    touched = asked[0][1]
    rest = world(vpas, [member for member in seen.pods if member.name != touched], [LEADER_SCOPE], replicas=3)
    assert run(rest, result.state)[0] == [], "while that pod is away no other pod goes"
    changed = pod(touched, LEADER if touched == "db-0" else FOLLOWER, memory="4Gi", uid="new")
    sized = vpa("base", recommended("4Gi"), min_replicas=1)
    again = world([leader_vpa(mode="Recreate", min_replicas=1), sized], [*rest.pods, changed], [LEADER_SCOPE])
    assert len(run(again, now=NOW + timedelta(minutes=5))[0]) == 1, "once it is back, the next"


def test_5_3_16_upstream_can_never_touch_a_partitioned_set():
    vpas = [leader_vpa(mode="Recreate", min_replicas=1), vpa("base", recommended("4Gi"), min_replicas=1)]
    seen = world(vpas, three_pods(), [LEADER_SCOPE])
    assert run(seen, settings=UPSTREAM_SETTINGS, rules=Rules.VPA_1_8)[0] == []


@pytest.mark.parametrize(
    ("min_replicas", "want"),
    [
        pytest.param(None, [], id="one leader is below the default minimum of 2: nothing"),
        pytest.param(1, [("evict", "db-0")], id="minReplicas 1 lets a lone leader be evicted"),
        pytest.param(2, [], id="minReplicas 2 forbids it"),
    ],
)
def test_5_3_17_min_replicas_is_how_many_live_pods_a_vpa_needs_to_act(min_replicas, want):
    seen = world([leader_vpa(mode="Recreate", min_replicas=min_replicas)], three_pods(), [LEADER_SCOPE])
    assert run(seen)[0] == want


@pytest.mark.parametrize(
    ("scoped", "serves_resize", "want"),
    [
        pytest.param(True, True, ("resize", "db-0"), id="5.3-18 Auto with a scope is in place first"),
        pytest.param(True, False, ("evict", "db-0"), id="but not where the cluster has no pods/resize"),
        pytest.param(False, True, ("evict", "db-0"), id="unscoped Auto stays an alias of Recreate"),
    ],
)
def test_9_3_mode_auto(scoped, serves_resize, want):
    one = vpa("leader", recommended("4Gi"), scope="leader" if scoped else None, mode="Auto", min_replicas=1)
    seen = world([one], three_pods(), [LEADER_SCOPE])
    seen = msgspec.structs.replace(seen, serves_resize=serves_resize)
    assert run(seen)[0][0] == want


def waiting_leader(conditions, **more):
    """Return a leader that asks for the leader's size and has not got it."""
    has = {"name": "app", "resources": {"requests": {"cpu": "100m", "memory": BASE_MEMORY}}}
    return pod("db-0", LEADER, memory=LEADER_MEMORY, statuses=[has], conditions=conditions, **more)


@pytest.mark.parametrize(
    ("conditions", "minutes", "want"),
    [
        pytest.param([resize_condition(reason="Infeasible")], 0, [("evict", "db-0")], id="infeasible"),
        pytest.param([resize_condition(reason="Deferred")], 5, [], id="deferred for 5 minutes"),
        pytest.param([resize_condition(reason="Deferred")], 6, [("evict", "db-0")], id="deferred for longer"),
        pytest.param([resize_condition("PodResizeInProgress", "")], 60, [], id="in progress for an hour"),
        pytest.param([resize_condition("PodResizeInProgress", "")], 61, [("evict", "db-0")], id="for longer"),
        pytest.param(
            [resize_condition("PodResizeInProgress", "Error")], 0, [("evict", "db-0")], id="an error"
        ),
    ],
)
def test_5_3_19_a_resize_that_fails_or_stalls_falls_back_to_eviction(conditions, minutes, want):
    pods = [waiting_leader(conditions), *three_pods()[1:]]
    seen = world([leader_vpa(min_replicas=1)], pods, [LEADER_SCOPE])
    _, first = run(seen, api=Recorder(db_0=ActionResult.FAILED))
    asked, _ = run(seen, first.state if minutes else None, now=NOW + timedelta(minutes=minutes))
    assert asked == want


def test_the_time_out_of_a_second_resize_starts_afresh():
    deferred = [waiting_leader([resize_condition()]), *three_pods()[1:]]
    seen = world([leader_vpa(min_replicas=1)], deferred, [LEADER_SCOPE])
    _, first = run(seen)
    calm = world([leader_vpa(min_replicas=1)], three_pods(memory=LEADER_MEMORY), [LEADER_SCOPE])
    _, between = run(calm, first.state, now=NOW + timedelta(minutes=2))
    later = NOW + timedelta(hours=2)
    assert run(seen, between.state, now=later)[0] == []
    _, upstream = run(calm, first.state, now=NOW + timedelta(minutes=2), rules=Rules.VPA_1_8)
    assert upstream.state.resizes_first_seen, "upstream keeps the old time and would evict at once"


def test_5_3_20_at_most_one_change_per_pod_and_loop():
    seen = world(
        [base_vpa(min_replicas=1), leader_vpa(min_replicas=1)], three_pods(memory="3Gi"), [LEADER_SCOPE]
    )
    asked, _ = run(seen, settings=SKIPS_BUDGET)
    assert sorted(name for _, name in asked) == ["db-0", "db-1", "db-2"]


def test_5_3_21_an_old_leader_keeps_its_size_while_it_is_within_the_bases_bounds():
    wide = recommended(BASE_MEMORY, lower={"memory": "1"}, upper={"memory": "16Gi"})
    pods = [pod("db-0", FOLLOWER, memory=LEADER_MEMORY, created=NOW - timedelta(hours=1)), *three_pods()[1:]]
    seen = world([vpa("base", wide, mode="InPlaceOrRecreate")], pods)
    asked, result = run(seen)
    assert asked == []
    assert "younger than 12 h" in why(result, "db-0")


@pytest.mark.parametrize("scope_name", [None, "leader"])
def test_5_6_a_recommendation_of_a_recommender_that_knows_no_scopes_is_for_no_role(scope_name):
    one = vpa("leader", recommended("4Gi"), scope=scope_name, min_replicas=1)
    assert bool(run(observed([one], three_pods(), [LEADER_SCOPE]))[0]) is (scope_name is None)


def test_scp_g1_with_the_gate_off_a_scoped_vpa_touches_nothing():
    seen = world([leader_vpa(min_replicas=1)], three_pods(), [LEADER_SCOPE])
    assert run(seen, gates=FeatureGates())[0] == []


NODE_SCOPE = scope("leader", nodes={"class": "big"})


@pytest.mark.parametrize("mode", ["InPlaceOrRecreate", "Recreate", "InPlace", "Auto"])
@pytest.mark.parametrize(
    ("scopes", "gates", "node"),
    [
        pytest.param([], ALL_GATES, "", id="the scope is gone, or was never listed"),
        pytest.param([LEADER_SCOPE], FeatureGates(in_place=True), "", id="the gate is off"),
        pytest.param([NODE_SCOPE], ALL_GATES, "n1", id="the node is not known"),
    ],
)
def test_nv_3_while_a_scope_cannot_be_read_no_pod_that_it_may_have_is_changed(mode, scopes, gates, node):
    """The leader was resized to the base's size within a loop, and the followers to the leader's with the next recommendation."""
    vpas = [base_vpa(mode=mode, min_replicas=1), leader_vpa(mode=mode, min_replicas=1)]
    sizes = [LEADER_MEMORY, "2Gi", "100Mi"]
    pods = [
        pod(f"db-{place}", FOLLOWER if place else LEADER, memory=memory, node=node)
        for place, memory in enumerate(sizes)
    ]
    asked, result = run(world(vpas, pods, scopes), gates=gates)
    assert asked == []
    for place in range(3):
        assert "which VPA controls it is not known" in why(result, f"db-{place}")
    assert run(world(vpas[:1], pods, scopes), gates=gates)[0], "without that VPA they are the base's"


def test_scp_e4_an_overlap_warns_both_vpas_once():
    vpas = [vpa("a", recommended("4Gi"), scope="a", age_days=9), vpa("b", recommended("2Gi"), scope="b")]
    seen = world(vpas, three_pods(), [scope("a", pods=LEADER), scope("b", pods=LEADER)])
    _, first = run(seen)
    warned = [(event.object, event.type) for event in first.events if event.reason == "VPAScopeConflict"]
    assert warned == [("shop/a", "Warning"), ("shop/b", "Warning")]
    _, second = run(seen, first.state)
    assert not [event for event in second.events if event.reason == "VPAScopeConflict"]


def in_place_vpa(memory):
    return vpa("leader", recommended(memory), scope="leader", mode="InPlace", min_replicas=1)


def test_mode_in_place_never_evicts_and_retries_an_infeasible_size_only_when_it_is_lower():
    pods = three_pods()
    seen = world([in_place_vpa("8Gi")], pods, [LEADER_SCOPE])
    asked, first = run(seen, api=Recorder(db_0=ActionResult.INFEASIBLE))
    assert asked == [("resize", "db-0")]
    asked, second = run(seen, first.state)
    assert asked == []
    assert [event.reason for event in second.events] == ["InPlaceResizeSkipped"]
    assert run(world([in_place_vpa("9Gi")], pods, [LEADER_SCOPE]), second.state)[0] == []
    assert run(world([in_place_vpa("7Gi")], pods, [LEADER_SCOPE]), second.state)[0] == [("resize", "db-0")]


def test_what_was_infeasible_for_one_role_is_not_held_against_the_next():
    seen = world([in_place_vpa("8Gi")], three_pods(), [LEADER_SCOPE])
    _, first = run(seen, api=Recorder(db_0=ActionResult.INFEASIBLE))
    assert first.state.infeasible
    follower = vpa("follower", recommended("8Gi"), scope="follower", mode="InPlace", min_replicas=1)
    moved = world([follower], three_pods(leader=1), [scope("follower", pods=FOLLOWER)])
    assert ("resize", "db-0") in run(moved, first.state, settings=SKIPS_BUDGET)[0]


def test_mode_in_place_waits_for_the_budget():
    follower = vpa("base", recommended("4Gi"), mode="InPlace")
    seen = world([follower], three_pods())
    assert len(run(seen)[0]) == 1
    assert len(run(seen, settings=UPSTREAM_SETTINGS, rules=Rules.VPA_1_8)[0]) == 3, "upstream sends them all"


def test_a_failed_resize_falls_back_to_eviction():
    seen = world([base_vpa()], three_pods(memory="1Gi"))
    asked, _ = run(seen, api=Recorder(db_0=ActionResult.FAILED))
    assert asked[:2] == [("resize", "db-0"), ("resize", "db-1")]
    assert ("evict", "db-0") not in asked, "the resize of db-1 used the budget"
    lone = world([base_vpa(min_replicas=1)], [pod(memory="1Gi")])
    assert run(lone, api=Recorder(db_0=ActionResult.FAILED))[0] == [("resize", "db-0"), ("evict", "db-0")]


def test_a_pod_that_already_asks_for_the_recommended_size_is_neither_resized_nor_evicted():
    status = {"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
    waiting = [pod("db-0", LEADER, memory=LEADER_MEMORY, statuses=[status]), *three_pods()[1:]]
    seen = world([leader_vpa(min_replicas=1)], waiting, [LEADER_SCOPE])
    asked, result = run(seen)
    assert asked == []
    assert why(result, "db-0") == "its containers already ask for what is recommended"


@pytest.mark.parametrize(
    ("requirement", "want"),
    [("TargetHigherThanRequests", 1), ("TargetLowerThanRequests", 0)],
)
def test_eviction_requirements_choose_the_direction(requirement, want):
    one = vpa(
        "base",
        recommended("4Gi", "200m"),
        evictionRequirements=[{"resources": ["memory"], "changeRequirement": requirement}],
    )
    assert len(run(world([one], three_pods()))[0]) == want


def test_a_creator_of_unknown_kind_is_budgeted_by_its_live_pods():
    pods = [pod(f"db-{place}", owner="CloneSet/db") for place in range(3)]
    controllers = {"CloneSet/shop/db": ObservedController()}
    seen = world([vpa("base", recommended("4Gi"), target="CloneSet/db")], pods, controllers=controllers)
    assert len(run(seen)[0]) == 1
    upstream, _ = run(seen, settings=UPSTREAM_SETTINGS, rules=Rules.VPA_1_8)
    assert len(upstream) == 3, "upstream takes 0 configured replicas for no limit at all"


def test_a_creator_whose_replicas_cannot_be_read_loses_no_pod():
    controllers = {"StatefulSet/shop/db": ObservedController(replicas=None)}
    seen = world([vpa("base", recommended("4Gi"))], three_pods(), controllers=controllers)
    assert run(seen)[0] == []


def test_ignored_namespaces_deleted_and_finished_pods_are_left_alone():
    seen = world([vpa("base", recommended("4Gi"))], three_pods())
    assert run(seen, settings=UpdaterSettings(ignored_namespaces=("shop",)))[0] == []
    finished = [pod(f"db-{place}", phase="Succeeded") for place in range(3)]
    assert run(world([vpa("base", recommended("4Gi"))], finished))[0] == []


def test_every_pod_gets_a_verdict():
    pods = [*three_pods(), pod("stray", owner=None)]
    _, result = run(world([base_vpa()], pods), gates=ALL_GATES)
    assert {entry.pod for entry in result.pod_results} == {f"shop/{member.name}" for member in pods}
    assert why(result, "stray") == "the pod has no controller that a VPA can target"


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
@pytest.mark.parametrize("outcome", [ActionResult.INFEASIBLE, ActionResult.INVALID, ActionResult.FAILED])
@pytest.mark.parametrize("mode", ["InPlace", "InPlaceOrRecreate"])
def test_a_recommendation_that_a_node_cannot_hold_is_remembered_in_mode_in_place_only(mode, outcome, rules):
    """In the other mode an eviction may move the pod to a node that can."""
    seen = msgspec.structs.replace(
        world([base_vpa(mode=mode, min_replicas=1)], [pod("db-0", memory="3Gi")]), serves_resize=True
    )
    settings = SKIPS_BUDGET if rules is Rules.TRIMTAB else UPSTREAM_SETTINGS
    asked, result = run(seen, settings=settings, rules=rules, api=Recorder(db_0=outcome))
    assert ("resize", "db-0") in asked
    is_remembered = mode == "InPlace" and outcome is not ActionResult.FAILED
    assert bool(result.state.infeasible) is is_remembered


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (ActionResult.RATE_LIMITED, "the rate limit of evictions and resizes is reached"),
        (ActionResult.FAILED, "its requests are outside the recommended range"),
    ],
)
def test_a_resize_that_did_not_happen_is_a_result_of_its_pod(outcome, says, rules):
    seen = msgspec.structs.replace(
        world([base_vpa(mode="InPlace", min_replicas=1)], [pod("db-0", memory="3Gi")]), serves_resize=True
    )
    settings = SKIPS_BUDGET if rules is Rules.TRIMTAB else UPSTREAM_SETTINGS
    _, result = run(seen, settings=settings, rules=rules, api=Recorder(db_0=outcome))
    assert why(result, "db-0") == says
    assert [entry.action for entry in result.pod_results] == (
        ["none"] if outcome is ActionResult.RATE_LIMITED else ["resize failed"]
    )


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
def test_a_resize_beyond_the_rate_limit_becomes_no_eviction(rules):
    seen = msgspec.structs.replace(
        world([base_vpa(min_replicas=1)], [pod("db-0", memory="3Gi")]), serves_resize=True
    )
    settings = SKIPS_BUDGET if rules is Rules.TRIMTAB else UPSTREAM_SETTINGS
    limited = Recorder(db_0=ActionResult.RATE_LIMITED)
    assert run(seen, settings=settings, rules=rules, api=limited)[0] == [("resize", "db-0")]
