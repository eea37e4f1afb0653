"""Why a pod may not run on a node, in the scheduler's words."""

from collections.abc import Sequence

from trimtab.model.core.objects import Node, Taint
from trimtab.model.core.scheduling import find_untolerated_taint, matches_node_affinity
from trimtab_lab.controllers.kinds import LabPodSpec

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def node_mismatch(spec: LabPodSpec, node: Node) -> str:
    """Return why a pod may not run on a node, or an empty text if it may."""
    if not matches_node_affinity(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    taint = find_untolerated_taint(spec.tolerations, _taints(node))
    return f"node(s) had untolerated taint(s) {{{taint.key}: {taint.value}}}" if taint is not None else ""


def _taints(node: Node) -> Sequence[Taint]:
    taints = node.spec.taints
    if not node.spec.unschedulable or any(taint.key == UNSCHEDULABLE for taint in taints):
        return taints
    # A cordoned node counts as tainted, so that DaemonSets can tolerate it.
    return (*taints, Taint(key=UNSCHEDULABLE, effect="NoSchedule"))
