"""Controllers of pods and targets of VPAs: from watches for the well-known kinds, else asked for and remembered.

A kind that is not watched (a Rollout, a custom database) counts if it has a scale subresource: its scale tells both
its pods' selector and how many there should be.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.cache.codec import PartialObject
from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery, UnknownKindError
from trimtab.cluster.resource import Resource
from trimtab.cluster.scale import read_scale
from trimtab.decide.vertical.control.controllers import (
    Controller,
    ControllerIndex,
    ControllerKey,
    owner_of,
)
from trimtab.model.core.meta import OwnerReference
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.horizontal.inputs.kinds import SlimController, SlimWorkload
from trimtab.operator.vertical.kinds import WORKLOADS, SlimCronJob

FRESH_SECONDS = 600.0
"""How long a controller of a kind that is not watched is believed; upstream's scale cache has the same."""
GONE_SECONDS = 60.0
"""How long we believe that such a controller does not exist."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a VPA's target cannot be used; becomes its condition ConfigUnsupported."""

    message: str


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A controller that was asked for; `controller` is None if it does not exist or cannot be scaled."""

    controller: Controller | None
    until: float
    selector: str | None = None
    replicas: int | None = None
    parent: OwnerReference | None = None


class Controllers(Mapping[ControllerKey, Controller]):
    """Every controller that is known now; a view of the caches, not a copy."""

    def __init__(self, client: Client, discovery: Discovery, caches: SharedInformers) -> None:
        self._client = client
        self._clock = client.clock
        self._discovery = discovery
        self._caches: dict[str, NamespacedInformer[Any]] = {
            kind: caches.want(resource) for kind, resource in WORKLOADS.items()
        }
        self._foreign: dict[ControllerKey, _Foreign] = {}
        self._selectors: dict[ControllerKey, tuple[Any, Selector | None]] = {}
        """Selectors as last read, each with the object that it was read from."""

    def caches(self) -> Iterable[NamespacedInformer[Any]]:
        """Return the caches that answers come from."""
        return self._caches.values()

    def owners(self) -> ControllerIndex:
        """Return the chains of controllers as of now; make a new one per loop, since answers are remembered in it."""
        return ControllerIndex(self)

    def __getitem__(self, key: ControllerKey) -> Controller:
        thing = self._watched(key)
        if thing is not None:
            parent = _parent(thing)
            return Controller(_key(key.namespace, parent) if parent else None)
        found = self._foreign.get(key)
        if found is None or found.controller is None:
            raise KeyError(key)
        return found.controller

    def __iter__(self) -> Iterator[ControllerKey]:
        for kind, cache in self._caches.items():
            for thing in cache:
                yield ControllerKey(thing.metadata.namespace, kind, thing.metadata.name)
        yield from (key for key, found in self._foreign.items() if found.controller is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def replicas(self, key: ControllerKey) -> int | None:
        """Return how many pods a controller should have; None if that cannot be told."""
        thing = self._watched(key)
        if isinstance(thing, SlimController):
            return 1 if thing.spec.replicas is None else thing.spec.replicas
        if not isinstance(thing, SlimWorkload):
            found = self._foreign.get(key)
            return found.replicas if found else None
        if key.kind == "DaemonSet":
            return thing.status.desired_number_scheduled
        if key.kind == "Job":
            return None
        # The API server defaults an absent replica count to 1 before it stores the object.
        return 1 if thing.spec.replicas is None else thing.spec.replicas

    async def resolve(self, pods: Iterable[Pod]) -> None:
        """Ask for those controllers of the pods that are of kinds not watched."""
        waiting: dict[ControllerKey, OwnerReference] = {}
        looked_at: set[int] = set()
        for pod in pods:
            owners = pod.metadata.owner_references
            # Pods of one workload share their owners: the same object says the same.
            if id(owners) not in looked_at:
                looked_at.add(id(owners))
                if (owner := owner_of(pod)) is not None:
                    waiting[_key(pod.metadata.namespace, owner)] = owner
        seen: set[ControllerKey] = set()
        while waiting:
            key, owner = waiting.popitem()
            seen.add(key)
            is_watched = owner.kind in self._caches
            parent = self._parent_of(key) if is_watched else (await self._ask(key, owner.api_version)).parent
            if parent is not None and (above := _key(key.namespace, parent)) not in seen:
                waiting[above] = parent

    def _parent_of(self, key: ControllerKey) -> OwnerReference | None:
        thing = self._watched(key)
        return None if thing is None else _parent(thing)

    async def selector_of(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        """Return the label selector of a VPA's target, or why there is none."""
        target = vpa.spec.target_ref
        if target is None or not target.name:
            return Unsupported(f"VPA {vpa.key} names no target; set spec.targetRef")
        key = ControllerKey(vpa.metadata.namespace, target.kind, target.name)
        if target.kind not in self._caches:
            await self._ask(key, target.api_version)
        return self.known_selector(vpa)

    def known_selector(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        """Return the same from what is known already, without asking anybody."""
        target = vpa.spec.target_ref
        if target is None:
            return Unsupported(f"VPA {vpa.key} names no target; set spec.targetRef")
        key = ControllerKey(vpa.metadata.namespace, target.kind, target.name)
        top = self.owners().topmost(key)
        if top is not None and top != key:
            return Unsupported(
                f"VPA {vpa.key}: targetRef {target} is controlled by {top.kind}/{top.name}; "
                "target that one, the topmost well-known or scalable controller"
            )
        try:
            found = self._selector(key)
        except SelectorError as error:
            return Unsupported(f"VPA {vpa.key}: the selector of targetRef {target} is malformed: {error}")
        if found is None:
            return Unsupported(
                f"VPA {vpa.key}: cannot read targetRef {target}: it does not exist in namespace "
                f"{vpa.metadata.namespace}, or has no scale subresource with a selector"
            )
        return found

    def selector_keys(self, key: ControllerKey) -> set[str]:
        """Return the label keys by which a controller knows its pods; changing one of them would orphan a pod."""
        try:
            found = self._selector(key)
        except SelectorError:
            return set()
        return {requirement.key for requirement in found.requirements} if found else set()

    def _selector(self, key: ControllerKey) -> Selector | None:
        thing = self._watched(key)
        known = self._selectors.get(key)
        if known is not None and thing is not None and known[0] is thing:
            return known[1]
        found = self._read_selector(key, thing)
        self._selectors[key] = thing, found
        return found

    def _read_selector(self, key: ControllerKey, thing: Any) -> Selector | None:
        if isinstance(thing, SlimCronJob):
            return None if thing.selector is None else Selector.from_label_selector(thing.selector)
        if isinstance(thing, SlimController):
            return Selector.from_labels(thing.spec.selector)
        if thing is not None:
            return Selector.from_label_selector(thing.spec.selector)
        found = self._foreign.get(key)
        return Selector.parse(found.selector) if found and found.selector else None

    def _watched(self, key: ControllerKey) -> Any:
        cache = self._caches.get(key.kind)
        return None if cache is None else cache.get(key.name, key.namespace)

    async def _ask(self, key: ControllerKey, api_version: str) -> _Foreign:
        now = self._clock.monotonic()
        known = self._foreign.get(key)
        if known is not None and known.until > now:
            return known
        try:
            found = await self._read(key, api_version)
        except UnknownKindError:
            found = _Foreign(None, now + GONE_SECONDS)
        except (errors.ClusterError, ValueError):
            # Nobody can tell now: what we knew is better than nothing, and soon we ask again.
            found = known or _Foreign(None, now + GONE_SECONDS)
        self._foreign[key] = found
        return found

    async def _read(self, key: ControllerKey, api_version: str) -> _Foreign:
        now = self._clock.monotonic()
        served = await self._discovery.find_kind(api_version, key.kind)
        if not served.namespaced:
            return _Foreign(None, now + FRESH_SECONDS)
        resource: Resource[PartialObject] = served.resource().into(PartialObject)
        try:
            thing = await self._client.get(resource, key.name, key.namespace)
        except errors.NotFound:
            return _Foreign(None, now + GONE_SECONDS)
        parent = _parent(thing)
        controller = Controller(_key(key.namespace, parent) if parent else None, served.has_scale)
        if not served.has_scale:
            return _Foreign(controller, now + FRESH_SECONDS, parent=parent)
        scale = await read_scale(self._client, served, key.name, key.namespace)
        return _Foreign(
            controller, now + FRESH_SECONDS, scale.status.selector or None, scale.spec.replicas, parent
        )


def _parent(thing: Any) -> OwnerReference | None:
    owners: tuple[OwnerReference, ...] = thing.metadata.owner_references
    return next((owner for owner in owners if owner.controller), None)


def _key(namespace: str, owner: OwnerReference) -> ControllerKey:
    return ControllerKey(namespace, owner.kind, owner.name)
