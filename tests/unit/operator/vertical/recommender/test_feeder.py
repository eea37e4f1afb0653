"""What one load of the caches tells the recommender: VPAs, the pods that feed them, and conflicts."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import FOLLOWER, LEADER, index, pod, scope, vpa, world
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.observation import ObservedController
from trimtab.model.core.meta import NamespacedName
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import RecommenderSelector
from trimtab.operator.vertical.cluster_view import ControlSnapshot, Targeted
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import (
    ClusterStateFeeder,
    LoadResult,
    UnsupportedConfig,
    is_served_by,
    usable_selector,
)
from trimtab.operator.vertical.targets import Unsupported


class Pods(list[Any]):
    """A cache of pods."""

    def get(self, name: str, namespace: str) -> Any:
        return next((pod for pod in self if (pod.name, pod.metadata.namespace) == (name, namespace)), None)


def make_feeder(make: Any = ClusterState, **options: Any) -> ClusterStateFeeder:
    everything: Any = SimpleNamespace(count=1, held=lambda: (0,), share=lambda _: 0)
    states = ShardedClusterStates(make, everything)
    states.sync_shards()
    return ClusterStateFeeder(states, **options)


def feed(
    feeder: ClusterStateFeeder,
    vpas: Any,
    pods: Any,
    scopes: Any = (),
    victims: Any = (),
    unsupported: Any = (),
) -> LoadResult:
    """Load once, with a target that cannot be resolved for the VPAs in `unsupported`."""
    known = {f"StatefulSet/shop/{name}": ObservedController(replicas=1) for name in ("db", "web")}
    seen = world(vpas, [*pods, *victims], scopes, controllers=known)
    targeted = tuple(
        Targeted(
            entry,
            Unsupported("no target") if entry.metadata.name in unsupported else Selector.parse("app=db"),
        )
        for entry in vpas
    )
    control = ControlSnapshot(targeted, index(seen), seen.owners(), {})
    view: Any = SimpleNamespace(pods=Pods(pods))
    return feeder.load(view, control, 0, victims)


def load(vpas: Any, pods: Any, scopes: Any = (), victims: Any = ()) -> tuple[ClusterStateFeeder, LoadResult]:
    feeder = make_feeder()
    return feeder, feed(feeder, vpas, pods, scopes, victims)


def names(*vpas: str) -> tuple[NamespacedName, ...]:
    return tuple(NamespacedName("shop", name) for name in vpas)


def test_two_scopes_that_match_one_pod_are_a_conflict_of_the_older_and_the_newer():
    vpas = [vpa("older", scope="leader", age_days=9), vpa("newer", scope="gold", age_days=1)]
    scopes = [scope("leader", pods=LEADER), scope("gold", pods={"tier": "gold"})]
    pods = [pod("db-0", {**LEADER, "tier": "gold"}), pod("db-1", LEADER), pod("db-2", FOLLOWER)]
    _, loaded = load(vpas, pods, scopes)
    assert [(conflict.winner, conflict.loser) for conflict in loaded.conflicts] == [
        ("shop/older", "shop/newer")
    ]
    assert "shop/db-0" in loaded.conflicts[0].message
    assert loaded.usable == loaded.new == names("older", "newer")
    _, loaded = load(vpas, pods[1:], scopes)
    assert loaded.conflicts == ()


def test_every_pod_of_a_group_with_a_conflict_is_named():
    vpas = [vpa("older", scope="leader", age_days=9), vpa("newer", scope="gold", age_days=1)]
    scopes = [scope("leader", pods=LEADER), scope("gold", pods={"tier": "gold"})]
    _, loaded = load(vpas, [pod(f"db-{place}", {**LEADER, "tier": "gold"}) for place in range(2)], scopes)
    named = [f"shop/db-{place}" in conflict.message for place, conflict in enumerate(loaded.conflicts)]
    assert named == [True, True]


def test_a_pod_feeds_its_vpa_and_a_pending_one_does_not():
    pods = [pod("db-0", node="n1"), pod("db-1", phase="Pending"), pod("db-2", namespace="other")]
    feeder, _ = load([vpa("base")], pods)
    assert feeder.receivers_of(PodId("shop", "db-0")) == ("shop/base",)
    assert feeder.node_of(PodId("shop", "db-0")) == "n1"
    for known in (PodId("shop", "db-1"), PodId("other", "db-2")):
        assert (feeder.receivers_of(known), feeder.states_of(known), feeder.node_of(known)) == ((), (), "")


def test_a_victim_that_is_gone_feeds_its_vpa_once_more():
    feeder, _ = load([vpa("base")], [pod("db-0")], victims=[pod("db-1")])
    assert len(feeder.states_of(PodId("shop", "db-1"))) == 1


def test_a_vpa_that_is_not_supported_hides_none_after_it():
    vpas = [vpa("bad"), vpa("good", target="StatefulSet/other")]
    loaded = feed(make_feeder(), vpas, [], unsupported=("bad",))
    assert loaded.usable == loaded.new == names("good")
    assert [(name, reason.reason) for name, reason in loaded.unusable.items()] == [
        (NamespacedName("shop", "bad"), "TargetUnsupported")
    ]


def test_a_vpa_is_new_once_and_gone_when_it_is_deleted():
    feeder = make_feeder()
    assert feed(feeder, [vpa("base")], []).new == names("base")
    loaded = feed(feeder, [vpa("base")], [])
    assert (loaded.usable, loaded.new) == (names("base"), ())
    assert feed(feeder, [], []).usable == ()


@pytest.mark.parametrize("pending_first", [True, False])
def test_a_pod_that_is_left_out_hides_none_after_it(pending_first):
    left_out = [pod("db-1", phase="Pending"), pod("db-2", namespace="other")]
    pods = [*left_out, pod("db-0")] if pending_first else [pod("db-0"), *left_out]
    feeder, _ = load([vpa("base")], pods)
    assert feeder.receivers_of(PodId("shop", "db-0")) == ("shop/base",)


def test_a_deleted_pod_is_kept_for_its_last_samples_and_then_forgotten():
    feeder, _ = load([vpa("base")], [pod("db-0"), pod("db-1")])
    feed(feeder, [vpa("base")], [pod("db-1")])
    gone, kept = PodId("shop", "db-0"), PodId("shop", "db-1")
    (state,) = feeder.states_of(gone)
    assert gone in state.pods
    feeder.forget_gone()
    assert (feeder.states_of(gone), gone in state.pods) == ((), False)
    assert (feeder.states_of(kept), kept in state.pods) == ((state,), True)


def test_groups_of_labels_are_kept_while_a_pod_has_them():
    """Each role change makes a group, so that unused ones would add up."""
    feeder = make_feeder()
    for number in range(5):
        feed(feeder, [vpa("base")], [pod("db-0"), pod("db-1", {"turn": str(number)})])
        feeder.forget_gone()
    assert len(feeder._groups) == 2
    known = dict(feeder._groups)
    feed(feeder, [vpa("base")], [pod("db-0"), pod("db-1", {"turn": "4"}), pod("db-2")])
    assert feeder._groups == known, "a pod like another is in its group"


def test_a_pod_that_a_new_vpa_wants_is_added_with_the_memory_saver():
    """Upstream's VPAs get samples of every pod with their labels, and keep only those that a VPA wants."""
    upstreams = make_feeder(lambda: ClusterState(rules=Rules.VPA_1_8), matched_only=True)
    other = pod("other-0", owner="StatefulSet/other")
    plain = PodId("shop", "other-0")
    apart = vpa("apart", target="StatefulSet/apart", namespace="shop")
    seen = world([apart], [other])

    def turn(selector: str) -> tuple[ClusterState, ...]:
        control = ControlSnapshot(
            (Targeted(apart, Selector.parse(selector)),), index(seen), seen.owners(), {}
        )
        view: Any = SimpleNamespace(pods=Pods([other]))
        upstreams.load(view, control, 0)
        return upstreams.states_of(plain)

    assert turn("app=else") == ()
    (state,) = turn("app=db")
    assert plain in state.pods
    assert turn("app=else") == ()
    assert plain not in state.pods


@pytest.mark.parametrize("is_first", [True, False])
def test_one_vpa_with_the_labels_of_a_pod_is_enough_for_upstreams_memory_saver(is_first):
    feeder = make_feeder(lambda: ClusterState(rules=Rules.VPA_1_8), matched_only=True)
    found = [
        Targeted(vpa("match", target="StatefulSet/a"), Selector.parse("app=db")),
        Targeted(vpa("other", target="StatefulSet/b"), Selector.parse("app=else")),
        Targeted(vpa("far", target="StatefulSet/c", namespace="mail"), Selector.parse("app=db")),
        Targeted(vpa("bad", target="StatefulSet/d"), Unsupported("no target")),
    ]
    targeted = found if is_first else found[::-1]
    pods = [pod("other-0", owner="StatefulSet/other"), pod("no-0", {"app": "no"}, owner="StatefulSet/no")]
    seen = world([entry.vpa for entry in targeted], pods)
    control = ControlSnapshot(tuple(targeted), index(seen), seen.owners(), {})
    view: Any = SimpleNamespace(pods=Pods(pods))
    feeder.load(view, control, 0)
    assert len(feeder.states_of(PodId("shop", "other-0"))) == 1
    assert feeder.states_of(PodId("shop", "no-0")) == ()


def test_with_the_memory_saver_a_pod_without_a_vpa_is_left_out():
    pods = [pod("db-0"), pod("web-0", owner="StatefulSet/web")]
    saver, plain = make_feeder(matched_only=True), make_feeder()
    for feeder in (saver, plain):
        feed(feeder, [vpa("base")], pods)
        assert len(feeder.states_of(PodId("shop", "db-0"))) == 1
    assert saver.states_of(PodId("shop", "web-0")) == ()
    assert len(plain.states_of(PodId("shop", "web-0"))) == 1


@pytest.mark.parametrize(
    ("recommenders", "name", "is_served"),
    [
        ([], "default", True),
        ([], "mine", False),
        (["mine"], "mine", True),
        (["mine"], "default", False),
        (["other", "mine"], "mine", True),
        (["mine", "other"], "mine", True),
    ],
)
def test_a_vpa_is_served_by_the_recommenders_that_it_names(recommenders, name, is_served):
    named = tuple(RecommenderSelector(name=each) for each in recommenders)
    plain = vpa("base")
    spec = msgspec.structs.replace(plain.spec, recommenders=named)
    assert is_served_by(msgspec.structs.replace(plain, spec=spec), {name}) is is_served


def test_vpas_of_waiting_namespaces_are_not_usable_and_the_others_are():
    loaded = LoadResult((*names("a", "b"), NamespacedName("mail", "c")), {}, names("a"))
    assert loaded.without(frozenset(), {}) is loaded
    held = loaded.without(frozenset({"shop"}), {"shop": "403", "mail": "404"})
    assert held.usable == (NamespacedName("mail", "c"),)
    assert held.waiting == dict.fromkeys(names("a", "b"), "403")
    assert held.new == names("a")
    assert held.namespaces == {"shop", "mail"}


def sharded_feeder(held: list[int]) -> tuple[ClusterStateFeeder, ShardedClusterStates]:
    """Return a feeder whose VPAs `base` and `web` are in shards of their own."""
    owner: Any = SimpleNamespace(
        count=1, held=lambda: tuple(held), share=lambda key: int(key.endswith("web"))
    )
    states = ShardedClusterStates(ClusterState, owner)
    states.is_whole = False
    states.sync_shards()
    return ClusterStateFeeder(states), states


def test_a_deleted_pod_is_removed_from_the_states_that_are_still_held():
    held = [0, 1]
    feeder, states = sharded_feeder(held)
    vpas = [vpa("base"), vpa("web", target="StatefulSet/web")]
    pods = [pod("db-0"), pod("web-0", owner="StatefulSet/web")]
    feed(feeder, vpas, pods)
    base, web = states
    db, other = PodId("shop", "db-0"), PodId("shop", "web-0")
    assert (set(base.pods), set(web.pods)) == ({db}, {other})
    held.remove(1)
    states.sync_shards()
    feed(feeder, vpas, [])
    feeder.forget_gone()
    assert set(base.pods) == set(), "its shard is one of ours"
    assert set(web.pods) == {other}, "a lost state is not touched"
    held.append(1)
    states.sync_shards()
    feed(feeder, vpas, pods)
    feed(feeder, vpas, [])
    feeder.forget_gone()
    assert [set(state.pods) for state in states] == [set(), set()], "one of two held states"


def test_a_history_belongs_to_the_selectors_of_target_and_scope():
    scopes = [scope("leader", pods=LEADER, nodes={"disk": "fast"})]
    vpas = [vpa("base"), vpa("lead", scope="leader")]
    seen = world(vpas, [], scopes)
    targeted = [Targeted(entry, Selector.parse("app=db")) for entry in vpas]
    control = ControlSnapshot(tuple(targeted), index(seen), seen.owners(), {})
    assert [str(usable_selector(found, control)) for found in targeted] == [
        "app=db",
        "app=db,role=leader,node:disk=fast",
    ]
    missing = ControlSnapshot((), index(world([], [])), seen.owners(), {})
    assert str(usable_selector(targeted[1], missing)) == "app=db", "not indexed yet"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(Targeted(vpa("base"), Unsupported("no target")), "TargetUnsupported", id="no target"),
        pytest.param(
            Targeted(vpa("lead", scope="missing"), Selector.parse("app=db")), "ScopeNotFound", id="no scope"
        ),
    ],
)
def test_an_unusable_vpa_says_why(found, reason):
    seen = world([found.vpa], [])
    control = ControlSnapshot((found,), index(seen), seen.owners(), {})
    result = usable_selector(found, control)
    assert isinstance(result, UnsupportedConfig)
    assert result.reason == reason
