"""Rows of plain numbers, kept as one numpy array per field so that a batch touches them all at once."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.histogram.buckets import Ints


class Table:
    """Fields that grow together; a subclass names each with the value of a new row."""

    FIELDS: ClassVar[dict[str, int | float]]

    def __init__(self) -> None:
        self._used = 0
        self._free: list[int] = []
        for name, value in self.FIELDS.items():
            setattr(self, name, np.full(64, value))

    def __len__(self) -> int:
        return self._used - len(self._free)

    @property
    def width(self) -> int:
        """The number of rows ever in use at once; rows are numbered below it."""
        return self._used

    def allocate(self) -> int:
        """Return a row with every field at its first value."""
        if self._free:
            return self._free.pop()
        if self._used == len(self._field(next(iter(self.FIELDS)))):
            for name, value in self.FIELDS.items():
                old = self._field(name)
                setattr(self, name, np.append(old, np.full(len(old), value, dtype=old.dtype)))
        self._used += 1
        return self._used - 1

    def release(self, row: int) -> None:
        """Take a row out of use; its number will be used again."""
        self.release_all([row])

    def release_all(self, rows: Sequence[int]) -> None:
        """Take some rows out of use, with every field at its first value again."""
        self._free.extend(rows)
        places = np.array(rows, dtype=np.int64)
        for name, value in self.FIELDS.items():
            self._field(name)[places] = value

    def _field(self, name: str) -> npt.NDArray[Any]:
        field: npt.NDArray[Any] = getattr(self, name)
        return field


def is_increasing(rows: Ints) -> bool:
    """Return whether each row lies above the one before, which also means that none repeats."""
    return bool((rows[1:] > rows[:-1]).all())


def in_rounds(rows: Ints, size: int) -> Iterator[Ints]:
    """Yield places of `rows` in rounds that name no row twice; repeats wait, in order, for the next round.

    Numpy's scatter keeps only one write per place, so a batch must not hold the same row twice.
    """
    remaining = np.arange(len(rows))
    if is_increasing(rows):
        yield remaining
        return
    first = np.empty(size, dtype=np.int64)
    while len(remaining):
        wanted = rows[remaining]
        first[wanted[::-1]] = remaining[::-1]
        is_first = first[wanted] == remaining
        yield remaining[is_first]
        remaining = remaining[~is_first]
