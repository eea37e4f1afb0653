"""Tables of numbers: one numpy array per field, so that a batch updates many rows at once."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.histogram.buckets import Ints


class Table:
    """Fields that grow together. A subclass lists each field with its initial value."""

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
        """The highest number of rows that were in use at once. Every row number is below it."""
        return self._used

    def allocate(self) -> int:
        """Return a row with every field at its initial value."""
        if self._free:
            return self._free.pop()
        if self._used == len(self._field(next(iter(self.FIELDS)))):
            for name, value in self.FIELDS.items():
                old = self._field(name)
                setattr(self, name, np.append(old, np.full(len(old), value, dtype=old.dtype)))
        self._used += 1
        return self._used - 1

    def release(self, row: int) -> None:
        """Free a row for reuse."""
        self.release_all([row])

    def release_all(self, rows: Sequence[int]) -> None:
        """Free rows for reuse and reset their fields."""
        self._free.extend(rows)
        released = np.array(rows, dtype=np.int64)
        for name, value in self.FIELDS.items():
            self._field(name)[released] = value

    def _field(self, name: str) -> npt.NDArray[Any]:
        field: npt.NDArray[Any] = getattr(self, name)
        return field


def is_increasing(rows: Ints) -> bool:
    """Return whether row numbers strictly increase, so that none repeats."""
    return bool((rows[1:] > rows[:-1]).all())


def distinct_batches(rows: Ints, size: int) -> Iterator[Ints]:
    """Yield indices into `rows` in batches without repeated rows, repeats in order in later batches.

    A numpy scatter keeps only one write per row, so a batch must not hold the same row twice.
    """
    remaining = np.arange(len(rows))
    if is_increasing(rows):
        yield remaining
        return
    first = np.empty(size, dtype=np.int64)
    while len(remaining):
        numbers = rows[remaining]
        first[numbers[::-1]] = remaining[::-1]
        is_first = first[numbers] == remaining
        yield remaining[is_first]
        remaining = remaining[~is_first]
