"""Which VPAs receive the usage samples of a pod, and which aggregate holds them."""

from dataclasses import dataclass

from trimtab.decide.vertical.control.control import Control
from trimtab.decide.vertical.control.scope import Scope


@dataclass(frozen=True)
class Attribution:
    """The VPAs that a pod's samples belong to."""

    receivers: tuple[str, ...] = ()
    """VPAs that receive the samples, by `namespace/name`. The controlling VPA is first, VPAs in mode Off follow."""
    matched: tuple[str, ...] = ()
    """VPAs whose target and scope match the pod, in control or not."""
    partition: str = ""
    """Separates the pod from pods with the same labels: its topmost owner and its node scopes."""
    is_undecided: bool = False
    """Whether the samples are rejected, because the role of the pod is not known."""


def attribution_of(control: Control) -> Attribution:
    """Return the VPAs that a pod's samples belong to.

    The partition names the topmost owner, so that a foreign pod with the workload's labels has a separate history. It
    also names the node scopes of the pod, so that each class of nodes has a separate history.
    """
    if control.target is None:
        return Attribution(partition="unowned")
    matched = tuple(claim.key for claim in control.matching)
    if control.undecided:
        return Attribution(matched=matched, partition="undecided", is_undecided=True)
    node_scopes = {
        claim.scope.name
        for claim in control.matching
        if isinstance(claim.scope, Scope) and claim.scope.nodes is not None
    }
    return Attribution(
        receivers=tuple(claim.key for claim in control.receivers),
        matched=matched,
        partition=";".join([str(control.target), *sorted(node_scopes)]),
    )
