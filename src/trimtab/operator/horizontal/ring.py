"""The last records of one autoscaler: the newest whole, the others packed.

A thousand HPAs have twenty records each; whole, they took more memory than all their pods. The newest is looked at all
the time (by the dashboard, by `trimtab top`), the others when somebody asks for them.
"""

from collections.abc import Sequence
from typing import overload

from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.records.compact import PackedRecord, pack, unpack


class RecordRing(Sequence[Record]):
    """Records, oldest first; when there are `most`, a new one takes the place of the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Not a deque: an empty one takes 760 bytes, and there is one for every HPA.
        self._packed: list[PackedRecord] = []
        self._last: Record | None = None

    def append(self, record: Record) -> None:
        """Take in the newest record."""
        if self._last is not None and self._most > 1:
            self._packed.append(pack(self._last, self._packed[-1] if self._packed else None))
            if len(self._packed) >= self._most:
                del self._packed[0]
        self._last = record if self._most else None

    def newer_than(self, moment: float) -> list[Record]:
        """Return the records of decisions after this moment, oldest first; no other is made whole."""
        newer = [unpack(one) for one in self._packed if one.now > moment]
        if self._last is not None and self._last.decision.now > moment:
            newer.append(self._last)
        return newer

    def __len__(self) -> int:
        return len(self._packed) + (self._last is not None)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        """Return a record, or several; an older one is made whole again."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        position = place + len(self) if place < 0 else place
        if not 0 <= position < len(self):
            raise IndexError(place)
        if position < len(self._packed):
            return unpack(self._packed[position])
        assert self._last is not None
        return self._last
