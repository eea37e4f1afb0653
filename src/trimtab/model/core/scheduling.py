"""Which nodes a pod may run on: node selector, required node affinity, taints and tolerations.

As in the scheduler's filters NodeAffinity and TaintToleration. Affinity between pods and topology spread are left out.
"""

from collections.abc import Iterable, Mapping, Sequence

from trimtab.model.core.objects import Node, Taint
from trimtab.model.core.pod import NodeSelectorRequirement, NodeSelectorTerm, PodSpec
from trimtab.model.json.wire import Wire

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
_NAME_FIELD = "metadata.name"


class Toleration(Wire):
    """A taint that a pod tolerates. An empty key with `Exists` means every taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the pod may run on a node with the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


class PlacedSpec(PodSpec, frozen=True):
    """A pod's spec with the fields that restrict its nodes."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


def matches_node_affinity(spec: PlacedSpec, node: Node) -> bool:
    """Return whether the node satisfies the pod's node selector and required node affinity."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    if spec.affinity is None:
        return True
    required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms
    return not terms or any(_matches(term, node) for term in terms)


def find_untolerated_taint(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps the pod off the node."""
    for taint in taints:
        is_tolerated = any(toleration.tolerates(taint) for toleration in tolerations)
        if taint.effect in _REPELLING_EFFECTS and not is_tolerated:
            return taint
    return None


def _matches(term: NodeSelectorTerm, node: Node) -> bool:
    fields = {_NAME_FIELD: node.metadata.name}
    requirements = (
        *((requirement, node.metadata.labels) for requirement in term.match_expressions),
        *((requirement, fields) for requirement in term.match_fields),
    )
    # An empty term matches no node, as the API defines it.
    return bool(requirements) and all(_holds(requirement, values) for requirement, values in requirements)


def _holds(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value = values.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value or "")
    return False


def _compares(requirement: NodeSelectorRequirement, value: str) -> bool:
    try:
        number, bound = int(value), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if requirement.operator == "Gt" else number < bound
