"""How the history of Prometheus and checkpoints become one history, and which VPAs wait for it."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import LEADER, index, pod, scope, vpa, world
from tests.unit.decide.vertical.usage_builders import HOUR_NS, START_NS, Load, Recommender, member
from trimtab.clock import VirtualClock
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.input.checkpoints import save_checkpoints
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector
from trimtab.model.usage_history import ContainerName, UsageHistory
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.cluster_view import ControlSnapshot
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.bootstrap import HistoryBootstrap
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.history_loader import HistoryFailure
from trimtab.operator.vertical.recommender.usage import PodCapacities

BASE = NamespacedName("shop", "base")
NOW_NS = START_NS + 8 * HOUR_NS


def saved(container: str, hours: int = 1) -> Checkpoint:
    """Return a checkpoint of a container with a sample at the end of each hour."""
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    for _ in range(hours):
        recommender.scrape({"db-0": Load(200, 2**30)}, minutes=60)
    (found,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    return msgspec.structs.replace(
        found,
        metadata=msgspec.structs.replace(found.metadata, name=f"base-{container}"),
        spec=msgspec.structs.replace(found.spec, container_name=container),
    )


def history(*containers: str, first: int = 0, hours: int = 8) -> UsageHistory:
    """Return usage of db-0 for these hours. The first of them have no samples."""
    names = [ContainerName("db-0", container) for container in containers]
    values = (*(float("nan"),) * first, *(0.2,) * (hours - first))
    memory = tuple(value * 1e9 for value in values)
    moments = tuple(START_NS + hour * HOUR_NS for hour in range(hours))
    return UsageHistory("shop", moments, dict.fromkeys(names, values), dict.fromkeys(names, memory))


class Loader:
    """Has the results that a test names, and notes what is asked for."""

    def __init__(self, **results: UsageHistory | HistoryFailure) -> None:
        self.results: dict[str, UsageHistory | HistoryFailure] = dict(results)
        self.wanted: list[tuple[str, set[str]]] = []
        self.counts = {"reading": 3, "read": 2, "failed": 1}

    def want(self, namespace: str, keys: Iterable[str]) -> None:
        self.wanted.append((namespace, set(keys)))

    def take(self, namespace: str) -> UsageHistory | HistoryFailure | None:
        return self.results.pop(namespace, None)


class World:
    """A bootstrap of some VPAs and pods, whose checkpoints and history a test names."""

    def __init__(
        self,
        *stored: Checkpoint,
        loader: Loader | None = None,
        vpas: Sequence[VerticalPodAutoscaler] = (vpa("base"),),
        pods: Sequence[Pod] = (member("db-0"),),
        scopes: Sequence[VPAScope] = (),
    ) -> None:
        self.stored = stored
        self.refused: dict[str, str] = {}
        self.read_for: list[list[NamespacedName]] = []
        everything: Any = SimpleNamespace(count=1, held=lambda: (0,), share=lambda _: 0)
        self.states = ShardedClusterStates(ClusterState, everything)
        self.states.sync_shards()
        (self.state,) = self.states
        for one in vpas:
            self.state.add_or_update_vpa(one, Selector.parse("app=db"))
        seen = world(vpas, pods, scopes)
        self.control = ControlSnapshot((), index(seen), seen.owners(), {})
        self.registry = CollectorRegistry()
        view: Any = SimpleNamespace(pods=pods)
        itself: Any = self
        found: Any = loader
        self.bootstrap = HistoryBootstrap(view, self.states, itself, RecommenderMetrics(self.registry), found)

    async def read(self, vpas: list[NamespacedName]) -> dict[NamespacedName, list[Checkpoint]]:
        self.read_for.append(vpas)
        return {BASE: list(self.stored)}

    def load(self, *new: NamespacedName) -> Any:
        capacities = PodCapacities({}, lambda _: "")
        now = times.from_ns(NOW_NS)
        return VirtualClock().run(self.bootstrap.load(self.control, new, capacities, now))

    @property
    def replayed(self) -> float:
        return self.registry.get_sample_value("trimtab_recommender_history_samples_total") or 0.0

    @property
    def from_checkpoints(self) -> set[str]:
        return set(self.state.vpas["shop/base"].initial)


def test_a_history_that_reaches_back_as_far_replaces_the_checkpoint_of_its_container_alone():
    for stored in ((saved("app"), saved("log")), (saved("log"), saved("app"))):
        test = World(*stored, loader=Loader(shop=history("app")))
        assert test.load(BASE).waiting == frozenset()
        assert test.from_checkpoints == {"log"}
        assert test.replayed == 16, "8 samples of CPU and 8 of memory"


@pytest.mark.parametrize(
    ("hours_saved", "replayed"),
    [
        pytest.param(2, 6, id="saved until the second hour: three samples of each resource are newer"),
        pytest.param(6, 2, id="saved until the sixth hour: one is newer"),
        pytest.param(7, 0, id="saved until the end"),
    ],
)
def test_a_history_that_lost_its_beginning_adds_what_is_newer_than_the_checkpoint(hours_saved, replayed):
    test = World(saved("app", hours_saved), loader=Loader(shop=history("app", first=5)))
    test.load(BASE)
    assert (test.from_checkpoints, test.replayed) == ({"app"}, replayed)


def test_a_history_is_added_once():
    loader = Loader(shop=history("app"))
    test = World(loader=loader)
    test.load(BASE)
    assert test.load().waiting == frozenset()
    test.load(BASE)
    assert (test.replayed, len(loader.wanted)) == (16, 1)


def test_the_keys_of_labels_are_those_of_pods_targets_and_scopes_of_the_namespace():
    loader = Loader()
    test = World(
        loader=loader,
        vpas=[vpa("base"), vpa("lead", scope="leader"), vpa("far", namespace="other", scope="leader")],
        pods=[pod(labels={"zone": "a"}), pod(labels={"not": "mine"}, namespace="other")],
        scopes=[scope("leader", pods=LEADER, nodes={"disk": "fast"})],
    )
    test.load(BASE)
    assert loader.wanted == [("shop", {"app", "zone", "role"})]


def test_a_scope_that_does_not_exist_has_no_keys():
    loader = Loader()
    test = World(loader=loader, vpas=[vpa("base", scope="missing")], pods=[])
    test.load(BASE)
    assert loader.wanted == [("shop", {"app"})]


def test_a_vpa_that_is_deleted_while_it_waits_is_forgotten():
    loader = Loader()
    test = World(loader=loader)
    assert test.load(BASE).waiting == {"shop"}
    test.state.retire_vpa("shop/base")
    test.state.vpas.clear()
    assert test.load().waiting == frozenset()
    assert (len(loader.wanted), test.read_for) == (1, [])


def test_a_vpa_waits_until_its_history_is_read_and_others_do_not():
    loader = Loader(other=HistoryFailure("down"))
    test = World(loader=loader, vpas=[vpa("base"), vpa("far", namespace="other")])
    far = NamespacedName("other", "far")
    progress = test.load(BASE, far)
    assert (progress.waiting, progress.failed, progress.refused) == ({"shop"}, {"other": "down"}, {})
    assert test.read_for == [[far]]
    assert test.replayed == 0
    loader.results["shop"] = history("app")
    assert test.load().waiting == frozenset()
    assert test.read_for == [[far], [BASE]]
    assert test.replayed == 16


@pytest.mark.parametrize("with_history", [True, False])
def test_a_namespace_whose_checkpoints_may_not_be_read_waits(with_history):
    loader = Loader(shop=history("app")) if with_history else None
    test = World(saved("log"), loader=loader)
    test.refused = {"shop": "403"}
    progress = test.load(BASE)
    assert (progress.waiting, progress.refused) == ({"shop"}, {"shop": "403"})
    assert (test.from_checkpoints, test.replayed) == (set(), 0)
    test.refused = {}
    progress = test.load()
    assert (progress.waiting, progress.refused) == (frozenset(), {})
    assert (test.from_checkpoints, test.replayed) == ({"log"}, 16 if with_history else 0)
    assert len(test.read_for) == 2
    test.load()
    assert len(test.read_for) == 2, "nothing is missing"


def test_a_history_that_was_read_and_not_replayed_yet_hides_no_other_namespace():
    far = NamespacedName("zoo", "far")
    loader = Loader(shop=history("app"))
    test = World(loader=loader, vpas=[vpa("base"), vpa("far", namespace="zoo")])
    test.refused = {"shop": "403"}
    test.load(BASE)
    progress = test.load(far)
    assert progress.waiting == {"shop", "zoo"}
    assert [namespace for namespace, _ in loader.wanted] == ["shop", "zoo"]


def test_the_state_of_the_read_histories_is_counted():
    test = World(loader=Loader())
    test.load(BASE)
    name = "trimtab_recommender_history_namespaces"
    counts = {state: test.registry.get_sample_value(name, {"state": state}) for state in Loader().counts}
    assert counts == {"reading": 3.0, "read": 2.0, "failed": 1.0}
