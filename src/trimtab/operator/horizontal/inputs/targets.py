"""The scale of each target: from a watch for the built-in kinds, by GET for the rest.

A cached object may be a moment old, but never older than what we wrote or read ourselves: then it is asked for. The
write carries the version that was decided on. After a conflict it is repeated only while uid and replicas are still
what was decided on; anything else leads to a new decision.
"""

from dataclasses import dataclass
from typing import Literal

from trimtab.cluster import errors
from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.cache.store import is_older
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.resource import Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale
from trimtab.decide.horizontal import ScaleFailure
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.core.workloads import Scale
from trimtab.operator.horizontal.inputs.kinds import (
    CACHED_TARGETS,
    SlimController,
    SlimWorkload,
)

_TARGETS = (SlimWorkload, SlimController)

MOST_CONFLICTS = 5
"""How often one write of a scale is tried on a target that keeps changing otherwise; a rollout changes its status."""


class TargetChangedError(Exception):
    """The target is no longer what was decided on: another one, or of another size."""


class TargetBusyError(Exception):
    """The target changed again and again while it was being scaled."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target as it was found: its scale and where to write it, or why there is none."""

    served: Served | None = None
    scale: Scale | None = None
    failure: ScaleFailure | None = None
    is_read: bool = False
    """Whether the server was asked for it, instead of a watch's copy."""


class TargetCache:
    """Finds and writes the scales of targets."""

    def __init__(self, client: Client, discovery: Discovery, caches: SharedInformers) -> None:
        self._client = client
        self._discovery = discovery
        self._caches = caches
        self._made: dict[str, tuple[SlimWorkload | SlimController, ResolvedTarget]] = {}
        self._newest: dict[str, str] = {}
        """The version of a target as we last wrote or read it, by uid, until the watch has got there."""
        self._doubted: set[str] = set()
        """Targets, by uid, whose last write may or may not have arrived."""
        self._followed: set[str] = set()

    def watch(self, reference: CrossVersionObjectReference) -> None:
        """Begin to watch the kind of a target, if it is one that we know the scale of."""
        resource = CACHED_TARGETS.get((reference.group, reference.kind))
        if resource is None:
            return
        cache = self._caches.want(resource)
        if resource.kind not in self._followed:
            self._followed.add(resource.kind)
            cache.subscribe(self._take)

    def cached(self, reference: CrossVersionObjectReference, namespace: str) -> ResolvedTarget | None:
        """Return the target from a watch; None means that it must be asked for."""
        cache = self._caches.running(reference.group, reference.kind)
        if cache is None:
            return None
        thing = cache.get(reference.name, namespace)
        if not isinstance(thing, _TARGETS):
            return None
        uid = thing.metadata.uid
        if (self._newest or self._doubted) and not self._is_news(uid, thing.metadata.resource_version):
            return None
        made = self._made.get(uid)
        if made is None or made[0] is not thing:
            made = self._made[uid] = (
                thing,
                ResolvedTarget(served=_served(cache.resource), scale=scale_of(thing)),
            )
        return made[1]

    def _is_news(self, uid: str, version: str) -> bool:
        """Return whether a cached version is at least as new as what we wrote or read ourselves."""
        if uid in self._doubted:
            return False
        newest = self._newest.get(uid)
        if newest is None:
            return True
        if is_older(version, newest):
            return False
        del self._newest[uid]
        return True

    def doubt(self, aim: ResolvedTarget) -> None:
        """Believe no cached copy of a target whose write may or may not have arrived, until it was read."""
        if aim.scale is not None and self._is_cached(aim):
            self._doubted.add(aim.scale.metadata.uid)

    def _take(self, delta: Delta[SlimWorkload | SlimController]) -> None:
        """Drop what was made of a target that is gone."""
        if delta.change is CacheEvent.DELETED and delta.old is not None:
            self._made.pop(delta.old.metadata.uid, None)
            self._newest.pop(delta.old.metadata.uid, None)
            self._doubted.discard(delta.old.metadata.uid)

    async def read(self, reference: CrossVersionObjectReference, namespace: str) -> ResolvedTarget:
        """Ask the API server for the target's scale."""
        group, _, version = reference.api_version.rpartition("/")
        if reference.api_version and (not version or "/" in group):
            return _failed(f"unexpected GroupVersion string: {reference.api_version}", "parse")
        try:
            served = await self._discovery.find_kind(reference.api_version, reference.kind)
        except errors.ClusterError as error:
            return _failed(str(error), "map")
        try:
            scale = await read_scale(self._client, served, reference.name, namespace)
        except (errors.ClusterError, ValueError) as error:
            said = error.message if isinstance(error, errors.ApiError) else ""
            return _failed(said or str(error), "query")
        aim = ResolvedTarget(served=served, scale=scale, is_read=True)
        self._note(aim, scale)
        return aim

    async def write(self, client: Client, aim: ResolvedTarget, namespace: str, replicas: int) -> Scale:
        """Write the replicas, on the condition that the target is still what was decided on: its uid and its size."""
        assert aim.served is not None
        assert aim.scale is not None
        meta = aim.scale.metadata
        version = meta.resource_version
        for _ in range(MOST_CONFLICTS):
            wanted = Preconditions(uid=meta.uid or None, resource_version=version or None)
            try:
                written = await write_scale(
                    client, aim.served, meta.name, namespace, replicas, preconditions=wanted
                )
            except errors.Conflict as conflict:
                version = await self._version_now(aim, conflict)
                continue
            self._note(aim, written)
            return written
        raise TargetBusyError(
            f"{aim.served.kind} {meta.key} changed {MOST_CONFLICTS} times while it was being scaled"
        )

    async def _version_now(self, aim: ResolvedTarget, conflict: errors.Conflict) -> str:
        """Return the target's version, if the conflict was about something that nothing was decided on."""
        assert aim.served is not None
        assert aim.scale is not None
        meta = aim.scale.metadata
        try:
            found = await read_scale(self._client, aim.served, meta.name, meta.namespace)
        except (errors.ClusterError, ValueError) as error:
            self.doubt(aim)
            raise TargetChangedError(f"{conflict}; it could not be read again: {error}") from error
        self._note(aim, found)
        if found.metadata.uid != meta.uid or found.spec.replicas != aim.scale.spec.replicas:
            raise TargetChangedError(str(conflict)) from conflict
        return found.metadata.resource_version

    def _note(self, aim: ResolvedTarget, scale: Scale) -> None:
        """Believe no cached copy of a target that is older than this one."""
        meta = scale.metadata
        cache = None if aim.served is None else self._caches.running(aim.served.group, aim.served.kind)
        if cache is not None:
            cache.note_written(meta.namespace, meta.resource_version)
            self._newest[meta.uid] = meta.resource_version
            self._doubted.discard(meta.uid)

    def _is_cached(self, aim: ResolvedTarget) -> bool:
        served = aim.served
        return served is not None and self._caches.running(served.group, served.kind) is not None


def _failed(message: str, step: Literal["parse", "map", "query"]) -> ResolvedTarget:
    return ResolvedTarget(failure=ScaleFailure(message=message, step=step))


def _served(resource: Resource[object]) -> Served:
    return Served(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        namespaced=True,
        subresources=frozenset({"scale"}),
    )
