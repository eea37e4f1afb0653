"""What the pod filters of plug-ins need beside pods: owners, and the nodes that pods are on.

Nodes are watched only if a loaded filter declares that it needs them. While they cannot be listed such a filter is not called.
"""

from collections.abc import Iterable

from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.resource import NODES
from trimtab.decide.horizontal.observation.plugin_answers import NodeSnapshot
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.model.core.objects import Node
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import Declaration, PluginKind

_NOTHING = Declaration()


class FilterNeeds:
    """What the loaded pod filters declare that they need."""

    def __init__(self, guards: Guards) -> None:
        filters = [guard.plugin for guard in guards.all() if guard.plugin.kind is PluginKind.POD_FILTER]
        self._by_name = {plugin.name: plugin.declaration for plugin in filters}
        self.any_nodes = any(plugin.declaration.needs_nodes for plugin in filters)
        """Whether any filter needs nodes."""

    def needs_owners(self, strategy: str) -> bool:
        """Return whether the filter of a strategy needs the owners of pods."""
        return self._by_name.get(strategy, _NOTHING).needs_owners

    def needs_nodes(self, spec: HorizontalPodAutoscalerSpec) -> bool:
        """Return whether the filter of an HPA needs the nodes of pods."""
        return self._by_name.get(spec.selection_strategy or "", _NOTHING).needs_nodes


class NodeCache:
    """The nodes that pods are on, for the filters that need them."""

    def __init__(self, caches: SharedInformers, needs: FilterNeeds) -> None:
        """Watch nodes if a filter needs them."""
        self._needs = needs
        self._nodes: NamespacedInformer[Node] | None = caches.get(NODES) if needs.any_nodes else None

    def nodes_for(
        self, spec: HorizontalPodAutoscalerSpec, pods: Iterable[PodSnapshot]
    ) -> dict[str, NodeSnapshot] | None:
        """Return the nodes of the pods for the filter of an HPA, or None if it needs none or they are unread."""
        if self._nodes is None or not self._needs.needs_nodes(spec) or not self._nodes.has_synced:
            return None
        found: dict[str, NodeSnapshot] = {}
        for name in sorted({pod.node for pod in pods if pod.node}):
            node = self._nodes.get(name)
            if node is not None:
                found[name] = NodeSnapshot(
                    is_unschedulable=node.spec.unschedulable, labels=node.metadata.labels
                )
        return found
