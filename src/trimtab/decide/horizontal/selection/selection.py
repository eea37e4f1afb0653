"""Which of the pods that match the target's labels are counted (KEP-5625).

A `PodFilter` decides about all of them at once: it keeps some, leaves others out with a reason, or cannot tell.
If it cannot tell, all pods count and the selection says so; half a filtered set would silently change the divisor.
"""

from collections.abc import Callable, Mapping

from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.owners import (
    Chains,
    OwnerError,
    OwnerLookup,
    Target,
)
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire


class LeftOut(Wire):
    """A pod that has the labels and does not count."""

    pod: str
    why: str


class Selection(Wire):
    """The pods that count, and those that do not."""

    pods: tuple[PodSnapshot, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    fallback: str = ""
    """Why every pod counts although the strategy would choose; empty when it could choose."""


PodFilter = Callable[[tuple[PodSnapshot, ...], Target, Mapping[str, OwnerLookup]], Selection]


def keep_all(pods: tuple[PodSnapshot, ...], _target: Target, _found: Mapping[str, OwnerLookup]) -> Selection:
    """Keep every pod: what the labels select is what counts."""
    return Selection(pods=pods)


def keep_owned(pods: tuple[PodSnapshot, ...], target: Target, found: Mapping[str, OwnerLookup]) -> Selection:
    """Keep the pods that belong to the target; leave out those that only share its labels."""
    chains = Chains(target, found)
    kept: list[PodSnapshot] = []
    left_out: list[LeftOut] = []
    unread: list[str] = []
    for pod in pods:
        try:
            why = chains.why_not_owned(pod)
        except OwnerError as error:
            unread.append(str(error))
            continue
        if why:
            left_out.append(LeftOut(pod=pod.name, why=why))
        else:
            kept.append(pod)
    if unread:
        return Selection(pods=pods, fallback=f"owner {min(unread)}")
    return Selection(pods=tuple(kept), left_out=tuple(left_out))


FILTERS: dict[str, PodFilter] = {
    SelectionStrategy.LABEL_SELECTOR: keep_all,
    SelectionStrategy.OWNER_REFERENCE: keep_owned,
}
"""The filter of each strategy; a new strategy is one more entry."""


def effective_strategy(asked: str | None, gates: FeatureGates) -> str:
    """Return the strategy in force; with the gate off, and for a value we do not know, it is LabelSelector."""
    if asked is None or not gates.hpa_selection_strategy or asked not in FILTERS:
        return SelectionStrategy.LABEL_SELECTOR
    return asked


def select(
    pods: tuple[PodSnapshot, ...], strategy: str, target: Target, found: Mapping[str, OwnerLookup]
) -> Selection:
    """Apply a strategy's filter."""
    return FILTERS[strategy](pods, target, found)


def foreign_pods(
    pods: tuple[PodSnapshot, ...], target: Target, found: Mapping[str, OwnerLookup]
) -> dict[str, str]:
    """Return the pods that are not the target's own, with the reason; none where their owners are not known."""
    if not found:
        return {}
    return {one.pod: one.why for one in keep_owned(pods, target, found).left_out}
