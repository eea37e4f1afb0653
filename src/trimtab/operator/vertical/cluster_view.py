"""The vertical components' view of the cluster: caches turned into the inputs of decisions.

Recommender, updater, admission and `explain` share it, so they agree on which VPA controls a pod.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.cache.store import Delta
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import LIMIT_RANGES, NODES, Resource
from trimtab.decide.vertical.control.claims import VpaClaim, VPAIndex, index_vpas
from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, creator_of
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.decide.vertical.input.usage import Capacity
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.in_place.reverts import has_leftovers
from trimtab.decide.vertical.update.observation import ObservedController, ObservedVPA, UpdateObservation
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.objects import LimitRange, Node
from trimtab.model.core.pod import CPU, MEMORY, Pod
from trimtab.model.core.server_rules import ServerRules, rules_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.pods.whole_pods import whole_pods
from trimtab.operator.settings.compat import upstreams
from trimtab.operator.vertical.kinds import OWN, SCOPES, VpaKind
from trimtab.operator.vertical.targets import Controllers, Unsupported
from trimtab.operator.vertical.vpa_cache import VpaCache

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Targeted:
    """A VPA with the selector of its target, or the reason why there is none."""

    vpa: VerticalPodAutoscaler
    target: Selector | Unsupported

    @property
    def name(self) -> NamespacedName:
        """Return the namespace and name of the VPA."""
        return self.vpa.metadata.namespaced_name

    @property
    def selector(self) -> Selector | None:
        """Return the selector, if there is one that selects pods."""
        target = self.target
        return None if isinstance(target, Unsupported) or target.selects_nothing else target


@dataclass(frozen=True)
class ControlSnapshot:
    """Everything that decides which VPA controls which pod, at one moment."""

    vpas: tuple[Targeted, ...]
    index: VPAIndex
    owners: ControllerIndex
    nodes: NodeLabels

    @cached_property
    def claims(self) -> dict[str, VpaClaim]:
        """Return the claim of each VPA, by `namespace/name`."""
        return {claim.key: claim for claims in self.index.by_target.values() for claim in claims}


class ClusterView:
    """The caches behind all vertical decisions."""

    def __init__(
        self,
        client: Client,
        discovery: Discovery,
        caches: SharedInformers,
        *,
        gates: FeatureGates | None = None,
        rules: Rules = Rules.TRIMTAB,
        kinds: Sequence[VpaKind] = (OWN,),
    ) -> None:
        self.gates = gates or FeatureGates()
        self.rules = rules
        self.discovery = discovery
        self.pods: NamespacedInformer[Pod] = caches.get(whole_pods())
        self.vpas = VpaCache()
        self.nodes = caches.get(NODES)
        self.controllers = Controllers(client, self.discovery, caches)
        self.share = caches.share
        """The watched namespaces, or those of the shards that are held."""
        self._caches = caches
        self._scopes: NamespacedInformer[VPAScope] | None = None
        self._limit_ranges: NamespacedInformer[LimitRange] | None = None
        self._kubernetes = ""
        """The last known version of the API server."""
        self._version = 0
        """Counts the changes that may affect control."""
        self._snapshot: tuple[tuple[int, FeatureGates, Rules], ControlSnapshot] | None = None
        """The last control snapshot, with the version and rules that it was built from."""
        self.vpas.subscribe(self._changed)
        self.kinds = tuple(kinds)
        # Where only upstream's CRDs are, nobody grants the right to list ours. So `begin` looks for them first.
        for kind in self.kinds:
            if kind is not OWN or len(self.kinds) == 1:
                self.vpas.watch(kind, caches.get(kind.vpas))
        self.nodes.subscribe(self._on_node)
        self.controllers.subscribe(self._changed)

    @property
    def limit_ranges(self) -> NamespacedInformer[LimitRange]:
        """Return the LimitRanges, which are watched from the first call on."""
        if self._limit_ranges is None:
            self._limit_ranges = self._caches.get(LIMIT_RANGES)
        return self._limit_ranges

    def size_pods(self) -> "ClusterView":
        """Watch LimitRanges, which the recommender neither needs nor may read."""
        assert self.limit_ranges is not None
        return self

    async def wait_synced(self) -> None:
        """Wait for the first list of all caches, except for namespaces that may not be listed."""
        await self.begin()
        for cache in self.all_caches():
            await cache.wait_settled()

    async def begin(self) -> None:
        """Watch our own VPAs beside native ones, and VPAScopes if the gate is on, as far as the cluster serves them."""
        if OWN in self.kinds and OWN not in self.vpas.by_kind and await self._is_served(OWN.vpas):
            self.vpas.watch(OWN, self._caches.get(OWN.vpas))
        if self.gates.vpa_selector_refinement and self._scopes is None:
            if await self._is_served(SCOPES):
                self._scopes = self._caches.get(SCOPES)
                self._scopes.subscribe(self._changed)
            else:
                log.warning("the cluster does not serve VPAScope; VPAs that name one do nothing")

    async def _is_served(self, resource: Resource[Any]) -> bool:
        served = await self.discovery.served(resource.group, resource.version, resource.plural)
        return served is not None

    def has_shard(self, shard: int) -> bool:
        """Return whether everything about the objects of a shard is cached."""
        return self._caches.has_shard(shard)

    async def wait_shard(self, shard: int) -> None:
        """Wait for the first lists of a shard."""
        await self._caches.wait_shard(shard)

    @property
    def has_synced(self) -> bool:
        """Return whether all caches are complete, except for namespaces that may not be listed."""
        return all(cache.is_settled for cache in self.all_caches())

    def all_caches(self) -> Iterator[NamespacedInformer[Any]]:
        """Yield every cache that decisions depend on."""
        yield from (self.pods, self.nodes)
        yield from self.vpas.by_kind.values()
        if self._limit_ranges is not None:
            yield self._limit_ranges
        yield from self.controllers.caches()
        if self._scopes is not None:
            yield self._scopes

    def problems(self) -> dict[str, str]:
        """Return why caches are incomplete or cannot be watched, by resource."""
        problems = {}
        for cache in self.all_caches():
            if not cache.is_settled and (self.share.is_fixed or cache.last_error()):
                problems[cache.resource.plural] = cache.last_error() or "the first list is not complete"
            elif error := cache.failure():
                problems[cache.resource.plural] = error
        return problems

    def warnings(self) -> dict[str, str]:
        """Return which namespaces may not be read and count as empty, and which VPAs are left alone, by name."""
        left_alone = "the native VPA is left alone: a VPA of Trimtab's kind has its name"
        return {f"VPA {vpa.key}": left_alone for vpa in self.vpas.superseded()} | {
            f"{cache.resource.plural} of {namespace}": answer
            for cache in self.all_caches()
            for namespace, answer in cache.refusals().items()
        }

    def stale_namespaces(self) -> dict[str, str]:
        """Return the namespaces whose pods must not be changed, because a cache is stale, with the reason.

        An empty name means all. Budgets and roles would be computed from what was true a while ago.
        """
        found: dict[str, str] = {}
        for cache in self.all_caches():
            for namespace, reason in cache.incomplete().items():
                found.setdefault(namespace, f"{cache.resource.plural}: {reason}")
        return found

    def scopes(self) -> Iterable[VPAScope]:
        """Return the VPAScopes, or none if the gate is off."""
        return self._scopes if self._scopes is not None else ()

    def scope_names(self, namespace: str) -> frozenset[str] | None:
        """Return the names of a namespace's VPAScopes, or None if the cache lacks them."""
        if self._scopes is None or not self._scopes.has_synced:
            return None
        return frozenset(
            scope.metadata.name for scope in self._scopes if scope.metadata.namespace == namespace
        )

    def node_labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of every node."""
        return {node.metadata.name: node.metadata.labels for node in self.nodes}

    def capacities(self) -> dict[str, Capacity]:
        """Return the capacity of every node."""
        return {
            node.metadata.name: capacity for node in self.nodes if (capacity := _capacity(node)) is not None
        }

    async def control_snapshot(self, namespaces: Collection[str] = ()) -> ControlSnapshot:
        """Return the control snapshot, which all components share until a cache changes.

        Owners of pods are resolved in the namespaces that have VPAs and in `namespaces`.
        """
        version = self._version
        vpas = sorted(self.vpas, key=lambda vpa: vpa.key)
        for vpa in vpas:
            await self.controllers.resolve_target(vpa)
        known = {*namespaces, *(vpa.metadata.namespace for vpa in vpas)}
        await self.controllers.resolve(pod for pod in self.pods if pod.metadata.namespace in known)
        key = version, self.gates, self.rules
        if self._snapshot is None or self._snapshot[0] != key:
            targeted = tuple(Targeted(vpa, self.controllers.cached_selector(vpa)) for vpa in vpas)
            owners, nodes = self.controllers.owners(), self.node_labels()
            self._snapshot = key, ControlSnapshot(targeted, self.index(targeted), owners, nodes)
        return self._snapshot[1]

    def _changed(self, _: object = None) -> None:
        self._version += 1

    def _on_node(self, delta: Delta[Node]) -> None:
        if delta.old is None or delta.new is None or delta.old.metadata.labels != delta.new.metadata.labels:
            self._version += 1

    def index(self, vpas: Iterable[Targeted]) -> VPAIndex:
        """Index VPAs by target, with their scopes."""
        return index_vpas(
            ((targeted.vpa, targeted.selector) for targeted in vpas),
            {scope.metadata.key: scope for scope in self.scopes()},
            is_gate_on=self.gates.vpa_selector_refinement,
            rules=self.rules,
        )

    async def serves_resize(self) -> bool:
        """Return whether the cluster resizes pods in place."""
        pods = await self.discovery.served("", "v1", "pods")
        return pods is not None and "resize" in pods.subresources

    @property
    def server_rules(self) -> ServerRules:
        """Return the rules of the API server, by its last known version."""
        return rules_of(self._kubernetes)

    async def read_kubernetes(self) -> str:
        """Return the version of the API server, or the last known one if it does not say."""
        with contextlib.suppress(errors.ClusterError):
            self._kubernetes = await self.discovery.kubernetes()
        return self._kubernetes

    async def observation(self, *, serves_resize: bool, without: Collection[str] = ()) -> UpdateObservation:
        """Return the input of an update loop for the namespaces with VPAs or leftovers of VPAs.

        The namespaces in `without` are left out.
        """
        left_behind = self._left_behind_namespaces()
        control = await self.control_snapshot(left_behind)
        vpas = [targeted for targeted in control.vpas if targeted.vpa.metadata.namespace not in without]
        namespaces = {*left_behind.difference(without), *(vpa.vpa.metadata.namespace for vpa in vpas)}
        pods = tuple(pod for pod in self.pods if pod.metadata.namespace in namespaces)
        return UpdateObservation(
            vpas=tuple(
                ObservedVPA(vpa=targeted.vpa, selector=None if selector is None else str(selector))
                for targeted, selector in ((targeted, targeted.selector) for targeted in vpas)
            ),
            scopes=tuple(self.scopes()),
            pods=pods,
            controllers=self._observed_controllers(pods),
            nodes=self.node_labels(),
            limit_ranges=tuple(self.limit_ranges),
            serves_resize=serves_resize,
            kubernetes=await self.read_kubernetes(),
        )

    def _left_behind_namespaces(self) -> set[str]:
        """Return the namespaces of pods whose boost or resize has to be undone.

        Their other pods are observed too, because disruption budgets count them.
        """
        if not self.rules.ours:
            return set()
        return {pod.metadata.namespace for pod in self.pods if has_leftovers(pod)}

    def _observed_controllers(self, pods: Iterable[Pod]) -> dict[str, ObservedController]:
        observed: dict[str, ObservedController] = {}
        waiting: set[ControllerKey] = {key for pod in pods if (key := creator_of(pod)) is not None}
        while waiting:
            key = waiting.pop()
            controller = self.controllers.get(key)
            if str(key) in observed or controller is None:
                continue
            observed[str(key)] = ObservedController(
                parent=str(controller.parent) if controller.parent else None,
                is_scalable=controller.is_scalable,
                replicas=self.controllers.replicas(key),
            )
            if controller.parent is not None:
                waiting.add(controller.parent)
        return observed


def vpa_rules(compat: str) -> Rules:
    """Return the rules that `--compat` names: Trimtab's own, or upstream's."""
    return Rules.VPA_1_8 if upstreams(compat) else Rules.TRIMTAB


def _capacity(node: Node) -> Capacity | None:
    amounts = node.status.capacity
    if CPU not in amounts or MEMORY not in amounts:
        return None
    return Capacity(amounts[CPU].milli_value(), amounts[MEMORY].value())
