"""The fallback of OwnerReference: all pods that match count while an owner cannot be read.

A condition says so for as long as it lasts, an event when it begins.
"""

from trimtab.decide.horizontal.conditions import SELECTION_FALLBACK
from trimtab.decide.horizontal.draft import Draft
from trimtab.decide.horizontal.selection import Selection

UNREADABLE = "OwnersUnreadable"


def tell_fallback(draft: Draft, selection: Selection) -> None:
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
