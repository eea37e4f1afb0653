"""Whether a pod may run on a node: selector, affinity, taints (pure); shared by DaemonSets and the scheduler."""

from collections.abc import Mapping, Sequence

from trimtab.lab.controllers.base.kinds import RunNode, RunSpec, RunTaint, RunToleration
from trimtab.model.core.pod import NodeSelectorRequirement, NodeSelectorTerm

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def mismatch(spec: RunSpec, node: RunNode) -> str:
    """Return why a pod may not run on a node, in the scheduler's words; empty if it may."""
    if not may_select(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    taint = refusing_taint(spec.tolerations, taints_of(node))
    return f"node(s) had untolerated taint(s) {{{taint.key}: {taint.value}}}" if taint is not None else ""


def may_select(spec: RunSpec, node: RunNode) -> bool:
    """Tell whether node selector and required affinity hold."""
    labels = node.metadata.labels
    if any(labels.get(name) != value for name, value in spec.node_selector.items()):
        return False
    if spec.affinity is None:
        return True
    terms = (
        spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    )
    return not terms or any(_term_holds(term, node) for term in terms)


def _term_holds(term: NodeSelectorTerm, node: RunNode) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False  # an empty term selects nothing, by definition
    fields = {"metadata.name": node.metadata.name}
    return all(_requires(one, node.metadata.labels) for one in term.match_expressions) and all(
        _requires(one, fields) for one in term.match_fields
    )


def _requires(one: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value = values.get(one.key)
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, one)
    return False


def _compares(value: str | None, one: NodeSelectorRequirement) -> bool:
    try:
        left, right = int(value or ""), int(one.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if one.operator == "Gt" else left < right


def taints_of(node: RunNode) -> Sequence[RunTaint]:
    """Return the node's taints, with the one that cordoning stands for."""
    if not node.spec.unschedulable or any(one.key == UNSCHEDULABLE for one in node.spec.taints):
        return node.spec.taints
    return (*node.spec.taints, RunTaint(key=UNSCHEDULABLE, effect="NoSchedule"))


def refusing_taint(tolerations: Sequence[RunToleration], taints: Sequence[RunTaint]) -> RunTaint | None:
    """Return the first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _tolerates(one: RunToleration, taint: RunTaint) -> bool:
    if one.effect not in ("", taint.effect) or one.key not in ("", taint.key):
        return False
    return one.operator == "Exists" or (bool(one.key) and one.value == taint.value)
