"""Combines events that differ only in their notes, by the limits of client-go."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

COMBINED = "(combined from similar events): "
"""How the note of a combined event begins, as in client-go."""


@dataclass(slots=True)
class _Group:
    last_at: float
    notes: set[str] = field(default_factory=set)


class SimilarEvents:
    """Counts the different notes of events with the same object, type, reason and action."""

    def __init__(self, most: int, seconds: float, remembered: int) -> None:
        self._most = most
        self._seconds = seconds
        self._remembered = remembered
        self._groups: OrderedDict[Hashable, _Group] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def must_combine(self, similar: Hashable, note: str, now: float) -> bool:
        """Note an event, and return whether too many different notes were recorded without a long pause."""
        group = self._groups.pop(similar, None)
        if group is None or now - group.last_at > self._seconds:
            group = _Group(now)
        self._groups[similar] = group
        group.last_at = now
        if len(group.notes) < self._most:
            group.notes.add(note)
        self._forget_old(now)
        return len(group.notes) >= self._most

    def _forget_old(self, now: float) -> None:
        while self._groups:
            oldest = next(iter(self._groups.values()))
            if len(self._groups) <= self._remembered and now - oldest.last_at <= self._seconds:
                return
            self._groups.popitem(last=False)
