"""Selects the pods that count among those that match the target's labels (KEP-5625).

A `PodFilter` sees all pods at once, and returns those that do not count with a reason. The two strategies of Trimtab itself have
the same protocol as the filters of plug-ins. If a filter cannot decide, because an owner cannot be read or a plug-in fails, all
pods count and the selection says so, because a half-filtered set would silently change the divisor.
"""

from collections.abc import Mapping

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.owners import OwnerLookup, Target
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.owners import OwnerChains, OwnerError
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire
from trimtab.model.plugin_names import is_plugin_name
from trimtab.plugins.pod_filter import CannotFilterError, PodFilter


class LeftOut(Wire):
    """A pod that has the labels and does not count."""

    pod: str
    reason: str


class Selection(Wire):
    """The pods that count, and those that do not."""

    strategy: str = SelectionStrategy.LABEL_SELECTOR
    pods: tuple[PodSnapshot, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    fallback: str = ""
    """Why every pod counts although the strategy would choose; empty when it could choose."""


def keep_all(_seen: Observation) -> Mapping[str, str]:
    """Keep every pod that the labels select."""
    return _NOTHING


def keep_owned(seen: Observation) -> Mapping[str, str]:
    """Keep the pods that the target owns, and leave out those that only share its labels."""
    return _not_owned(seen.pods, seen.target, seen.owners)


def keep_as_answered(seen: Observation) -> Mapping[str, str]:
    """Keep the pods that the filter of a plug-in keeps, by the answer that is part of the observation."""
    answer = seen.filter_answer
    if answer is None:
        raise CannotFilterError(f"pod filter {seen.hpa.spec.selection_strategy} was not called")
    if answer.failure:
        raise CannotFilterError(answer.failure)
    return answer.left_out


FILTERS: dict[str, PodFilter[Observation]] = {
    SelectionStrategy.LABEL_SELECTOR: keep_all,
    SelectionStrategy.OWNER_REFERENCE: keep_owned,
}
"""The filter of each strategy of Trimtab itself. Every other strategy is a plug-in's."""

_NOTHING: Mapping[str, str] = {}


def effective_strategy(strategy: str | None, gates: FeatureGates) -> str:
    """Return the strategy in force: LabelSelector while the gate is off, and for an unknown value."""
    if strategy is None or not gates.hpa_selection_strategy:
        return SelectionStrategy.LABEL_SELECTOR
    return strategy if strategy in FILTERS or is_plugin_name(strategy) else SelectionStrategy.LABEL_SELECTOR


def select_pods(observation: Observation, strategy: str) -> Selection:
    """Apply the filter of a strategy to the observed pods."""
    pods = observation.pods
    try:
        left_out = FILTERS.get(strategy, keep_as_answered)(observation)
    except CannotFilterError as error:
        return Selection(strategy=strategy, pods=pods, fallback=str(error))
    if not left_out:
        return Selection(strategy=strategy, pods=pods)
    return Selection(
        strategy=strategy,
        pods=tuple(pod for pod in pods if pod.name not in left_out),
        left_out=tuple(
            LeftOut(pod=pod.name, reason=left_out[pod.name]) for pod in pods if pod.name in left_out
        ),
    )


def _not_owned(
    pods: tuple[PodSnapshot, ...], target: Target, lookups: Mapping[str, OwnerLookup]
) -> dict[str, str]:
    """Return the pods that the target does not own, or raise CannotFilterError if an owner cannot be read."""
    chains = OwnerChains(target, lookups)
    left_out: dict[str, str] = {}
    errors: list[str] = []
    for pod in pods:
        try:
            reason = chains.reason_not_owned(pod)
        except OwnerError as error:
            errors.append(str(error))
            continue
        if reason:
            left_out[pod.name] = reason
    if errors:
        raise CannotFilterError(f"owner {min(errors)}")
    return left_out


def foreign_pods(
    pods: tuple[PodSnapshot, ...], target: Target, lookups: Mapping[str, OwnerLookup]
) -> dict[str, str]:
    """Return the pods that the target does not own, with the reason."""
    if not lookups:
        return {}
    try:
        return _not_owned(pods, target, lookups)
    except CannotFilterError:
        return {}


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
