"""The condition and the event of stale caches."""

from collections.abc import Iterable, Mapping

from trimtab.decide.horizontal.observation.observation import StaleInput
from trimtab.decide.horizontal.status.conditions import (
    CACHES_STALE,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)

STALE = "CacheTooOld"


def stale_changes(stale: Iterable[StaleInput], before: Mapping[str, str]) -> tuple[StatusChange, ...]:
    """Return the condition and the event of the caches that are stale."""
    caches = describe_stale(stale)
    if not caches:
        return (RemoveCondition(CACHES_STALE),) if before.get(CACHES_STALE) == "True" else ()
    message = f"replicas are not lowered, because recent changes may be unknown: {caches}"
    return (
        SetCondition(CACHES_STALE, "True", STALE, message),
        EmitEvent("Warning", CACHES_STALE, message, is_limited=True),
    )


def describe_stale(stale: Iterable[StaleInput]) -> str:
    """Return which caches are stale and why, in one line."""
    return "; ".join(cache.message for cache in stale)
