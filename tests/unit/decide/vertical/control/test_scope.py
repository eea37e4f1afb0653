"""Which VPA controls a pod: SCP-U1, U2, E3, E4, G1, N3 and the edge cases of 5.3 that are decisions of control."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    FOLLOWER,
    LEADER,
    NOW,
    index,
    pod,
    recommended,
    scope,
    vpa,
    world,
)
from trimtab.decide.vertical.control.control import control_of, unreported_conflicts
from trimtab.decide.vertical.control.controllers import Controller, ControllerIndex, ControllerKey
from trimtab.decide.vertical.control.scope import ScopeError, node_name_of, resolve_scope
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.observation import ObservedController
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.vpa.types import RecommenderSelector, VPAScope

LEADER_SCOPE = scope("leader", pods=LEADER)


def control(seen, one, gates=ALL_GATES, rules=Rules.TRIMTAB):
    return control_of(one, index(seen, gates, rules), seen.owners(), seen.nodes)


def controller(seen, one, gates=ALL_GATES):
    return control(seen, one, gates).key


def of_new(seen, one, gates=ALL_GATES):
    return control_of(one, index(seen, gates), seen.owners(), seen.nodes, is_new=True).key


def receivers(seen, one):
    return tuple(claim.key for claim in control(seen, one).receivers)


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(pod(labels=LEADER), "shop/leader", id="the leader is controlled by the leader's VPA"),
        pytest.param(pod(labels=FOLLOWER), None, id="a follower is not"),
        pytest.param(
            pod(labels=LEADER, owner="StatefulSet/other"), None, id="another workload's leader is not"
        ),
        pytest.param(pod(labels=LEADER, owner=None), None, id="5.3-28 nor is a pod that only has the labels"),
        pytest.param(
            pod(labels=LEADER, namespace="elsewhere"), None, id="5.3-23 nor one in another namespace"
        ),
        pytest.param(pod(labels={**LEADER, "app": "x"}), None, id="nor one outside the target's selector"),
    ],
)
def test_scp_u1_a_scoped_vpa_controls_only_its_role(one, want):
    seen = world([vpa("leader", scope="leader")], [one], [LEADER_SCOPE], controllers=_two_workloads())
    assert controller(seen, one) == want


def _two_workloads():
    return {
        "StatefulSet/shop/db": ObservedController(replicas=3),
        "StatefulSet/shop/other": ObservedController(replicas=3),
        "StatefulSet/elsewhere/db": ObservedController(replicas=3),
    }


@pytest.mark.parametrize("base_age", [1, 9], ids=["base is younger", "base is older"])
def test_scp_u2_the_scoped_vpa_wins_whichever_was_created_first(base_age):
    vpas = [vpa("base", age_days=base_age), vpa("leader", scope="leader", age_days=5)]
    leader, follower = pod("db-0", LEADER), pod("db-1", FOLLOWER)
    seen = world(vpas, [leader, follower], [LEADER_SCOPE])
    assert controller(seen, leader) == "shop/leader"
    assert controller(seen, follower) == "shop/base", "5.3-1"


def test_scp_e3_a_pod_that_matches_no_scope_without_base_vpa_is_unmanaged():
    seen = world([vpa("leader", scope="leader")], [pod(labels=FOLLOWER)], [LEADER_SCOPE])
    found = control(seen, seen.pods[0])
    assert found.claim is None
    assert not found.conflicts
    assert receivers(seen, seen.pods[0]) == ()


def test_scp_e4_of_two_scopes_that_match_the_oldest_wins_and_both_are_told():
    gold = scope("gold", pods={"tier": "gold"})
    vpas = [vpa("gold", scope="gold", age_days=9), vpa("leader", scope="leader", age_days=3)]
    one = pod(labels={**LEADER, "tier": "gold"})
    seen = world(vpas, [one], [gold, LEADER_SCOPE])
    found = control(seen, one)
    assert found.key == "shop/gold"
    (conflict,) = found.conflicts
    assert (conflict.winner, conflict.loser) == ("shop/gold", "shop/leader")
    assert all(word in conflict.message for word in ("shop/db-0", "shop/gold", "shop/leader"))


def test_a_conflict_is_told_once_until_it_ends_and_comes_back():
    vpas = [vpa("a", scope="a", age_days=9), vpa("b", scope="b")]
    one = pod(labels=LEADER)
    seen = world(vpas, [one], [scope("a", pods=LEADER), scope("b", pods=LEADER)])
    conflicts = control(seen, one).conflicts
    fresh, told = unreported_conflicts(conflicts, frozenset())
    assert len(fresh) == 1
    assert unreported_conflicts(conflicts, told) == ((), told)
    _, told = unreported_conflicts((), told)
    assert len(unreported_conflicts(conflicts, told)[0]) == 1


def test_5_3_7_equal_age_is_decided_by_name():
    seen = world([vpa("b"), vpa("a")], [pod()])
    assert controller(seen, seen.pods[0]) == "shop/a"


def test_a_tie_of_unscoped_vpas_is_no_scope_conflict():
    seen = world([vpa("b"), vpa("a")], [pod()])
    assert control(seen, seen.pods[0]).conflicts == ()


def test_5_3_8_a_scoped_vpa_in_mode_off_leaves_control_to_the_base_but_learns():
    seen = world(
        [vpa("base"), vpa("leader", scope="leader", mode="Off")], [pod(labels=LEADER)], [LEADER_SCOPE]
    )
    (one,) = seen.pods
    assert controller(seen, one) == "shop/base"
    assert receivers(seen, one) == ("shop/base", "shop/leader")


def test_an_off_vpa_does_not_learn_from_pods_outside_its_scope():
    seen = world(
        [vpa("base"), vpa("leader", scope="leader", mode="Off")], [pod(labels=FOLLOWER)], [LEADER_SCOPE]
    )
    assert receivers(seen, seen.pods[0]) == ("shop/base",)


def test_d4_a_base_vpa_in_mode_off_shows_what_is_left_to_it_beside_an_active_role():
    vpas = [vpa("base", mode="Off"), vpa("leader", scope="leader")]
    seen = world(vpas, [pod("a", labels=LEADER), pod("b", labels=FOLLOWER)], [LEADER_SCOPE])
    leading, following = seen.pods
    assert receivers(seen, leading) == ("shop/leader",)
    assert receivers(seen, following) == ("shop/base",)


def test_a_vpa_in_mode_off_beside_an_active_one_of_its_level_learns_to_be_compared():
    seen = world([vpa("live"), vpa("trial", mode="Off", age_days=0)], [pod()])
    assert receivers(seen, seen.pods[0]) == ("shop/live", "shop/trial")


def test_two_recommenders_are_compared_by_a_vpa_in_mode_off_each():
    """The older one took all samples of the pods, and the other recommender had nothing to learn from."""
    other = vpa("other", mode="Off", age_days=1)
    named = msgspec.structs.replace(other.spec, recommenders=(RecommenderSelector(name="upstream"),))
    vpas = [vpa("ours", mode="Off", age_days=0), msgspec.structs.replace(other, spec=named)]
    seen = world(vpas, [pod()])
    assert set(receivers(seen, seen.pods[0])) == {"shop/ours", "shop/other"}


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "leader", "hot", "absent"]), st.integers(0, 2)), min_size=1, max_size=5
    ),
    st.sampled_from([LEADER, FOLLOWER]),
)
def test_d4_vpas_that_are_all_off_learn_from_the_pods_that_they_will_control(drawn, labels):
    scopes = [LEADER_SCOPE, scope("hot", pods=LEADER)]

    def seen_with(mode):
        vpas = [
            vpa(f"v{number}", scope=name or None, age_days=age, mode=mode)
            for number, (name, age) in enumerate(drawn)
            if mode == "Off" or name != "absent"  # which leaves pods undecided
        ]
        return world(vpas, [pod(labels=labels)], scopes)

    off, active = seen_with("Off"), seen_with("Recreate")
    (one,) = off.pods
    winner = control(active, one).key
    assert receivers(off, one) == ((winner,) if winner else ())
    told = {(conflict.winner, conflict.loser) for conflict in control(off, one).conflicts}
    assert told == {(conflict.winner, conflict.loser) for conflict in control(active, one).conflicts}


def test_5_3_9_a_scoped_vpa_in_mode_initial_keeps_control():
    seen = world(
        [vpa("base"), vpa("leader", scope="leader", mode="Initial")], [pod(labels=LEADER)], [LEADER_SCOPE]
    )
    (one,) = seen.pods
    found = control_of(one, index(seen).for_updater(), seen.owners(), {})
    assert found.key == "shop/leader"
    upstream = control_of(one, index(seen, rules=Rules.VPA_1_8).for_updater(), seen.owners(), {})
    assert upstream.key == "shop/base", "upstream drops Initial first"


def test_scp_n3_a_deleted_scope_fails_closed_and_resumes_when_recreated():
    vpas = [vpa("base"), vpa("leader", scope="leader")]
    one = pod(labels=LEADER)
    gone = world(vpas, [one], [])
    found = control(gone, one)
    assert found.key is None, "5.3-10 ruled anew: its size stays"
    assert "shop/leader" in found.undecided
    assert found.reason == found.undecided
    assert receivers(gone, one) == (), "nor does the base learn from it"
    assert of_new(gone, one) == "shop/base"
    error = index(gone).errors["shop/leader"]
    assert error.reason == "ScopeNotFound"
    assert "'leader'" in error.message
    assert error.message in found.undecided
    assert controller(world(vpas, [one], [LEADER_SCOPE]), one) == "shop/leader"


@pytest.mark.parametrize(
    ("vpas", "scopes", "one", "want"),
    [
        pytest.param(
            [vpa("leader", scope="leader"), vpa("gold", scope="gone")],
            [LEADER_SCOPE],
            pod(labels=LEADER),
            "shop/leader",
            id="a pod that a scope certainly has is its",
        ),
        pytest.param(
            [vpa("base"), vpa("leader", scope="leader", mode="Off")],
            [],
            pod(labels=LEADER),
            "shop/base",
            id="a VPA in mode Off controls nothing with its scope either",
        ),
        pytest.param(
            [vpa("base"), vpa("other", scope="gone", target="StatefulSet/other")],
            [],
            pod(),
            "shop/base",
            id="the scope of another workload raises no doubt",
        ),
        pytest.param(
            [vpa("base"), vpa("leader", scope="gone")],
            [],
            pod(labels={**LEADER, "app": "x"}),
            None,
            id="nor does a scope on a pod outside the target's selector",
        ),
    ],
)
def test_nv_3_only_pods_that_a_scope_may_have_are_undecided(vpas, scopes, one, want):
    found = control(world(vpas, [one], scopes, controllers=_two_workloads()), one)
    assert found.key == want
    assert found.undecided == ""


@pytest.mark.parametrize(
    ("gate", "vpas", "want"),
    [
        (True, [vpa("leader", recommended("4Gi"), scope="leader")], "shop/leader"),
        (False, [vpa("leader", scope="leader")], None),
        (True, [vpa("base")], "shop/base"),
        (False, [vpa("base")], "shop/base"),
        (False, [vpa("base"), vpa("leader", scope="leader")], None),
    ],
    ids=[
        "on, scoped",
        "off, scoped: inert, never the whole target",
        "on, plain",
        "off, plain",
        "off, both: undecided",
    ],
)
def test_scp_g1_gate_matrix(gate, vpas, want):
    seen = world(vpas, [pod(labels=LEADER)], [LEADER_SCOPE])
    gates = FeatureGates(vpa_selector_refinement=gate)
    assert controller(seen, seen.pods[0], gates) == want
    assert of_new(seen, seen.pods[0], gates) == (want or ("shop/base" if len(vpas) > 1 else None))
    errors = index(seen, gates).errors
    assert ("shop/leader" in errors) == (not gate and any(one.metadata.name == "leader" for one in vpas))


@pytest.mark.parametrize(
    ("given_scope", "level"),
    [
        pytest.param(None, 0, id="no scope"),
        pytest.param(scope("s"), 0, id="a scope without selectors"),
        pytest.param(scope("s", pods={}), 0, id="an empty podSelector"),
        pytest.param(scope("s", pods={}, nodes={}), 0, id="two empty selectors"),
        pytest.param(scope("s", pods=LEADER), 1, id="a podSelector"),
        pytest.param(scope("s", nodes={"gpu": "yes"}), 1, id="a nodeSelector"),
        pytest.param(
            scope("s", pods={**LEADER, "tier": "gold"}, nodes={"a": "b"}), 1, id="more is not higher"
        ),
    ],
)
def test_level(given_scope, level):
    scopes = {"shop/s": given_scope} if given_scope else {}
    found = resolve_scope(vpa("x", scope="s" if given_scope else None), scopes, is_gate_on=True)
    assert not isinstance(found, ScopeError)
    assert found.level == level


def test_a_scope_with_a_malformed_selector_matches_nothing_and_says_why():
    bad = wire.convert(
        {
            "metadata": {"name": "leader", "namespace": "shop"},
            "spec": {"podSelector": {"matchExpressions": [{"key": "role", "operator": "In"}]}},
        },
        VPAScope,
    )
    seen = world([vpa("leader", scope="leader")], [pod(labels=LEADER)], [bad])
    assert controller(seen, seen.pods[0]) is None
    assert index(seen).errors["shop/leader"].reason == "ScopeInvalid"


NODES = {"n1": {"class": "big"}, "n2": {"class": "small"}}
BIG = scope("big", nodes={"class": "big"})


def on_node(*names, field="metadata.name", operator="In"):
    terms = [{"matchFields": [{"key": field, "operator": operator, "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(pod(node="n1"), "shop/big", id="a pod on a node of the class"),
        pytest.param(pod(node="n2"), "shop/base", id="a pod on another node"),
        pytest.param(pod(node="n3"), None, id="5.3-15 a node that is not known leaves it undecided"),
        pytest.param(pod(), "shop/base", id="5.3-14 a pod without node does not match"),
        pytest.param(pod(affinity=on_node("n1")), "shop/big", id="5.3-14 a DaemonSet's pod names its node"),
        pytest.param(pod(affinity=on_node("n1", "n2")), "shop/base", id="two nodes in question are none"),
        pytest.param(pod(affinity=on_node("n1", operator="NotIn")), "shop/base", id="NotIn names no node"),
        pytest.param(
            pod(affinity=on_node("n1", field="metadata.uid")), "shop/base", id="another field is none"
        ),
    ],
)
def test_scp_s1_scopes_by_node(one, want):
    seen = world([vpa("base"), vpa("big", scope="big")], [one], [BIG], nodes=NODES)
    assert controller(seen, one) == want


def test_a_relabelled_node_changes_control_at_the_next_look():
    one = pod(node="n2")
    vpas = [vpa("base"), vpa("big", scope="big")]
    assert controller(world(vpas, [one], [BIG], nodes=NODES), one) == "shop/base"
    assert controller(world(vpas, [one], [BIG], nodes={"n2": {"class": "big"}}), one) == "shop/big"


def test_both_selectors_must_match():
    both = scope("both", pods=LEADER, nodes={"class": "big"})
    seen = world([vpa("both", scope="both")], [], [both], nodes=NODES)
    assert controller(seen, pod(labels=LEADER, node="n1")) == "shop/both"
    assert controller(seen, pod(labels=LEADER, node="n2")) is None
    assert controller(seen, pod(labels=FOLLOWER, node="n1")) is None


def test_5_3_13_at_creation_the_role_label_is_absent_so_the_base_applies():
    seen = world([vpa("base"), vpa("leader", scope="leader")], [], [LEADER_SCOPE])
    assert controller(seen, pod("db-%")) == "shop/base"
    assert controller(seen, pod("db-%", LEADER)) == "shop/leader", "unless the template carries it"


def test_5_3_24_vpas_of_different_targets_never_compete():
    vpas = [vpa("db"), vpa("other", target="StatefulSet/other", age_days=99)]
    seen = world(vpas, [], [], controllers=_two_workloads())
    found = control(seen, pod())
    assert found.key == "shop/db"
    assert found.lost == ()


def test_those_who_lost_are_named_with_the_reason():
    vpas = [vpa("base"), vpa("off", mode="Off"), vpa("leader", scope="leader"), vpa("gold", scope="gold")]
    seen = world(vpas, [], [LEADER_SCOPE, scope("gold", pods={"tier": "gold"})])
    lost = {claim.key: reason for claim, reason in control(seen, pod(labels=LEADER)).lost}
    assert "precedes it" in lost["shop/base"]
    assert lost["shop/off"] == "its update mode is Off"
    assert "podSelector tier=gold" in lost["shop/gold"]


def key(text):
    kind, _, name = text.partition("/")
    return ControllerKey("shop", kind, name)


@pytest.mark.parametrize(
    ("parents", "want"),
    [
        pytest.param({"Deployment/web": None}, "Deployment/web", id="the owner itself"),
        pytest.param(
            {"ReplicaSet/rs": "Deployment/web", "Deployment/web": None}, "Deployment/web", id="its owner"
        ),
        pytest.param({"Job/j": "CronJob/c", "CronJob/c": None}, "CronJob/c", id="a CronJob above a Job"),
        pytest.param(
            {"Deployment/web": "Foo/f"}, "Deployment/web", id="a custom owner without scale ends it"
        ),
        pytest.param({"ReplicaSet/rs": "Deployment/gone"}, None, id="a missing well-known owner: unknown"),
        pytest.param({"ReplicaSet/a": "ReplicaSet/b", "ReplicaSet/b": "ReplicaSet/a"}, None, id="a circle"),
    ],
)
def test_the_topmost_controller(parents, want):
    known = {key(name): Controller(key(parent) if parent else None) for name, parent in parents.items()}
    found = ControllerIndex(known).topmost(key(next(iter(parents))))
    assert found == (key(want) if want else None)


def test_a_custom_resource_with_scale_is_a_target_and_one_without_is_not():
    known = {
        key("StatefulSet/db"): Controller(key("Cluster/db")),
        key("Cluster/db"): Controller(key("Fleet/all"), is_scalable=True),
        key("Fleet/all"): Controller(None, is_scalable=False),
    }
    assert ControllerIndex(known).topmost(key("StatefulSet/db")) == key("Cluster/db")


def test_the_node_of_a_bound_pod_is_where_it_runs():
    assert node_name_of(pod(node="n2", affinity=on_node("n1"))) == "n2"


ROLES = st.sampled_from(["leader", "follower", "arbiter", None])
VPA_SHAPES = st.lists(
    st.tuples(
        st.sampled_from(["leader", "follower", None]),
        st.integers(0, 3),
        st.sampled_from(["Off", "Initial", "Recreate"]),
    ),
    min_size=1,
    max_size=5,
)
SCOPES = [scope(role, pods={"role": role}) for role in ("leader", "follower")]


def _vpas(shapes):
    return [
        vpa(f"v{place}", scope=role, age_days=age, mode=mode)
        for place, (role, age, mode) in enumerate(shapes)
    ]


@settings(max_examples=60)
@given(VPA_SHAPES, st.lists(ROLES, min_size=1, max_size=4), ROLES, st.randoms())
def test_adding_a_pod_never_changes_who_controls_the_others(shapes, roles, added, order):
    vpas = _vpas(shapes)
    pods = [pod(f"db-{place}", {"role": role} if role else {}) for place, role in enumerate(roles)]
    before = world(vpas, pods, SCOPES)
    shuffled = vpas[:]
    order.shuffle(shuffled)
    after = world(shuffled, [*pods, pod("db-new", {"role": added} if added else {})], SCOPES)
    assert [controller(before, pod) for pod in pods] == [controller(after, pod) for pod in pods]


@settings(max_examples=60)
@given(VPA_SHAPES, ROLES)
def test_the_controller_is_the_strongest_active_vpa_that_matches(shapes, role):
    seen = world(_vpas(shapes), [], SCOPES)
    one = pod(labels={"role": role} if role else {})
    active = [
        (-(wanted is not None), NOW - timedelta(days=age), f"shop/v{place}")
        for place, (wanted, age, mode) in enumerate(shapes)
        if mode != "Off" and wanted in (None, role)
    ]
    assert controller(seen, one) == (min(active)[2] if active else None)


def bound_by(*terms):
    """Make an unbound pod whose affinity has these terms: names of nodes, or None for a term on labels."""
    listed = [
        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
        if names is None
        else {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}
        for names in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return pod(affinity={"nodeAffinity": required})


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([["n1"]], "n1", id="one name"),
        pytest.param([["n1"], ["n1"]], "n1", id="the same name twice"),
        pytest.param([["n1", "n2"]], "", id="two names"),
        pytest.param([["n1"], ["n2"]], "", id="two terms with different names"),
        pytest.param([["n1"], None], "", id="a term without a name, last"),
        pytest.param([None, ["n1"]], "", id="a term without a name, first"),
        pytest.param([], "", id="no terms"),
    ],
)
def test_an_unbound_pod_is_on_the_node_that_all_terms_name(terms, want):
    assert node_name_of(bound_by(*terms)) == want
    assert node_name_of(pod(node="n9")) == "n9"
    assert node_name_of(pod()) == ""
