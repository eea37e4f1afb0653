"""Finds controllers of pods and targets of VPAs.

Well-known kinds are watched. Controllers of other kinds (a Rollout, a custom database) are read and cached for a while;
they count if they have a scale subresource, which has the selector and the number of their pods.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.cache.store import Delta
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.discovery import Discovery, UnknownKindError
from trimtab.cluster.resource import Resource
from trimtab.cluster.scale import read_scale
from trimtab.decide.vertical.control.controllers import Controller, ControllerIndex, ControllerKey, owner_of
from trimtab.model.core.meta import OwnerReference
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.horizontal.kinds import SlimController, SlimWorkload
from trimtab.operator.vertical.kinds import WORKLOADS, SlimCronJob

FOUND_SECONDS = 600.0
"""How long a read controller is cached, as in upstream's scale cache."""
MISSING_SECONDS = 60.0
"""How long it is cached that a controller does not exist."""
UNUSED_SECONDS = 2 * FOUND_SECONDS
"""When a read controller that no pod or VPA refers to any more is dropped."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a VPA's target cannot be used, for its condition ConfigUnsupported."""

    message: str


@dataclass(frozen=True, slots=True)
class _ReadController:
    """A controller read from the API server. It is None if it does not exist or is cluster-scoped."""

    controller: Controller | None
    until: float
    selector: str | None = None
    replicas: int | None = None
    parent: OwnerReference | None = None

    def controls_as(self, other: "_ReadController | None") -> bool:
        """Return whether both select and own the same pods."""
        return other is not None and (self.controller, self.selector) == (other.controller, other.selector)


class Controllers(Mapping[ControllerKey, Controller]):
    """A live mapping of all watched and cached controllers."""

    def __init__(self, client: Client, discovery: Discovery, caches: SharedInformers) -> None:
        self._client = client
        self._clock = client.clock
        self._discovery = discovery
        self._caches: dict[str, NamespacedInformer[Any]] = {
            kind: caches.get(resource) for kind, resource in WORKLOADS.items()
        }
        self._read_controllers: dict[ControllerKey, _ReadController] = {}
        self._used_at: dict[ControllerKey, float] = {}
        """When each read controller was last asked for."""
        self._swept_at = self._clock.monotonic()
        self._flights: dict[tuple[ControllerKey, str], asyncio.Task[_ReadController]] = {}
        """Reads under way, by controller and API version. Equal reads are one request."""
        self._selectors: dict[ControllerKey, tuple[Any, Selector | None]] = {}
        """Parsed selectors of watched workloads, each with the object that it was parsed from."""
        self._subscribers: list[Callable[[], None]] = []
        for kind, cache in self._caches.items():
            cache.subscribe(partial(self._on_workload, kind))

    def caches(self) -> Iterable[NamespacedInformer[Any]]:
        """Return the caches of watched kinds."""
        return self._caches.values()

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` when a controller's existence, owner or selector changes."""
        self._subscribers.append(subscriber)

    def _on_workload(self, kind: str, delta: Delta[Any]) -> None:
        old, new = delta.old, delta.new
        if new is None and old is not None:
            self._selectors.pop(ControllerKey(old.metadata.namespace, kind, old.metadata.name), None)
        is_same = (
            old is not None
            and new is not None
            and old.metadata.owner_references == new.metadata.owner_references
            and _selector_source(old) == _selector_source(new)
        )
        if not is_same:
            self._notify()

    def _notify(self) -> None:
        for subscriber in self._subscribers:
            subscriber()

    def owners(self) -> ControllerIndex:
        """Return the owners as of now. The index caches its answers, so use a new one after changes."""
        return ControllerIndex(self)

    def __getitem__(self, key: ControllerKey) -> Controller:
        workload = self._watched(key)
        if workload is not None:
            parent = _parent(workload)
            return Controller(_key(key.namespace, parent) if parent else None)
        read = self._read_controllers.get(key)
        if read is None or read.controller is None:
            raise KeyError(key)
        return read.controller

    def __iter__(self) -> Iterator[ControllerKey]:
        for kind, cache in self._caches.items():
            for workload in cache:
                yield ControllerKey(workload.metadata.namespace, kind, workload.metadata.name)
        yield from (key for key, read in self._read_controllers.items() if read.controller is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def replicas(self, key: ControllerKey) -> int | None:
        """Return the desired number of a controller's pods, or None if it has none or is unknown."""
        workload = self._watched(key)
        if key.kind == "Job":
            return None
        if key.kind == "DaemonSet" and isinstance(workload, SlimWorkload):
            return workload.status.desired_number_scheduled
        if isinstance(workload, SlimController | SlimWorkload):
            # An absent replica count means 1, as the API server defaults it.
            return 1 if workload.spec.replicas is None else workload.spec.replicas
        read = self._read_controllers.get(key)
        return read.replicas if read else None

    async def resolve(self, pods: Iterable[Pod]) -> None:
        """Read the owners of pods that are of unwatched kinds."""
        waiting: dict[ControllerKey, OwnerReference] = {}
        visited: set[int] = set()
        for pod in pods:
            owners = pod.metadata.owner_references
            # Pods of one workload share one tuple of owners.
            if id(owners) not in visited:
                visited.add(id(owners))
                if (owner := owner_of(pod)) is not None:
                    waiting[_key(pod.metadata.namespace, owner)] = owner
        seen: set[ControllerKey] = set()
        while waiting:
            key, owner = waiting.popitem()
            seen.add(key)
            is_watched = owner.kind in self._caches
            parent = self._parent_of(key) if is_watched else (await self._read(key, owner.api_version)).parent
            if parent is not None and (above := _key(key.namespace, parent)) not in seen:
                waiting[above] = parent

    def _parent_of(self, key: ControllerKey) -> OwnerReference | None:
        workload = self._watched(key)
        return None if workload is None else _parent(workload)

    async def selector_of(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        """Return the label selector of a VPA's target, or why there is none."""
        await self.resolve_target(vpa)
        return self.cached_selector(vpa)

    async def resolve_target(self, vpa: VerticalPodAutoscaler) -> None:
        """Read a VPA's target if it is of an unwatched kind."""
        target = vpa.spec.target_ref
        if target is not None and target.name and target.kind not in self._caches:
            await self._read(
                ControllerKey(vpa.metadata.namespace, target.kind, target.name), target.api_version
            )

    def cached_selector(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        """Return the label selector of a VPA's target from the caches, or why there is none."""
        target = vpa.spec.target_ref
        if target is None or not target.name:
            return Unsupported(f"VPA {vpa.key} names no target; set spec.targetRef")
        key = ControllerKey(vpa.metadata.namespace, target.kind, target.name)
        top = self.owners().topmost(key)
        if top is not None and top != key:
            return Unsupported(
                f"VPA {vpa.key}: targetRef {target} is controlled by {top.kind}/{top.name}; "
                "target that one, the topmost well-known or scalable controller"
            )
        try:
            selector = self._selector(key)
        except SelectorError as error:
            return Unsupported(f"VPA {vpa.key}: the selector of targetRef {target} is malformed: {error}")
        if selector is None:
            return Unsupported(
                f"VPA {vpa.key}: cannot read targetRef {target}: it does not exist in namespace "
                f"{vpa.metadata.namespace}, or has no scale subresource with a selector"
            )
        return selector

    def selector_keys(self, key: ControllerKey) -> set[str]:
        """Return the label keys of a controller's selector. A pod that changes such a label is orphaned."""
        try:
            selector = self._selector(key)
        except SelectorError:
            return set()
        return {requirement.key for requirement in selector.requirements} if selector else set()

    def _selector(self, key: ControllerKey) -> Selector | None:
        workload = self._watched(key)
        parsed = self._selectors.get(key)
        if parsed is not None and workload is not None and parsed[0] is workload:
            return parsed[1]
        selector = self._parse_selector(key, workload)
        if workload is not None:
            self._selectors[key] = workload, selector
        return selector

    def _parse_selector(self, key: ControllerKey, workload: Any) -> Selector | None:
        if workload is None:
            read = self._read_controllers.get(key)
            return Selector.parse(read.selector) if read and read.selector else None
        source = _selector_source(workload)
        if isinstance(workload, SlimController):
            return Selector.from_labels(source)
        if isinstance(workload, SlimCronJob) and source is None:
            return None
        return Selector.from_label_selector(source)

    def _watched(self, key: ControllerKey) -> Any:
        cache = self._caches.get(key.kind)
        return None if cache is None else cache.get(key.name, key.namespace)

    async def _read(self, key: ControllerKey, api_version: str) -> _ReadController:
        now = self._clock.monotonic()
        self._sweep(now)
        self._used_at[key] = now
        known = self._read_controllers.get(key)
        if known is not None and known.until > now:
            return known
        flight = self._flights.get((key, api_version))
        if flight is None:
            flight = self._flights[key, api_version] = asyncio.ensure_future(self._fly(key, api_version))
            flight.add_done_callback(lambda done: self._landed(key, api_version, done))
        # Shielded, so that a cancelled review does not cancel the read of other reviews.
        return await asyncio.shield(flight)

    def _landed(self, key: ControllerKey, api_version: str, flight: asyncio.Task[_ReadController]) -> None:
        self._flights.pop((key, api_version), None)
        if not flight.cancelled():
            flight.exception()  # seen, even if every caller is gone

    def _sweep(self, now: float) -> None:
        """Drop controllers that were not asked for in a while, because their pods and VPAs are gone."""
        if now - self._swept_at < UNUSED_SECONDS:
            return
        self._swept_at = now
        for key in [key for key, used_at in self._used_at.items() if now - used_at >= UNUSED_SECONDS]:
            del self._used_at[key]
            self._read_controllers.pop(key, None)

    async def _fly(self, key: ControllerKey, api_version: str) -> _ReadController:
        now = self._clock.monotonic()
        known = self._read_controllers.get(key)
        try:
            read = await self._read_from_server(key, api_version)
        except UnknownKindError:
            read = _ReadController(None, now + MISSING_SECONDS)
        except (errors.ClusterError, ValueError):
            # The last state is better than none; the next call reads again.
            read = known or _ReadController(None, now + MISSING_SECONDS)
        self._read_controllers[key] = read
        if not read.controls_as(known):
            self._notify()
        return read

    async def _read_from_server(self, key: ControllerKey, api_version: str) -> _ReadController:
        now = self._clock.monotonic()
        served = await self._discovery.find_kind(api_version, key.kind)
        if not served.namespaced:
            return _ReadController(None, now + FOUND_SECONDS)
        resource: Resource[PartialObject] = served.resource().into(PartialObject)
        try:
            read = await self._client.get(resource, key.name, key.namespace)
        except errors.NotFound:
            return _ReadController(None, now + MISSING_SECONDS)
        parent = _parent(read)
        controller = Controller(_key(key.namespace, parent) if parent else None, served.has_scale)
        if not served.has_scale:
            return _ReadController(controller, now + FOUND_SECONDS, parent=parent)
        scale = await read_scale(self._client, served, key.name, key.namespace)
        return _ReadController(
            controller, now + FOUND_SECONDS, scale.status.selector or None, scale.spec.replicas, parent
        )


def _parent(workload: Any) -> OwnerReference | None:
    owners: tuple[OwnerReference, ...] = workload.metadata.owner_references
    return next((owner for owner in owners if owner.controller), None)


def _selector_source(workload: Any) -> Any:
    return workload.selector if isinstance(workload, SlimCronJob) else workload.spec.selector


def _key(namespace: str, owner: OwnerReference) -> ControllerKey:
    return ControllerKey(namespace, owner.kind, owner.name)
