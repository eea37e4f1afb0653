"""Finds the VPAs of a pod's workload when the pod is created.

VPAs are indexed by target, so a review reads two or three of them however many exist.
"""

from trimtab.cluster import errors
from trimtab.cluster.cache.store import Delta
from trimtab.cluster.client import Client
from trimtab.decide.vertical.admission.admit import AdmissionContext
from trimtab.decide.vertical.control.controllers import ControllerKey, topmost_controller
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.model.core.pod import Pod
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.cluster_view import ClusterView, Targeted
from trimtab.operator.vertical.kinds import SCOPES


class VpaLookup:
    """The cluster view, indexed for the review of single pods."""

    def __init__(self, client: Client, view: ClusterView, max_boost_cpu: Quantity = Quantity.zero) -> None:
        self.view = view
        self._max_boost_cpu = max_boost_cpu
        self._client = client
        self._by_target: dict[ControllerKey, dict[tuple[str, str], VerticalPodAutoscaler]] = {}
        view.vpas.subscribe(self._on_vpa)

    async def admission_context(self, pod: Pod) -> AdmissionContext:
        """Return everything that the admission of this pod depends on."""
        view = self.view
        await view.controllers.resolve([pod])
        await view.read_kubernetes()
        owners = view.controllers.owners()
        target = topmost_controller(pod, owners)
        found = self._by_target.get(target, {}).values() if target else ()
        vpas = [vpa for vpa in found if not view.vpas.is_superseded(vpa)]
        targeted = [Targeted(vpa, await view.controllers.selector_of(vpa)) for vpa in vpas]
        namespace = pod.metadata.namespace
        ranges = tuple(item for item in view.limit_ranges if item.metadata.namespace == namespace)
        return AdmissionContext(
            view.index(targeted),
            owners,
            view.node_labels() if targeted else {},
            {namespace: NamespaceRanges(ranges).of(namespace)},
            view.gates,
            view.rules,
            self._max_boost_cpu,
            await self._serves_resize(),
            view.server_rules,
        )

    async def _serves_resize(self) -> bool:
        """Return whether boosts can be undone. Discovery is only read if boosts are on."""
        if not self.view.gates.cpu_startup_boost:
            return True
        try:
            return await self.view.serves_resize()
        except errors.ClusterError:
            return True

    async def scopes_with(self, namespace: str, name: str) -> frozenset[str]:
        """Return the names of a namespace's scopes, after reading the scope `name` from the API server."""
        known = self.view.scope_names(namespace) or frozenset()
        try:
            await self._client.get(SCOPES, name, namespace)
        except (errors.NotFound, ValueError):
            return known
        except errors.ClusterError:
            pass  # do not block the user: the recommender reports a missing scope
        return known | {name}

    def _on_vpa(self, delta: Delta[VerticalPodAutoscaler]) -> None:
        for vpa in (delta.old, delta.new):
            key = _target_of(vpa)
            if vpa is not None and key is not None and (vpas := self._by_target.get(key)) is not None:
                vpas.pop(_identity(vpa), None)
                if not vpas:
                    del self._by_target[key]
        key = _target_of(delta.new)
        if delta.new is not None and key is not None:
            self._by_target.setdefault(key, {})[_identity(delta.new)] = delta.new


def _identity(vpa: VerticalPodAutoscaler) -> tuple[str, str]:
    return vpa.api_version, vpa.key


def _target_of(vpa: VerticalPodAutoscaler | None) -> ControllerKey | None:
    if vpa is None or vpa.spec.target_ref is None:
        return None
    target = vpa.spec.target_ref
    return ControllerKey(vpa.metadata.namespace, target.kind, target.name)
