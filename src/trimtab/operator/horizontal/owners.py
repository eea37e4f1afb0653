"""Owners of pods, for the OwnerReference strategy: from watches for the built-in kinds, else from a short-lived cache.

Nothing here runs unless an HPA selects by owner. An owner is read once per lifetime of its cache entry, however many
pods it has. A failed read is cached as well. That an owner was not found is cached for one sync period only.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.discovery import Discovery, Served, UnknownKindError
from trimtab.cluster.resource import DAEMON_SETS, JOBS, Resource
from trimtab.decide.horizontal.observation.owners import (
    Owner,
    OwnerLookup,
    OwnerNotFound,
    OwnerUnavailable,
    Target,
    found_owner,
    owner_key,
)
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.owners import owners_to_find
from trimtab.model.core.meta import OwnerReference
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimController, SlimWorkload

WATCHED: dict[tuple[str, str], Resource[Any]] = {
    **CACHED_TARGETS,
    ("apps", "DaemonSet"): DAEMON_SETS.into(SlimWorkload),
    ("batch", "Job"): JOBS.into(SlimWorkload),
}
"""Kinds that own pods in every cluster. Once an owner of such a kind is met, the kind is watched."""

FIRST_LIST_SECONDS = 5.0


@dataclass(slots=True)
class _Entry:
    owner: OwnerLookup
    until: float
    plural: str


class OwnerCache:
    """Finds the owners of pods, reading each at most once per lifetime of its entry."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        discovery: Discovery,
        caches: SharedInformers,
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

    async def find(
        self, pods: Iterable[PodSnapshot], targets: Iterable[Target], namespace: str
    ) -> dict[str, OwnerLookup]:
        """Find the owners that the selection of these pods for these targets needs, by `owner_key`."""
        self._sweep()
        pods = tuple(pods)
        found: dict[str, OwnerLookup] = {}
        while needed := _needed(pods, targets, found):
            owners = await asyncio.gather(
                *(self._find(reference, namespace) for reference in needed.values())
            )
            found |= dict(zip(needed, owners, strict=True))
        return found

    def find_cached(
        self,
        pods: Iterable[PodSnapshot],
        targets: Iterable[Target],
        namespace: str,
        read: Mapping[str, OwnerLookup] = MappingProxyType({}),
    ) -> dict[str, OwnerLookup] | None:
        """Find the same owners among those just read, or cached. Return None if an owner is neither."""
        pods = tuple(pods)
        found: dict[str, OwnerLookup] = dict(read)
        while needed := _needed(pods, targets, found):
            for key, reference in needed.items():
                owner = self._cached(reference, namespace)
                if owner is None:
                    return None
                found[key] = owner
        return found

    async def _find(self, reference: OwnerReference, namespace: str) -> OwnerLookup:
        watched = WATCHED.get((reference.group, reference.kind))
        if watched is not None:
            await _wait_listed(self._caches.get(watched))
        return self._cached(reference, namespace) or await self._read(reference, namespace)

    def _cached(self, reference: OwnerReference, namespace: str) -> OwnerLookup | None:
        return self._watched(reference, namespace) or self._remembered(reference, namespace)

    def _watched(self, reference: OwnerReference, namespace: str) -> Owner | OwnerNotFound | None:
        cache = self._caches.running(reference.group, reference.kind, namespace)
        workload = cache.get(reference.name, namespace) if cache is not None else None
        if not isinstance(workload, SlimWorkload | SlimController):
            return None
        return found_owner(reference, _owner(reference.kind, workload))

    def _remembered(self, reference: OwnerReference, namespace: str) -> OwnerLookup | None:
        entry = self._entries.get((namespace, owner_key(reference)))
        if entry is None or entry.until <= self._clock.monotonic():
            return None
        if entry.plural:
            self._count(entry.plural, True)
        return entry.owner

    async def _read(self, reference: OwnerReference, namespace: str) -> OwnerLookup:
        try:
            served = await self._discovery.find_kind(reference.api_version, reference.kind)
        except UnknownKindError as error:
            # The kind was removed, so the chain of owners is broken.
            return self._remember(reference, namespace, OwnerNotFound(reason=str(error)))
        except errors.ClusterError as error:
            return self._remember(reference, namespace, OwnerUnavailable(error=str(error)))
        self._count(served.plural, False)
        if not served.namespaced:
            outside = OwnerNotFound(reason="it is an object of the cluster, no workload of this namespace")
            return self._remember(reference, namespace, outside)
        owner = await self._get(served, reference, namespace)
        return self._remember(reference, namespace, owner, served.plural)

    def _remember(
        self, reference: OwnerReference, namespace: str, owner: OwnerLookup, plural: str = ""
    ) -> OwnerLookup:
        ttl = min(self._ttl, self._gone_ttl) if isinstance(owner, OwnerNotFound) else self._ttl
        until = self._clock.monotonic() + ttl
        self._entries[namespace, owner_key(reference)] = _Entry(owner, until, plural)
        return owner

    async def _get(self, served: Served, reference: OwnerReference, namespace: str) -> OwnerLookup:
        resource: Resource[PartialObject] = served.resource().into(PartialObject)
        try:
            owner = await self._client.get(resource, reference.name, namespace)
        except errors.NotFound:
            return found_owner(reference, None)
        except errors.Forbidden as error:
            return OwnerUnavailable(error=str(error), permission=f"get {_full_name(served)}")
        except (errors.ClusterError, ValueError) as error:
            return OwnerUnavailable(error=str(error))
        return found_owner(reference, _owner(reference.kind, owner))

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        if now - self._swept_at >= self._ttl:
            self._swept_at = now
            self._entries = {key: entry for key, entry in self._entries.items() if entry.until > now}


def _needed(
    pods: tuple[PodSnapshot, ...], targets: Iterable[Target], found: dict[str, OwnerLookup]
) -> dict[str, OwnerReference]:
    """Return the owners to find next, for any of the targets."""
    needed: dict[str, OwnerReference] = {}
    for target in targets:
        needed |= owners_to_find(pods, target, found)
    return needed


async def _wait_listed(cache: NamespacedInformer[Any]) -> None:
    """Wait for a first list that is in progress and has not failed."""
    if not cache.has_synced and cache.last_error() is None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                await cache.wait_synced()


def _full_name(served: Served) -> str:
    """Return a resource's name as `kubectl auth can-i` expects it."""
    return f"{served.plural}.{served.group}" if served.group else served.plural


def _owner(kind: str, workload: PartialObject | SlimWorkload | SlimController) -> Owner:
    meta = workload.metadata
    return Owner(uid=meta.uid, kind=kind, name=meta.name, owners=meta.owner_references)
