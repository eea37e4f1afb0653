"""What the vertical loops know of the cluster: one set of caches, put into the values that decisions take.

Recommender, updater, admission and `explain` all look through this, so they cannot differ about who controls a pod.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import LIMIT_RANGES, NODES
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.control.control import VpaClaim, VPAIndex, index_vpas
from trimtab.decide.vertical.control.controllers import (
    ControllerIndex,
    ControllerKey,
    creator_of,
)
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.decide.vertical.input.usage import Capacity
from trimtab.decide.vertical.update.in_place.withdraw import is_left_behind
from trimtab.decide.vertical.update.observation import (
    ObservedController,
    ObservedVPA,
    UpdateObservation,
)
from trimtab.model.core.objects import LimitRange, Node
from trimtab.model.core.pod import CPU, MEMORY, Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.pods.vpa_pods import shared_pods
from trimtab.operator.vertical.kinds import GROUP, SCOPES, VERSION, VPAS
from trimtab.operator.vertical.targets import Controllers, Unsupported

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Targeted:
    """A VPA with the selector of its target, or why there is none."""

    vpa: VerticalPodAutoscaler
    target: Selector | Unsupported

    @property
    def selector(self) -> Selector | None:
        """Return the selector if it is usable; one made from nothing selects nothing."""
        found = self.target
        return None if isinstance(found, Unsupported) or found.selects_nothing else found


@dataclass(frozen=True)
class ControlSnapshot:
    """Who may control whom, as of one moment."""

    vpas: tuple[Targeted, ...]
    index: VPAIndex
    owners: ControllerIndex
    nodes: NodeLabels

    @cached_property
    def claims(self) -> dict[str, VpaClaim]:
        """Return each VPA's claim, by `namespace/name`."""
        return {claim.key: claim for claims in self.index.by_target.values() for claim in claims}


class ClusterView:
    """The caches behind every vertical decision."""

    def __init__(
        self,
        client: Client,
        discovery: Discovery,
        caches: SharedInformers,
        *,
        gates: FeatureGates | None = None,
        compat: VpaCompat = DEFAULT,
    ) -> None:
        self.gates = gates or FeatureGates()
        self.compat = compat
        self.discovery = discovery
        self.pods: NamespacedInformer[Pod] = caches.want(shared_pods())
        self.vpas = caches.want(VPAS)
        self.nodes = caches.want(NODES)
        self.controllers = Controllers(client, self.discovery, caches)
        self.namespaces = caches.namespaces
        """The watched namespaces; none means all."""
        self._caches = caches
        self._scopes: NamespacedInformer[VPAScope] | None = None
        self._limit_ranges: NamespacedInformer[LimitRange] | None = None

    @property
    def limit_ranges(self) -> NamespacedInformer[LimitRange]:
        """Return the LimitRanges; they are watched from the first time on that a loop asks for them."""
        if self._limit_ranges is None:
            self._limit_ranges = self._caches.want(LIMIT_RANGES)
        return self._limit_ranges

    def size_pods(self) -> "ClusterView":
        """Watch what bounds a pod's size from the start; the recommender has no need of it, and no right to it."""
        assert self.limit_ranges is not None
        return self

    async def wait_synced(self) -> None:
        """Wait until everything that control depends on is known."""
        await self.begin()
        for cache in self.all_caches():
            await cache.wait_synced()

    async def begin(self) -> None:
        """Start to watch what depends on the cluster and on the gates."""
        if self.gates.vpa_selector_refinement and self._scopes is None:
            if await self.discovery.served(GROUP, VERSION, SCOPES.plural) is not None:
                self._scopes = self._caches.want(SCOPES)
            else:
                log.warning("the cluster does not serve VPAScope; VPAs that name one do nothing")

    @property
    def has_synced(self) -> bool:
        """Return whether nothing is missing from the caches."""
        return all(cache.has_synced for cache in self.all_caches())

    def all_caches(self) -> Iterator[NamespacedInformer[Any]]:
        """Yield every cache that decisions are made from."""
        yield from (self.pods, self.vpas, self.nodes)
        if self._limit_ranges is not None:
            yield self._limit_ranges
        yield from self.controllers.caches()
        if self._scopes is not None:
            yield self._scopes

    def problems(self) -> dict[str, str]:
        """Return which caches are incomplete or cannot be followed."""
        found = {}
        for cache in self.all_caches():
            error = cache.last_error()
            if not cache.has_synced:
                found[cache.resource.plural] = error or "the first list is not complete"
            elif error:
                found[cache.resource.plural] = error
        return found

    def scopes(self) -> Iterable[VPAScope]:
        """Return the VPAScopes; none while the gate is off."""
        return self._scopes if self._scopes is not None else ()

    def scope_names(self, namespace: str) -> frozenset[str] | None:
        """Return the names of a namespace's scopes; None if they are not known."""
        if self._scopes is None or not self._scopes.has_synced:
            return None
        return frozenset(
            scope.metadata.name for scope in self._scopes if scope.metadata.namespace == namespace
        )

    def subscribe_scopes(self, subscriber: Any) -> None:
        """Tell `subscriber` of every change of a scope, if scopes are in use."""
        if self._scopes is not None:
            self._scopes.subscribe(subscriber)

    def node_labels(self) -> dict[str, dict[str, str]]:
        """Return every node's labels."""
        return {node.metadata.name: node.metadata.labels for node in self.nodes}

    def capacities(self) -> dict[str, Capacity]:
        """Return what every node has; no container can use more."""
        return {node.metadata.name: found for node in self.nodes if (found := _capacity(node)) is not None}

    async def standings(self, namespaces: Collection[str] = ()) -> ControlSnapshot:
        """Resolve all VPAs, their targets and scopes, and the owners of pods in their namespaces and in these."""
        vpas = [
            Targeted(vpa, await self.controllers.selector_of(vpa))
            for vpa in sorted(self.vpas, key=lambda one: one.key)
        ]
        known = {*namespaces, *(one.vpa.metadata.namespace for one in vpas)}
        await self.controllers.resolve(pod for pod in self.pods if pod.metadata.namespace in known)
        return ControlSnapshot(tuple(vpas), self.index(vpas), self.controllers.owners(), self.node_labels())

    def index(self, vpas: Iterable[Targeted]) -> VPAIndex:
        """Return these VPAs by target, scopes resolved."""
        return index_vpas(
            ((one.vpa, one.selector) for one in vpas),
            {scope.metadata.key: scope for scope in self.scopes()},
            is_gate_on=self.gates.vpa_selector_refinement,
            compat=self.compat,
        )

    async def serves_resize(self) -> bool:
        """Return whether the cluster resizes pods in place."""
        pods = await self.discovery.served("", "v1", "pods")
        return pods is not None and "resize" in pods.subresources

    async def observation(self, *, serves_resize: bool) -> UpdateObservation:
        """Return the cluster as an update loop sees it: the namespaces that have VPAs, or pods that VPAs left behind."""
        left_behind = self._left_behind()
        standings = await self.standings(left_behind)
        namespaces = {*left_behind, *(one.vpa.metadata.namespace for one in standings.vpas)}
        pods = tuple(pod for pod in self.pods if pod.metadata.namespace in namespaces)
        return UpdateObservation(
            vpas=tuple(
                ObservedVPA(vpa=one.vpa, selector=None if one.selector is None else str(one.selector))
                for one in standings.vpas
            ),
            scopes=tuple(self.scopes()),
            pods=pods,
            controllers=self._observed_controllers(pods),
            nodes=self.node_labels(),
            limit_ranges=tuple(self.limit_ranges),
            serves_resize=serves_resize,
        )

    def _left_behind(self) -> set[str]:
        """Return namespaces of pods that wait for something to be taken back; whole ones, for the sake of budgets."""
        if not self.compat.disruptions_last_until_ready:
            return set()
        return {pod.metadata.namespace for pod in self.pods if is_left_behind(pod)}

    def _observed_controllers(self, pods: Iterable[Pod]) -> dict[str, ObservedController]:
        found: dict[str, ObservedController] = {}
        waiting: set[ControllerKey] = {key for pod in pods if (key := creator_of(pod)) is not None}
        while waiting:
            key = waiting.pop()
            controller = self.controllers.get(key)
            if str(key) in found or controller is None:
                continue
            found[str(key)] = ObservedController(
                parent=str(controller.parent) if controller.parent else None,
                is_scalable=controller.is_scalable,
                replicas=self.controllers.replicas(key),
            )
            if controller.parent is not None:
                waiting.add(controller.parent)
        return found


def _capacity(node: Node) -> Capacity | None:
    amounts = node.status.capacity
    if CPU not in amounts or MEMORY not in amounts:
        return None
    return Capacity(amounts[CPU].milli_value(), amounts[MEMORY].value())
