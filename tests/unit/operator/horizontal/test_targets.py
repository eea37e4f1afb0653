"""The scale of a target: when the watch shows it, when it is read, and how it is written."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.operator.horizontal.fakes import UNUSED, api_error
from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.discovery import Served, UnknownKindError
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.core.workloads import Scale
from trimtab.model.json import wire
from trimtab.operator.horizontal import targets
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimWorkload
from trimtab.operator.horizontal.targets import (
    MOST_CONFLICTS,
    ResolvedTarget,
    TargetBusyError,
    TargetCache,
    TargetChangedError,
)

ROLLOUTS = Served(
    "argoproj.io", "v1alpha1", "rollouts", "Rollout", namespaced=True, subresources=frozenset({"scale"})
)
REFERENCE = CrossVersionObjectReference(api_version="argoproj.io/v1alpha1", kind="Rollout", name="web")


@pytest.mark.parametrize(
    ("error", "code", "advice"),
    [
        (errors.Forbidden, 403, "install with scalable=[{group: argoproj.io, resource: rollouts}]"),
        (errors.NotFound, 404, ""),
    ],
)
def test_only_a_missing_right_comes_with_advice(error, code, advice, monkeypatch):
    async def refuse(*_):
        raise api_error(error, code)

    async def find_kind(*_):
        return ROLLOUTS

    monkeypatch.setattr(targets, "read_scale", refuse)
    discovery: Any = SimpleNamespace(find_kind=find_kind)
    cache = TargetCache(UNUSED, discovery, UNUSED, UNUSED)
    resolved = asyncio.run(cache.read(REFERENCE, "shop"))
    assert resolved.failure is not None
    assert (resolved.failure.step, resolved.failure.advice) == ("query", advice)


WEB = CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web")
DEPLOYMENTS = CACHED_TARGETS["apps", "Deployment"]
SERVED = Served("apps", "v1", "deployments", "Deployment", namespaced=True, subresources=frozenset({"scale"}))
CONFLICT = api_error(errors.Conflict, 409)


def workload(version: int, replicas: int = 4, uid: str = "u1") -> SlimWorkload:
    meta = {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
    return wire.convert({"metadata": meta, "spec": spec}, SlimWorkload)


def scale(version: int, replicas: int = 4, uid: str = "u1") -> Scale:
    meta = {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    return wire.convert({"metadata": meta, "spec": {"replicas": replicas}}, Scale)


class World:
    """A Deployment, as the watch has it and as the server has it."""

    def __init__(self, monkeypatch: Any, *, is_watched: bool = True) -> None:
        self.resource = DEPLOYMENTS
        self.is_watched, self.is_stale, self.is_served = is_watched, False, True
        self.cached_object: Any = workload(10)
        self.answers: list[Any] = []
        self.versions: list[str | None] = []
        self.written: list[str] = []
        self.subscribers: list[Any] = []
        monkeypatch.setattr(targets, "read_scale", self._answer)
        monkeypatch.setattr(targets, "write_scale", self._write)
        everything: Any = self
        self.targets = TargetCache(everything, everything, everything, everything)

    async def _answer(self, *_: Any, **__: Any) -> Scale:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Scale)
        return answer

    async def _write(self, *_: Any, preconditions: Any) -> Scale:
        self.versions.append(preconditions.resource_version)
        return await self._answer()

    async def find_kind(self, _api_version: str, _kind: str) -> Served:
        if not self.is_served:
            raise UnknownKindError("no such kind")
        return SERVED

    def subscribe(self, subscriber: Any) -> None:
        self.subscribers.append(subscriber)

    def running(self, _group: str, _kind: str, _namespace: str) -> Any:
        return self if self.is_watched else None

    def get(self, *name: Any) -> Any:
        return self if len(name) == 1 else self.cached_object

    def note_written(self, _namespace: str, version: str) -> None:
        self.written.append(version)

    def must_read_target(self, _reference: Any, _namespace: str) -> bool:
        return self.is_stale

    def seen(self) -> int | None:
        """Return the replicas that the watch shows, None if the target has to be read."""
        found = self.targets.cached(WEB, "shop")
        return None if found is None or found.scale is None else found.scale.spec.replicas

    def read(self, *answers: Any) -> ResolvedTarget:
        self.answers = list(answers)
        return asyncio.run(self.targets.read(WEB, "shop"))

    def write(self, *answers: Any, decided_on: Scale | None = None) -> Scale:
        self.answers = list(answers)
        target = ResolvedTarget(served=SERVED, scale=decided_on or scale(10))
        return asyncio.run(self.targets.write(UNUSED, target, "shop", 8))

    def delete(self) -> None:
        self.targets._on_target_event(Delta(CacheEvent.DELETED, self.cached_object, None))
        self.cached_object = None


def test_a_kind_is_subscribed_to_once_and_only_where_it_is_watched(monkeypatch):
    world = World(monkeypatch)
    for reference in (WEB, WEB, REFERENCE):
        world.targets.watch(reference)
    assert len(world.subscribers) == 1


def test_the_watch_shows_the_target_unless_it_is_missing_stale_or_unwatched(monkeypatch):
    world = World(monkeypatch)
    assert world.seen() == 4
    assert world.targets.cached(WEB, "shop") is world.targets.cached(WEB, "shop")
    world.cached_object = workload(11, 6)
    assert world.seen() == 6
    world.is_stale = True
    assert world.seen() is None
    world.is_stale, world.is_watched = False, False
    assert world.seen() is None
    world.is_watched, world.cached_object = True, None
    assert world.seen() is None


@pytest.mark.parametrize("how", ["read", "write"])
def test_a_watched_version_older_than_our_own_is_not_used(how, monkeypatch):
    world = World(monkeypatch)
    getattr(world, how)(scale(12, 8))
    assert world.written == ["12"]
    assert world.seen() is None
    world.cached_object = workload(11, 4)
    assert world.seen() is None
    world.cached_object = workload(12, 8)
    assert world.seen() == 8
    world.cached_object = workload(10, 4)
    assert world.seen() == 4, "what was noted is dropped once the watch has it"


def test_a_target_in_doubt_is_read_before_the_watch_is_used_again(monkeypatch):
    world = World(monkeypatch)
    target = world.targets.cached(WEB, "shop")
    assert target is not None
    world.targets.doubt(target)
    world.cached_object = workload(99, 4)
    assert world.seen() is None
    world.read(scale(50))
    assert world.seen() == 4


def test_nothing_is_kept_of_a_deleted_target(monkeypatch):
    world = World(monkeypatch)
    target = world.targets.cached(WEB, "shop")
    assert target is not None
    world.read(scale(12, 8))
    world.targets.doubt(target)
    assert world.seen() is None
    world.delete()
    kept = (world.targets._resolved, world.targets._newest, world.targets._doubted)
    assert [len(kept_of) for kept_of in kept] == [0, 0, 0]


@pytest.mark.parametrize("change", [CacheEvent.ADDED, CacheEvent.UPDATED])
def test_what_is_known_of_a_target_outlives_its_changes(change, monkeypatch):
    world = World(monkeypatch)
    world.read(scale(12, 8))
    world.targets._on_target_event(Delta(change, world.cached_object, world.cached_object))
    assert world.seen() is None


@pytest.mark.parametrize(
    ("api_version", "message"),
    [
        ("apps/", "unexpected GroupVersion"),
        ("a/b/v1", "unexpected GroupVersion"),
        ("apps/v1", "no such kind"),
    ],
)
def test_a_reference_that_names_no_kind_fails_with_the_reason(api_version, message, monkeypatch):
    world = World(monkeypatch)

    world.is_served = False
    reference = CrossVersionObjectReference(api_version=api_version, kind="Web", name="web")
    found = asyncio.run(world.targets.read(reference, "shop"))
    assert found.failure is not None
    assert message in found.failure.message
    assert found.failure.step == ("map" if api_version == "apps/v1" else "parse")


def test_a_conflict_is_repeated_with_the_version_that_was_read(monkeypatch):
    world = World(monkeypatch)
    written = world.write(CONFLICT, scale(11), CONFLICT, scale(12), scale(13, 8))
    assert written.metadata.resource_version == "13"
    assert world.versions == ["10", "11", "12"]


def test_a_target_that_keeps_changing_is_given_up(monkeypatch):
    world = World(monkeypatch)
    answers = [answer for number in range(MOST_CONFLICTS) for answer in (CONFLICT, scale(11 + number))]
    with pytest.raises(TargetBusyError, match="changed 5 times"):
        world.write(*answers)
    assert len(world.versions) == MOST_CONFLICTS


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(scale(11, 5), id="scaled by somebody"),
        pytest.param(scale(11, 4, "u2"), id="made anew"),
    ],
)
def test_a_target_that_is_not_the_one_decided_on_is_not_written(now, monkeypatch):
    world = World(monkeypatch)
    with pytest.raises(TargetChangedError):
        world.write(CONFLICT, now)
    assert world.versions == ["10"]


@pytest.mark.parametrize("failure", [errors.TransportError("no answer"), ValueError("no scale")])
def test_after_a_conflict_that_cannot_be_read_the_watch_is_not_believed(failure, monkeypatch):
    world = World(monkeypatch)
    with pytest.raises(TargetChangedError, match="could not be read again"):
        world.write(CONFLICT, failure)
    assert world.seen() is None
