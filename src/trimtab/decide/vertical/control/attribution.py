"""Which VPAs receive the usage samples of a pod, and which aggregate holds them."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.decide.vertical.control.control import VpaClaim, VPAIndex
from trimtab.decide.vertical.control.controllers import ControllerIndex, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels, Scope
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import UpdateMode


@dataclass(frozen=True)
class Attribution:
    """The VPAs that a pod's samples belong to."""

    receivers: tuple[str, ...] = ()
    """VPAs that receive the samples, by `namespace/name`. The controlling VPA is first, VPAs in mode Off follow."""
    matched: tuple[str, ...] = ()
    """VPAs whose target and scope match the pod, in control or not."""
    partition: str = ""
    """Separates the pod from pods with the same labels: its topmost owner and its node scopes."""


def attribute(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Attribution:
    """Return the VPAs that a pod's samples belong to.

    The partition names the topmost owner, so that a foreign pod with the workload's labels has a separate history. It
    also names the node scopes of the pod, so that each class of nodes has a separate history.
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
        receivers=_receivers(matching),
        matched=tuple(claim.key for claim in matching),
        partition=";".join([str(target), *sorted(set(node_scopes))]),
    )


def receiving_vpas(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> tuple[str, ...]:
    """Return the VPAs that receive a pod's samples, the controlling VPA first."""
    return attribute(pod, index, owners, nodes).receivers


def _receivers(matching: Sequence[VpaClaim]) -> tuple[str, ...]:
    """Return the VPAs that receive samples, given the claims that match the pod, strongest first.

    A VPA in mode Off is a preview: it recommends what it would recommend if it were active. Of these VPAs, the strongest
    of each recommender receives samples, so that two recommenders can be compared on one workload. A controlling VPA of
    a higher level excludes weaker VPAs in mode Off. Beside a controlling VPA of the same level, a VPA in mode Off may be
    there to compare two policies (docs/decisions/a-single-function-decides-which-vpa-controls-a-pod.md).
    """
    controlling = next((claim for claim in matching if claim.is_active), None)
    previews: dict[str, VpaClaim] = {}
    for claim in matching:
        if claim.mode == UpdateMode.OFF:
            previews.setdefault(recommender_of(claim.vpa), claim)
    level = 0 if controlling is None else controlling.level
    off = tuple(claim.key for claim in previews.values() if claim.level >= level)
    return off if controlling is None else (controlling.key, *off)
