"""Controllers of kinds that are not watched: when they are read, and what of them is cached."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import pod, vpa
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.discovery import Served, UnknownKindError
from trimtab.decide.vertical.control.controllers import Controller, ControllerKey
from trimtab.model.core.workloads import Scale
from trimtab.model.json import wire
from trimtab.model.status import Status
from trimtab.operator.horizontal.kinds import SlimController, SlimWorkload
from trimtab.operator.vertical.targets import (
    FOUND_SECONDS,
    MISSING_SECONDS,
    UNUSED_SECONDS,
    Controllers,
    Unsupported,
)

ROLLOUT = ControllerKey("shop", "Rollout", "db")
OTHER = ControllerKey("shop", "Rollout", "other")
GONE = errors.NotFound("reading", Status(code=404, reason="NotFound"))


class Cache(dict[tuple[str, str], Any]):
    """The watched workloads of one kind."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def get(self, name: str, namespace: str) -> Any:  # type: ignore[override]
        return super().get((namespace, name))

    def __iter__(self) -> Any:
        return iter(self.values())


class World:
    """A server of Rollouts, of which each has a scale unless a test says otherwise."""

    def __init__(
        self, *, namespaced: bool = True, subresources: frozenset[str] = frozenset({"scale"})
    ) -> None:
        self.clock = VirtualClock()
        self.served = Served("argoproj.io", "v1", "rollouts", "Rollout", namespaced, subresources)
        self.kinds = {"Rollout"}
        self.failure: Exception | None = None
        self.owners: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.reads: list[str] = []
        self.notified = 0
        self.caches: dict[str, Cache] = {}
        itself: Any = self
        caches: Any = SimpleNamespace(get=lambda resource: self.caches.setdefault(resource.kind, Cache()))
        self.controllers = Controllers(itself, itself, caches)
        self.controllers.subscribe(self._on_change)

    def _on_change(self) -> None:
        self.notified += 1

    async def find_kind(self, _api_version: str, kind: str) -> Served:
        self.asked.append(kind)
        if kind not in self.kinds:
            raise UnknownKindError(f"no kind {kind}")
        return self.served

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        self.reads.append(name)
        if self.failure is not None:
            raise self.failure
        meta = {"name": name, "namespace": namespace, "ownerReferences": self.owners}
        return wire.convert({"metadata": meta}, resource.struct)

    async def read(self, _act: str, _path: str, _type: Any) -> Scale:
        return wire.convert({"spec": {"replicas": 3}, "status": {"selector": "app=db"}}, Scale)

    def add(self, kind: str, name: str, **spec: Any) -> Any:
        workload = wire.convert(
            {"metadata": {"name": name, "namespace": "shop"}, "spec": spec},
            SlimController if kind == "ReplicationController" else SlimWorkload,
        )
        self.caches[kind]["shop", name] = workload
        return workload

    def resolve(self, *owners: str) -> None:
        pods = [pod(f"db-{place}", owner=owner) for place, owner in enumerate(owners)]
        self.clock.run(self.controllers.resolve(pods))


def test_watched_and_read_controllers_are_listed_and_missing_ones_are_not():
    world = World()
    world.add("Deployment", "web")
    world.add("StatefulSet", "db")
    world.resolve("Rollout/db")
    world.failure = GONE
    world.resolve("Rollout/other")
    known = {
        ControllerKey("shop", "Deployment", "web"): Controller(None),
        ControllerKey("shop", "StatefulSet", "db"): Controller(None),
        ROLLOUT: Controller(None),
    }
    assert dict(world.controllers) == known
    assert len(world.controllers) == 3
    assert OTHER not in world.controllers


def test_a_kind_of_the_whole_cluster_controls_no_pods():
    world = World(namespaced=False)
    world.resolve("Rollout/db")
    assert (world.reads, list(world.controllers)) == ([], [])
    assert world.controllers.replicas(ROLLOUT) is None


def test_a_kind_without_a_scale_is_known_without_a_selector():
    world = World(subresources=frozenset())
    world.resolve("Rollout/db")
    assert world.controllers[ROLLOUT] == Controller(None, is_scalable=False)
    assert world.controllers.replicas(ROLLOUT) is None
    assert world.controllers.selector_keys(ROLLOUT) == set()


def test_a_read_controller_has_a_selector_replicas_and_its_parent():
    world = World()
    world.owners = [
        {"kind": "Fleet", "name": "not", "apiVersion": "x/v1", "uid": "1"},
        {"kind": "Fleet", "name": "all", "apiVersion": "x/v1", "uid": "2", "controller": True},
    ]
    world.resolve("Rollout/db")
    fleet = ControllerKey("shop", "Fleet", "all")
    assert world.controllers[ROLLOUT] == Controller(fleet)
    assert world.controllers.replicas(ROLLOUT) == 3
    assert world.controllers.selector_keys(ROLLOUT) == {"app"}
    assert fleet not in world.controllers, "its kind is unknown"


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        pytest.param(None, FOUND_SECONDS, id="found"),
        pytest.param(GONE, MISSING_SECONDS, id="missing"),
        pytest.param(errors.TransportError("lost"), MISSING_SECONDS, id="not answered"),
    ],
)
def test_an_answer_is_cached_for_a_while(failure, seconds):
    world = World()
    world.failure = failure
    for passed, reads in ((0, 1), (seconds - 1, 1), (1, 2)):
        world.clock.advance(passed)
        world.resolve("Rollout/db")
        assert len(world.reads) == reads


def test_a_kind_that_is_not_served_is_asked_for_again_after_a_while():
    """Its CRD may be installed later."""
    world = World()
    world.kinds.clear()
    for passed, asked in ((0, 1), (MISSING_SECONDS - 1, 1), (1, 2)):
        world.clock.advance(passed)
        world.resolve("Rollout/db")
        assert (len(world.asked), ROLLOUT in world.controllers) == (asked, False)
    world.kinds.add("Rollout")
    world.clock.advance(MISSING_SECONDS)
    world.resolve("Rollout/db")
    assert ROLLOUT in world.controllers
    assert world.notified == 2, "nothing is known, then the controller"


def test_a_kind_of_the_whole_cluster_is_asked_for_again_after_a_while():
    world = World(namespaced=False)
    for passed, asked in ((0, 1), (FOUND_SECONDS - 1, 1), (1, 2)):
        world.clock.advance(passed)
        world.resolve("Rollout/db")
        assert len(world.asked) == asked


def test_a_kind_without_a_scale_is_read_again_after_a_while():
    world = World(subresources=frozenset())
    for passed, reads in ((0, 1), (FOUND_SECONDS - 1, 1), (1, 2)):
        world.clock.advance(passed)
        world.resolve("Rollout/db")
        assert len(world.reads) == reads


def test_after_a_failed_read_the_last_state_is_kept_and_read_again():
    world = World()
    world.resolve("Rollout/db")
    world.failure = errors.TransportError("lost")
    world.clock.advance(FOUND_SECONDS)
    world.resolve("Rollout/db")
    assert world.controllers.replicas(ROLLOUT) == 3
    world.resolve("Rollout/db")
    assert len(world.reads) == 3
    assert world.notified == 1, "nothing changed since the first read"
    world.failure = GONE
    world.resolve("Rollout/db")
    assert (world.notified, ROLLOUT in world.controllers) == (2, False)


def test_a_controller_that_nobody_asks_for_is_dropped():
    world = World()
    world.resolve("Rollout/db", "Rollout/other")
    world.clock.advance(UNUSED_SECONDS - 1)
    world.resolve("Rollout/other")
    world.clock.advance(1)
    world.resolve("Rollout/other")
    assert list(world.controllers) == [OTHER]


@pytest.mark.parametrize(
    ("kind", "spec", "replicas"),
    [
        ("StatefulSet", {}, 1),
        ("StatefulSet", {"replicas": 0}, 0),
        ("ReplicationController", {"replicas": 4}, 4),
        ("Job", {"replicas": 4}, None),
        ("DaemonSet", {"replicas": 4}, 0),
    ],
)
def test_the_replicas_of_watched_kinds(kind, spec, replicas):
    world = World()
    world.add(kind, "db", **spec)
    assert world.controllers.replicas(ControllerKey("shop", kind, "db")) == replicas
    assert world.controllers.replicas(ControllerKey("shop", kind, "absent")) is None


@pytest.mark.parametrize(
    ("before", "after", "notified"),
    [
        pytest.param({}, {"replicas": 5}, 0, id="replicas"),
        pytest.param({}, {"selector": {"matchLabels": {"app": "db"}}}, 1, id="a selector"),
    ],
)
def test_only_changes_that_move_pods_between_controllers_are_told(before, after, notified):
    world = World()
    old, new = world.add("StatefulSet", "db", **before), world.add("StatefulSet", "db", **after)
    hear = world.caches["StatefulSet"].subscriber
    hear(Delta(CacheEvent.UPDATED, old, new))
    assert world.notified == notified
    hear(Delta(CacheEvent.ADDED, None, new))
    hear(Delta(CacheEvent.DELETED, new, None))
    assert world.notified == notified + 2


def test_the_selector_of_a_target_or_why_there_is_none():
    world = World()
    world.add("StatefulSet", "db", selector={"matchLabels": {"app": "db"}})
    assert str(world.controllers.cached_selector(vpa(target="StatefulSet/db"))) == "app=db"
    assert str(world.clock.run(world.controllers.selector_of(vpa(target="Rollout/db")))) == "app=db"
    for target, why in (("StatefulSet/", "names no target"), ("StatefulSet/absent", "does not exist")):
        found = world.controllers.cached_selector(vpa(target=target))
        assert isinstance(found, Unsupported)
        assert why in found.message
    world.add("StatefulSet", "db", selector={"matchExpressions": [{"key": "a", "operator": "Odd"}]})
    found = world.controllers.cached_selector(vpa(target="StatefulSet/db"))
    assert isinstance(found, Unsupported)
    assert "malformed" in found.message
    assert world.controllers.selector_keys(ControllerKey("shop", "StatefulSet", "db")) == set()
