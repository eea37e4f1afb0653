"""Selects the pods that count among those that match the target's labels (KEP-5625).

A `PodFilter` sees all pods at once. It keeps some and leaves others out with a reason. If an owner cannot be read, all pods
count and the selection says so, because a half-filtered set would silently change the divisor.
"""

from collections.abc import Callable, Mapping

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.owners import OwnerLookup, Target
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.owners import OwnerChains, OwnerError
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire


class LeftOut(Wire):
    """A pod that has the labels and does not count."""

    pod: str
    reason: str


class Selection(Wire):
    """The pods that count, and those that do not."""

    pods: tuple[PodSnapshot, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    fallback: str = ""
    """Why every pod counts although the strategy would choose; empty when it could choose."""


PodFilter = Callable[[tuple[PodSnapshot, ...], Target, Mapping[str, OwnerLookup]], Selection]


def keep_all(
    pods: tuple[PodSnapshot, ...], _target: Target, _lookups: Mapping[str, OwnerLookup]
) -> Selection:
    """Keep every pod that the labels select."""
    return Selection(pods=pods)


def keep_owned(
    pods: tuple[PodSnapshot, ...], target: Target, lookups: Mapping[str, OwnerLookup]
) -> Selection:
    """Keep the pods that the target owns, and leave out those that only share its labels."""
    chains = OwnerChains(target, lookups)
    kept: list[PodSnapshot] = []
    left_out: list[LeftOut] = []
    errors: list[str] = []
    for pod in pods:
        try:
            reason = chains.reason_not_owned(pod)
        except OwnerError as error:
            errors.append(str(error))
            continue
        if reason:
            left_out.append(LeftOut(pod=pod.name, reason=reason))
        else:
            kept.append(pod)
    if errors:
        return Selection(pods=pods, fallback=f"owner {min(errors)}")
    return Selection(pods=tuple(kept), left_out=tuple(left_out))


FILTERS: dict[str, PodFilter] = {
    SelectionStrategy.LABEL_SELECTOR: keep_all,
    SelectionStrategy.OWNER_REFERENCE: keep_owned,
}
"""The filter of each strategy; a new strategy is one more entry."""


def effective_strategy(strategy: str | None, gates: FeatureGates) -> str:
    """Return the strategy in force: LabelSelector while the gate is off, and for an unknown value."""
    if strategy is None or not gates.hpa_selection_strategy or strategy not in FILTERS:
        return SelectionStrategy.LABEL_SELECTOR
    return strategy


def select_pods(observation: Observation, strategy: str) -> Selection:
    """Apply the filter of a strategy to the observed pods."""
    return FILTERS[strategy](observation.pods, observation.target, observation.owners)


def foreign_pods(
    pods: tuple[PodSnapshot, ...], target: Target, lookups: Mapping[str, OwnerLookup]
) -> dict[str, str]:
    """Return the pods that the target does not own, with the reason."""
    if not lookups:
        return {}
    return {pod.pod: pod.reason for pod in keep_owned(pods, target, lookups).left_out}


def expected_pods(scale: Scale) -> int:
    """Return how many pods a target may have.

    While the target changes, its status and its pods are not of the same moment, so the higher number counts.
    """
    return max(scale.spec.replicas, scale.status.replicas)


def count_extra_pods(pods: tuple[PodSnapshot, ...], expected: int) -> int:
    """Return how many active pods there are beyond those that a target is expected to have."""
    # This comparison nearly always says that there are none, without walking the pods.
    if len(pods) <= expected:
        return 0
    return max(sum(map(_is_active, pods)) - expected, 0)


def _is_active(pod: PodSnapshot) -> bool:
    return not pod.is_deleted and pod.phase not in {"Succeeded", "Failed"}
