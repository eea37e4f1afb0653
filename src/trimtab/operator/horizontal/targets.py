"""The scale of each target: from a watch for the built-in kinds, by GET for the rest.

A cached object that is older than our own last write or read is not used; the target is read instead. A write has
the resourceVersion of the decision as its precondition. After a conflict it is repeated only while the uid and the
replicas are those of the decision.
"""

from dataclasses import dataclass
from typing import Literal

from trimtab.cluster import errors
from trimtab.cluster.cache.shared import SharedInformers
from trimtab.cluster.cache.store import CacheEvent, Delta, is_older
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.resource import Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale
from trimtab.decide.horizontal.observation.observation import ScaleFailure
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.core.workloads import Scale
from trimtab.operator.horizontal.freshness import Freshness
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimController, SlimWorkload

_TARGETS = (SlimWorkload, SlimController)

MOST_CONFLICTS = 5
"""Attempts to write a scale to a target that keeps changing, e.g. whose status changes in a rollout."""


class TargetChangedError(Exception):
    """The target was replaced or scaled since the decision."""


class TargetBusyError(Exception):
    """Every attempt to write the scale ended in a conflict."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """The scale of a target and where to write it, or why it cannot be read."""

    served: Served | None = None
    scale: Scale | None = None
    failure: ScaleFailure | None = None
    is_read: bool = False
    """Whether it was read from the server, not from a watch."""


class TargetCache:
    """Reads and writes the scales of targets."""

    def __init__(
        self, client: Client, discovery: Discovery, caches: SharedInformers, freshness: Freshness
    ) -> None:
        self._client = client
        self._freshness = freshness
        self._discovery = discovery
        self._caches = caches
        self._resolved: dict[str, tuple[SlimWorkload | SlimController, ResolvedTarget]] = {}
        self._newest: dict[str, str] = {}
        """The version that we last wrote or read, by uid, until the watch has delivered it."""
        self._doubted: set[str] = set()
        """The uids of targets whose last write may or may not have been applied."""
        self._watched_kinds: set[str] = set()

    def watch(self, reference: CrossVersionObjectReference) -> None:
        """Watch the kind of a target, if its scale can be computed from a watched object."""
        resource = CACHED_TARGETS.get((reference.group, reference.kind))
        if resource is None:
            return
        cache = self._caches.get(resource)
        if resource.kind not in self._watched_kinds:
            self._watched_kinds.add(resource.kind)
            cache.subscribe(self._on_target_event)

    def cached(self, reference: CrossVersionObjectReference, namespace: str) -> ResolvedTarget | None:
        """Return the target from a watch, or None if it has to be read."""
        cache = self._caches.running(reference.group, reference.kind, namespace)
        if cache is None or self._freshness.must_read_target(reference, namespace):
            return None
        workload = cache.get(reference.name, namespace)
        if not isinstance(workload, _TARGETS):
            return None
        uid = workload.metadata.uid
        if (self._newest or self._doubted) and not self._is_current(uid, workload.metadata.resource_version):
            return None
        resolved = self._resolved.get(uid)
        if resolved is None or resolved[0] is not workload:
            resolved = self._resolved[uid] = (
                workload,
                ResolvedTarget(served=_served(cache.resource), scale=scale_of(workload)),
            )
        return resolved[1]

    def _is_current(self, uid: str, version: str) -> bool:
        """Return whether a cached version is at least as new as our own last write or read."""
        if uid in self._doubted:
            return False
        newest = self._newest.get(uid)
        if newest is None:
            return True
        if is_older(version, newest):
            return False
        del self._newest[uid]
        return True

    def doubt(self, target: ResolvedTarget) -> None:
        """Stop using the cached target until it is read, because a write may have been applied."""
        if target.scale is not None and self._is_cached(target):
            self._doubted.add(target.scale.metadata.uid)

    def _on_target_event(self, delta: Delta[SlimWorkload | SlimController]) -> None:
        if delta.change is CacheEvent.DELETED and delta.old is not None:
            self._resolved.pop(delta.old.metadata.uid, None)
            self._newest.pop(delta.old.metadata.uid, None)
            self._doubted.discard(delta.old.metadata.uid)

    async def read(self, reference: CrossVersionObjectReference, namespace: str) -> ResolvedTarget:
        """Read the target's scale from the API server."""
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
            advice = _rights_advice(served) if isinstance(error, errors.Forbidden) else ""
            return _failed(server_message(error), "query", advice)
        target = ResolvedTarget(served=served, scale=scale, is_read=True)
        self._note(target, scale)
        return target

    async def write(self, client: Client, target: ResolvedTarget, namespace: str, replicas: int) -> Scale:
        """Write the replicas, if the target still has the uid and the replicas of the decision."""
        assert target.served is not None
        assert target.scale is not None
        meta = target.scale.metadata
        version = meta.resource_version
        for _ in range(MOST_CONFLICTS):
            preconditions = Preconditions(uid=meta.uid or None, resource_version=version or None)
            try:
                written = await write_scale(
                    client, target.served, meta.name, namespace, replicas, preconditions=preconditions
                )
            except errors.Conflict as conflict:
                version = await self._read_version(target, conflict)
                continue
            self._note(target, written)
            return written
        raise TargetBusyError(
            f"{target.served.kind} {meta.key} changed {MOST_CONFLICTS} times while it was being scaled"
        )

    async def _read_version(self, target: ResolvedTarget, conflict: errors.Conflict) -> str:
        """Read the target's version after a conflict, if its uid and replicas are unchanged."""
        assert target.served is not None
        assert target.scale is not None
        meta = target.scale.metadata
        try:
            scale = await read_scale(self._client, target.served, meta.name, meta.namespace)
        except (errors.ClusterError, ValueError) as error:
            self.doubt(target)
            raise TargetChangedError(f"{conflict}; it could not be read again: {error}") from error
        self._note(target, scale)
        if scale.metadata.uid != meta.uid or scale.spec.replicas != target.scale.spec.replicas:
            raise TargetChangedError(str(conflict)) from conflict
        return scale.metadata.resource_version

    def _note(self, target: ResolvedTarget, scale: Scale) -> None:
        """Do not use cached versions of a target that are older than this one."""
        meta = scale.metadata
        served = target.served
        cache = None if served is None else self._caches.running(served.group, served.kind, meta.namespace)
        if cache is not None:
            cache.note_written(meta.namespace, meta.resource_version)
            self._newest[meta.uid] = meta.resource_version
            self._doubted.discard(meta.uid)

    def _is_cached(self, target: ResolvedTarget) -> bool:
        served, scale = target.served, target.scale
        if served is None or scale is None:
            return False
        return self._caches.running(served.group, served.kind, scale.metadata.namespace) is not None


def server_message(error: Exception) -> str:
    """Return the API server's own message if there is one."""
    return (error.message if isinstance(error, errors.ApiError) else "") or str(error)


def _failed(message: str, step: Literal["parse", "map", "query"], advice: str = "") -> ResolvedTarget:
    return ResolvedTarget(failure=ScaleFailure(message=message, step=step, advice=advice))


def _rights_advice(served: Served) -> str:
    """Return the value of the installation that gives the right to a kind's scale."""
    return f"install with scalable=[{{group: {served.group}, resource: {served.plural}}}]"


def _served(resource: Resource[object]) -> Served:
    return Served(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        namespaced=True,
        subresources=frozenset({"scale"}),
    )
