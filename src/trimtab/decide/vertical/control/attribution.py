"""From a pod to the VPAs that learn from it: the control function's answer in the model's words."""

from trimtab.decide.vertical.cluster_state.cluster import Attribution
from trimtab.decide.vertical.control.control import VPAIndex, receivers_among
from trimtab.decide.vertical.control.controllers import ControllerIndex, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels, Scope
from trimtab.model.core.pod import Pod


def attribute(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Attribution:
    """Return which VPAs learn from a pod, which match it, and what tells it from pods with the same labels.

    The partition names the topmost owner, so that a foreign pod with the workload's labels has a history of its
    own, and the node scopes the pod is in, so that each class of nodes has.
    """
    target = topmost_controller(pod, owners)
    if target is None:
        return Attribution(partition="unowned")
    matching = [claim for claim in index.claims_on(target) if claim.mismatch(pod, nodes) is None]
    node_scopes = [
        claim.scope.name
        for claim in matching
        if isinstance(claim.scope, Scope) and claim.scope.nodes is not None
    ]
    return Attribution(
        receivers=receivers_among(matching),
        matched=tuple(claim.key for claim in matching),
        partition=";".join([str(target), *sorted(set(node_scopes))]),
    )
