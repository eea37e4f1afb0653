"""The scale of each target: from a watch for the built-in kinds, by GET for the rest.

A cached object may be a moment old. That is safe: the write carries the version that was decided on, and a conflict
leads to a fresh look and a new decision.
"""

from dataclasses import dataclass
from typing import Literal

from trimtab.cluster import errors
from trimtab.cluster.cache import Change, Delta
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.patching import Preconditions
from trimtab.cluster.resource import Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale
from trimtab.decide.horizontal import ScaleFailure
from trimtab.model.meta import CrossVersionObjectReference
from trimtab.model.scale import Scale
from trimtab.operator.caches import Caches
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimController, SlimWorkload

_TARGETS = (SlimWorkload, SlimController)


@dataclass(frozen=True, slots=True)
class Aim:
    """A target as it was found: its scale and where to write it, or why there is none."""

    served: Served | None = None
    scale: Scale | None = None
    failure: ScaleFailure | None = None


class Targets:
    """Finds and writes the scales of targets."""

    def __init__(self, client: Client, discovery: Discovery, caches: Caches) -> None:
        self._client = client
        self._discovery = discovery
        self._caches = caches
        self._made: dict[str, tuple[SlimWorkload | SlimController, Aim]] = {}
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

    def cached(self, reference: CrossVersionObjectReference, namespace: str) -> Aim | None:
        """Return the target from a watch; None means that it must be asked for."""
        cache = self._caches.running(reference.group, reference.kind)
        if cache is None:
            return None
        thing = cache.get(reference.name, namespace)
        if not isinstance(thing, _TARGETS):
            return None
        uid = thing.metadata.uid
        made = self._made.get(uid)
        if made is None or made[0] is not thing:
            made = self._made[uid] = thing, Aim(served=_served(cache.resource), scale=scale_of(thing))
        return made[1]

    def _take(self, delta: Delta[SlimWorkload | SlimController]) -> None:
        """Drop what was made of a target that is gone."""
        if delta.change is Change.DELETED and delta.old is not None:
            self._made.pop(delta.old.metadata.uid, None)

    async def read(self, reference: CrossVersionObjectReference, namespace: str) -> Aim:
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
        return Aim(served=served, scale=scale)

    async def write(self, client: Client, aim: Aim, namespace: str, replicas: int) -> Scale:
        """Write the replicas, on the condition that the target is still what was decided on."""
        assert aim.served is not None
        assert aim.scale is not None
        meta = aim.scale.metadata
        written = await write_scale(
            client,
            aim.served,
            meta.name,
            namespace,
            replicas,
            preconditions=Preconditions(uid=meta.uid or None, resource_version=meta.resource_version or None),
        )
        cache = self._caches.running(aim.served.group, aim.served.kind)
        if cache is not None:
            cache.note_written(namespace, written.metadata.resource_version)
        return written


def _failed(message: str, step: Literal["parse", "map", "query"]) -> Aim:
    return Aim(failure=ScaleFailure(message=message, step=step))


def _served(resource: Resource[object]) -> Served:
    return Served(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        namespaced=True,
        subresources=frozenset({"scale"}),
    )
