"""Leave out pods on nodes that are drained: they take no new load, and their usage says little about the others."""

from collections.abc import Mapping

from trimtab.plugins import PodFilterInput, declare


@declare(needs_nodes=True)
def keep_not_draining(seen: PodFilterInput) -> Mapping[str, str]:
    """Return the pods whose node accepts no new pods, with the reason."""
    left_out = {
        pod.name: f"node {pod.node_name} is drained"
        for pod in seen.pods
        if pod.node is not None and pod.node.is_unschedulable
    }
    # While every node is drained, the pods on them are all that carries the load.
    return left_out if len(left_out) < len(seen.pods) else {}
