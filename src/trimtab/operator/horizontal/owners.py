"""Owners of pods, for the OwnerReference strategy: from watches for the built-in kinds, else from a short-lived cache.

Nothing here runs unless some HPA selects by owner. One owner is asked for once per lifetime of its entry, however many
pods it has; that an owner is gone is believed for one sync period only.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.codec import PartialObject
from trimtab.cluster.discovery import Discovery, Served, UnknownKindError
from trimtab.cluster.resource import Resource
from trimtab.cluster.resources import DAEMON_SETS, JOBS
from trimtab.decide.horizontal import (
    Gone,
    Owner,
    PodFacts,
    Target,
    Unread,
    found_owner,
    owner_key,
    owners_to_find,
)
from trimtab.model.meta import OwnerReference
from trimtab.operator.caches import Caches, KindCache
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimWorkload

Found = Owner | Gone | Unread

WATCHED: dict[tuple[str, str], Resource[Any]] = {
    **CACHED_TARGETS,
    ("apps", "DaemonSet"): DAEMON_SETS.into(SlimWorkload),
    ("batch", "Job"): JOBS.into(SlimWorkload),
}
"""Kinds that own pods in every cluster; once one of them is met it is watched instead of asked for."""

FIRST_LIST_SECONDS = 5.0


@dataclass(slots=True)
class _Entry:
    found: Owner | Gone
    until: float


class Owners:
    """Looks owners up, at most once per owner and lifetime."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        discovery: Discovery,
        caches: Caches,
        *,
        ttl: float,
        gone_ttl: float,
        count: Callable[[str, bool], None] = lambda _plural, _hit: None,
    ) -> None:
        self._clock = clock
        self._client = client
        self._discovery = discovery
        self._caches = caches
        self._ttl = ttl
        self._gone_ttl = gone_ttl
        self._count = count
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._swept_at = clock.monotonic()

    async def of(
        self, pods: Iterable[PodFacts], targets: Iterable[Target], namespace: str
    ) -> dict[str, Found]:
        """Return every owner that deciding between these pods and targets needs, by `owner_key`."""
        self._sweep()
        pods = tuple(pods)
        found: dict[str, Found] = {}
        while True:
            needed: dict[str, OwnerReference] = {}
            for target in targets:
                needed |= owners_to_find(pods, target, found)
            if not needed:
                return found
            answers = await asyncio.gather(*(self._find(one, namespace) for one in needed.values()))
            found |= dict(zip(needed, answers, strict=True))

    async def _find(self, reference: OwnerReference, namespace: str) -> Found:
        watched = WATCHED.get((reference.group, reference.kind))
        if watched is not None:
            cache = self._caches.want(watched)
            thing = cache.get(reference.name, namespace) if await _is_listed(cache) else None
            if thing is not None:
                return found_owner(reference, _owner(reference.kind, thing))
        return await self._remembered(reference, namespace)

    async def _remembered(self, reference: OwnerReference, namespace: str) -> Found:
        key = (namespace, owner_key(reference))
        entry = self._entries.get(key)
        hit = entry is not None and entry.until > self._clock.monotonic()
        try:
            served = await self._discovery.find_kind(reference.api_version, reference.kind)
        except UnknownKindError as error:
            return Gone(why=str(error))  # the kind was removed: a broken chain
        except errors.ClusterError as error:
            return Unread(error=str(error))
        self._count(served.plural, hit)
        if hit and entry is not None:
            return entry.found
        return await self._ask(key, served, reference, namespace)

    async def _ask(
        self, key: tuple[str, str], served: Served, reference: OwnerReference, namespace: str
    ) -> Found:
        if not served.namespaced:
            return Gone(why="it is an object of the cluster, no workload of this namespace")
        resource: Resource[PartialObject] = served.resource().into(PartialObject)
        try:
            thing: PartialObject | None = await self._client.get(resource, reference.name, namespace)
        except errors.NotFound:
            thing = None
        except (errors.ClusterError, ValueError) as error:
            return Unread(error=str(error))
        found = found_owner(reference, None if thing is None else _owner(reference.kind, thing))
        ttl = self._ttl if isinstance(found, Owner) else min(self._ttl, self._gone_ttl)
        self._entries[key] = _Entry(found, self._clock.monotonic() + ttl)
        return found

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        if now - self._swept_at >= self._ttl:
            self._swept_at = now
            self._entries = {key: entry for key, entry in self._entries.items() if entry.until > now}


async def _is_listed(cache: KindCache[Any]) -> bool:
    """Wait for a first list that is under way; one that fails is tried again beside, nobody waits for it."""
    if not cache.has_synced and cache.last_error() is None:
        try:
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                await cache.wait_synced()
        except TimeoutError:
            return False
    return cache.has_synced


def _owner(kind: str, thing: PartialObject | SlimWorkload) -> Owner:
    meta = thing.metadata
    return Owner(uid=meta.uid, kind=kind, name=meta.name, owners=meta.owner_references)
