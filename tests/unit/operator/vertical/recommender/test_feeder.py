"""What one load of the caches tells the recommender: VPAs, the pods that feed them, and conflicts."""

from types import SimpleNamespace
from typing import Any

from tests.unit.decide.vertical.policy_builders import FOLLOWER, LEADER, index, pod, scope, vpa, world
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.model.core.meta import NamespacedName
from trimtab.model.labels.selector import Selector
from trimtab.operator.vertical.cluster_view import ControlSnapshot, Targeted
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import ClusterStateFeeder, LoadResult


class Pods(list[Any]):
    """A cache of pods."""

    def get(self, name: str, namespace: str) -> Any:
        return next((pod for pod in self if (pod.name, pod.metadata.namespace) == (name, namespace)), None)


def load(vpas: Any, pods: Any, scopes: Any = (), victims: Any = ()) -> tuple[ClusterStateFeeder, LoadResult]:
    seen = world(vpas, [*pods, *victims], scopes)
    everything: Any = SimpleNamespace(held=lambda: (0,), share=lambda _: 0)
    states = ShardedClusterStates(ClusterState, everything)
    states.sync_shards()
    targeted = tuple(Targeted(entry, Selector.parse("app=db")) for entry in vpas)
    control = ControlSnapshot(targeted, index(seen), seen.owners(), {})
    feeder = ClusterStateFeeder(states)
    view: Any = SimpleNamespace(pods=Pods(pods))
    return feeder, feeder.load(view, control, 0, victims)


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
