"""Owners of pods, for the OwnerReference strategy: from watches for the built-in kinds, else from a short-lived cache.

Nothing here runs unless some HPA selects by owner. One owner is asked for once per lifetime of its entry, however many
pods it has, and so is one that cannot be read. That an owner is gone is believed for one sync period only.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.codec import PartialObject
from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery, Served, UnknownKindError
from trimtab.cluster.resource import DAEMON_SETS, JOBS, Resource
from trimtab.decide.horizontal import (
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    PodSnapshot,
    Target,
    found_owner,
    owner_key,
    owners_to_find,
)
from trimtab.model.core.meta import OwnerReference
from trimtab.operator.horizontal.inputs.kinds import (
    CACHED_TARGETS,
    SlimController,
    SlimWorkload,
)

Found = Owner | OwnerNotFound | OwnerUnavailable

WATCHED: dict[tuple[str, str], Resource[Any]] = {
    **CACHED_TARGETS,
    ("apps", "DaemonSet"): DAEMON_SETS.into(SlimWorkload),
    ("batch", "Job"): JOBS.into(SlimWorkload),
}
"""Kinds that own pods in every cluster; once one of them is met it is watched instead of asked for."""

FIRST_LIST_SECONDS = 5.0


@dataclass(slots=True)
class _Entry:
    found: Found
    until: float
    plural: str


class OwnerCache:
    """Looks owners up, at most once per owner and lifetime."""

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

    async def of(
        self, pods: Iterable[PodSnapshot], targets: Iterable[Target], namespace: str
    ) -> dict[str, Found]:
        """Return every owner that deciding between these pods and targets needs, by `owner_key`."""
        self._sweep()
        pods = tuple(pods)
        found: dict[str, Found] = {}
        while needed := _needed(pods, targets, found):
            answers = await asyncio.gather(*(self._find(one, namespace) for one in needed.values()))
            found |= dict(zip(needed, answers, strict=True))
        return found

    def known(
        self, pods: Iterable[PodSnapshot], targets: Iterable[Target], namespace: str
    ) -> dict[str, Found] | None:
        """Return the same without asking anybody; None if an owner is in no cache."""
        pods = tuple(pods)
        found: dict[str, Found] = {}
        while needed := _needed(pods, targets, found):
            for key, reference in needed.items():
                owner = self._watched(reference, namespace) or self._remembered(reference, namespace)
                if owner is None:
                    return None
                found[key] = owner
        return found

    async def _find(self, reference: OwnerReference, namespace: str) -> Found:
        watched = WATCHED.get((reference.group, reference.kind))
        if watched is not None:
            await _is_listed(self._caches.want(watched))
        found = self._watched(reference, namespace) or self._remembered(reference, namespace)
        return found or await self._look_up(reference, namespace)

    def _watched(self, reference: OwnerReference, namespace: str) -> Owner | OwnerNotFound | None:
        cache = self._caches.running(reference.group, reference.kind)
        thing = cache.get(reference.name, namespace) if cache is not None else None
        if not isinstance(thing, SlimWorkload | SlimController):
            return None
        return found_owner(reference, _owner(reference.kind, thing))

    def _remembered(self, reference: OwnerReference, namespace: str) -> Found | None:
        entry = self._entries.get((namespace, owner_key(reference)))
        if entry is None or entry.until <= self._clock.monotonic():
            return None
        if entry.plural:
            self._count(entry.plural, True)
        return entry.found

    async def _look_up(self, reference: OwnerReference, namespace: str) -> Found:
        try:
            served = await self._discovery.find_kind(reference.api_version, reference.kind)
        except UnknownKindError as error:
            return self._kept(
                reference, namespace, OwnerNotFound(reason=str(error))
            )  # the kind was removed: a broken chain
        except errors.ClusterError as error:
            return self._kept(reference, namespace, OwnerUnavailable(error=str(error)))
        self._count(served.plural, False)
        return await self._ask(served, reference, namespace)

    async def _ask(self, served: Served, reference: OwnerReference, namespace: str) -> Found:
        if not served.namespaced:
            outside = OwnerNotFound(reason="it is an object of the cluster, no workload of this namespace")
            return self._kept(reference, namespace, outside)
        found = await self._get(served, reference, namespace)
        return self._kept(reference, namespace, found, served.plural)

    def _kept(self, reference: OwnerReference, namespace: str, found: Found, plural: str = "") -> Found:
        """Remember what was found, as the resource that was read, if one was."""
        ttl = min(self._ttl, self._gone_ttl) if isinstance(found, OwnerNotFound) else self._ttl
        until = self._clock.monotonic() + ttl
        self._entries[namespace, owner_key(reference)] = _Entry(found, until, plural)
        return found

    async def _get(self, served: Served, reference: OwnerReference, namespace: str) -> Found:
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
    pods: tuple[PodSnapshot, ...], targets: Iterable[Target], found: dict[str, Found]
) -> dict[str, OwnerReference]:
    """Return the owners to find next, for any of the targets."""
    needed: dict[str, OwnerReference] = {}
    for target in targets:
        needed |= owners_to_find(pods, target, found)
    return needed


async def _is_listed(cache: NamespacedInformer[Any]) -> bool:
    """Wait for a first list that is under way; one that fails is tried again beside, nobody waits for it."""
    if not cache.has_synced and cache.last_error() is None:
        try:
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                await cache.wait_synced()
        except TimeoutError:
            return False
    return cache.has_synced


def _full_name(served: Served) -> str:
    """Return a resource as `kubectl auth can-i` takes it."""
    return f"{served.plural}.{served.group}" if served.group else served.plural


def _owner(kind: str, thing: PartialObject | SlimWorkload | SlimController) -> Owner:
    meta = thing.metadata
    return Owner(uid=meta.uid, kind=kind, name=meta.name, owners=meta.owner_references)
