"""Owners of pods: which are read, how long each answer is remembered, and that old ones are dropped."""

from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import pod
from tests.unit.operator.horizontal.fakes import api_error
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.discovery import GroupUnavailableError, Served, UnknownKindError
from trimtab.decide.horizontal.observation.owners import (
    Owner,
    OwnerLookup,
    OwnerNotFound,
    OwnerUnavailable,
    Target,
    owner_key,
)
from trimtab.model.core.meta import OwnerReference
from trimtab.model.json import wire
from trimtab.operator.horizontal.owners import OwnerCache

TTL, GONE_TTL = 60.0, 15.0
ROLLOUT = OwnerReference(api_version="argoproj.io/v1", kind="Rollout", name="web", uid="r1")
OTHER = OwnerReference(api_version="argoproj.io/v1", kind="Rollout", name="other", uid="r2")
GONE = api_error(errors.NotFound, 404)


class World:
    """A server of Rollouts, and a cache of owners that asks it."""

    def __init__(self, gone_ttl: float = GONE_TTL) -> None:
        self.clock = VirtualClock()
        self.namespaced = True
        self.failures: dict[str, Exception] = {}
        self.unserved: Exception | None = None
        self.reads: list[str] = []
        self.counted: list[tuple[str, bool]] = []
        everything: Any = self
        self.owners = OwnerCache(
            self.clock, everything, everything, everything, ttl=TTL, gone_ttl=gone_ttl, count=self._count
        )

    def _count(self, plural: str, is_hit: bool) -> None:
        self.counted.append((plural, is_hit))

    def running(self, _group: str, _kind: str, _namespace: str) -> None:
        """Return no cache: Rollouts are not watched."""

    async def find_kind(self, _api_version: str, kind: str) -> Served:
        if self.unserved is not None:
            raise self.unserved
        return Served("argoproj.io", "v1", "rollouts", kind, self.namespaced, frozenset())

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        self.reads.append(name)
        if name in self.failures:
            raise self.failures[name]
        uid = {"web": "r1", "other": "r2"}[name]
        return wire.convert({"metadata": {"name": name, "namespace": namespace, "uid": uid}}, resource.struct)

    def find(self, *references: OwnerReference) -> list[OwnerLookup]:
        pods = [pod(f"web-{place}", owners=(owner,)) for place, owner in enumerate(references)]
        found = self.clock.run(self.owners.find(pods, [Target(kind="Deployment", name="db")], "shop"))
        return [found[owner_key(reference)] for reference in references]

    def find_cached(self, *references: OwnerReference) -> dict[str, OwnerLookup] | None:
        pods = [pod(f"web-{place}", owners=(owner,)) for place, owner in enumerate(references)]
        return self.owners.find_cached(pods, [Target(kind="Deployment", name="db")], "shop")


def test_an_owner_is_read_once_while_it_is_remembered():
    world = World()
    assert [type(owner) for owner in world.find(ROLLOUT, ROLLOUT, OTHER)] == [Owner] * 3
    assert world.reads == ["web", "other"]
    world.clock.advance(TTL - 1)
    world.find(ROLLOUT, OTHER)
    assert world.reads == ["web", "other"]
    assert world.counted == [*[("rollouts", False)] * 2, *[("rollouts", True)] * 2]
    world.clock.advance(1)
    assert world.find_cached(ROLLOUT) is None
    world.find(ROLLOUT)
    assert world.reads == ["web", "other", "web"]


def test_only_owners_that_are_all_remembered_are_found_without_a_request():
    world = World()
    world.find(ROLLOUT)
    found = world.find_cached(ROLLOUT)
    assert found is not None
    assert set(found) == {owner_key(ROLLOUT)}
    assert world.find_cached(ROLLOUT, OTHER) is None
    assert world.find_cached() == {}


@pytest.mark.parametrize(("gone_ttl", "lasts"), [(GONE_TTL, GONE_TTL), (2 * TTL, TTL)])
def test_a_missing_owner_is_remembered_for_the_shorter_time(gone_ttl, lasts):
    world = World(gone_ttl)
    world.failures["web"] = GONE
    assert world.find(ROLLOUT) == [OwnerNotFound()]
    world.clock.advance(lasts - 1)
    world.find(ROLLOUT)
    assert world.reads == ["web"]
    world.clock.advance(1)
    world.find(ROLLOUT)
    assert world.reads == ["web", "web"]


@pytest.mark.parametrize(
    ("failure", "permission"),
    [
        pytest.param(api_error(errors.Forbidden, 403), "get rollouts.argoproj.io", id="a missing right"),
        pytest.param(errors.TransportError("no answer"), "", id="no answer"),
        pytest.param(ValueError("no object"), "", id="an answer that is no object"),
    ],
)
def test_an_owner_that_cannot_be_read_hides_no_other(failure, permission):
    world = World()
    world.failures["web"] = failure
    first, second = world.find(ROLLOUT, OTHER)
    assert isinstance(first, OwnerUnavailable)
    assert (first.error, first.permission) == (str(failure), permission)
    assert isinstance(second, Owner)
    world.find(ROLLOUT)
    assert world.reads == ["web", "other"]


@pytest.mark.parametrize(
    ("unserved", "kind"),
    [(UnknownKindError("no Rollout"), OwnerNotFound), (GroupUnavailableError("down"), OwnerUnavailable)],
)
def test_an_owner_of_a_kind_that_is_not_served_is_not_asked_for(unserved, kind):
    world = World()
    world.unserved = unserved
    (found,) = world.find(ROLLOUT)
    assert isinstance(found, kind)
    assert (world.reads, world.counted) == ([], [])


def test_an_object_of_the_cluster_owns_no_pod_of_a_namespace():
    world = World()
    world.namespaced = False
    (found,) = world.find(ROLLOUT)
    assert isinstance(found, OwnerNotFound)
    assert "object of the cluster" in found.reason
    assert world.reads == []


def test_entries_are_dropped_when_they_expired_and_not_before():
    """A name that is never asked for again would stay for ever."""
    world = World()
    world.find(ROLLOUT)
    world.clock.advance(TTL / 2)
    world.find(OTHER)
    assert len(world.owners._entries) == 2
    world.clock.advance(TTL / 2)
    world.find()
    assert [name for _, name in world.owners._entries] == [owner_key(OTHER)]
    world.clock.advance(TTL / 2)
    world.find()
    assert len(world.owners._entries) == 1, "once per lifetime is enough"
    world.clock.advance(TTL / 2)
    world.find()
    assert world.owners._entries == {}
