"""The last records of one autoscaler: the newest whole, the others packed.

A thousand HPAs have twenty records each; whole, they took more memory than all their pods. The newest ones are looked at
all the time (by the dashboard, by `trimtab top`), the others when somebody asks for them.
"""

from collections import deque
from collections.abc import Sequence
from typing import overload

from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.packing import PackedRecord, pack, unpack

WHOLE = 2
"""Records that are kept as they are. A dashboard looks at the newest, and at the one before it to see that it knows it."""


class RecordRing(Sequence[Record]):
    """Records, oldest first; when there are `most`, a new one takes the place of the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._packed: deque[PackedRecord] = deque(maxlen=max(most - WHOLE, 0))
        self._whole: deque[Record] = deque()

    def append(self, record: Record) -> None:
        """Take in the newest record."""
        self._whole.append(record)
        if len(self._whole) > min(WHOLE, self._most):
            older = self._whole.popleft()
            if self._packed.maxlen:
                self._packed.append(pack(older, self._packed[-1] if self._packed else None))

    def __len__(self) -> int:
        return len(self._packed) + len(self._whole)

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
        packed = len(self._packed)
        return unpack(self._packed[position]) if position < packed else self._whole[position - packed]
