"""The advice that a selector finds more pods than its target has, where labels alone say what counts.

It changes no number: it says why one may be wrong, before anybody looks for it.
"""

from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.selection import Selection
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import EXTRA_PODS, SELECTION_FALLBACK
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import SelectionStrategy

OVERLAP = "SelectorOverlap"


def tell_extra_pods(draft: DecisionBuilder, scale: Scale, selection: Selection, strategy: str) -> int:
    """Set or remove the condition, and return how many active pods count beyond those that the target has."""
    if not draft.seen.compat.tell_extra_pods:
        return 0
    has = replicas_of(scale)
    extra = 0
    # One comparison tells nearly always that there is none; only else are the pods looked at, one by one.
    if len(selection.pods) > has and strategy == SelectionStrategy.LABEL_SELECTOR:
        extra = extra_pods(selection.pods, has)
    if extra:
        draft.conditions.set(EXTRA_PODS, "True", OVERLAP, _message(extra, has))
    elif draft.conditions.is_true(EXTRA_PODS):
        draft.conditions.remove(EXTRA_PODS)
    return extra


def replicas_of(scale: Scale) -> int:
    """Return how many pods a target may have: while it changes, its status and its pods are not of one moment."""
    return max(scale.spec.replicas, scale.status.replicas)


def extra_pods(pods: tuple[PodSnapshot, ...], has: int) -> int:
    """Return how many active pods there are beyond those that a target has."""
    return max(sum(map(_is_active, pods)) - has, 0)


def _is_active(pod: PodSnapshot) -> bool:
    return not pod.is_deleted and pod.phase not in {"Succeeded", "Failed"}


def _message(extra: int, has: int) -> str:
    return (
        f"the selector of the target matches {has + extra} active pods, {extra} more than the target has; the usage of all of "
        "them is averaged: give the others labels of their own, or set selectionStrategy to OwnerReference"
    )


UNREADABLE = "OwnersUnreadable"


def tell_fallback(draft: DecisionBuilder, selection: Selection) -> None:
    """Set or remove the condition, and tell the event of a fallback that begins or goes on."""
    if not selection.fallback:
        if draft.conditions.is_true(SELECTION_FALLBACK):
            draft.conditions.remove(SELECTION_FALLBACK)
        return
    lowered = ", and replicas are not lowered" if draft.seen.compat.fallback_never_shrinks else ""
    message = f"all pods that match the selector are counted{lowered}: {selection.fallback}"
    draft.conditions.set(SELECTION_FALLBACK, "True", UNREADABLE, message)
    if draft.may_repeat("PodSelectionFallback"):
        draft.warn("PodSelectionFallback", message)
