"""Amounts of resources and metrics.

`Quantity` holds a whole number of nanos in a Python integer, so sums and milli-values are exact and never wrap around
as int64 does upstream (docs/decisions/quantities-and-replica-arithmetic-never-overflow.md). `quantity_syntax` reads and writes the text.
"""

from functools import lru_cache
from typing import ClassVar

from trimtab.model.quantity_syntax import NANOS, Format, QuantityError, read, write

__all__ = ["Format", "Quantity", "QuantityError", "milli_value_of"]

_CACHED_TEXTS = 16_384
_MICROS = NANOS // 1000
_LARGEST_FLOAT_EXPONENT = 308


class Quantity:
    """An immutable amount, compared and hashed by value, whatever its text was."""

    __slots__ = ("_exponent", "_format", "_nanos")

    zero: ClassVar["Quantity"]

    def __init__(self, nanos: int, written: Format = "DecimalSI", exponent: int = -9) -> None:
        """Build a quantity, where `exponent` is the power of ten that `as_float` counts in."""
        self._nanos = nanos
        self._format = written
        self._exponent = exponent

    @staticmethod
    @lru_cache(maxsize=_CACHED_TEXTS)
    def parse(text: str) -> "Quantity":
        """Return a quantity such as `250m`, `1.5Gi` or `1e3`, or raise QuantityError."""
        nanos, exponent, written = read(text)
        return Quantity(nanos, written, exponent)

    @staticmethod
    def from_int(value: int, written: Format = "DecimalSI") -> "Quantity":
        """Return a quantity of whole units."""
        return Quantity(value * NANOS, written, 0)

    @staticmethod
    def from_milli(value: int, written: Format = "DecimalSI") -> "Quantity":
        """Return a quantity of thousandths."""
        return Quantity(value * _MICROS, written, -3)

    @property
    def format(self) -> Format:
        """Return the family of suffixes that the text uses."""
        return self._format

    @property
    def nanos(self) -> int:
        """Return the exact amount in billionths."""
        return self._nanos

    @property
    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self._nanos > 0) - (self._nanos < 0)

    @property
    def is_zero(self) -> bool:
        """Return whether the amount is 0."""
        return self._nanos == 0

    def value(self) -> int:
        """Return whole units, rounded away from zero."""
        return _divide_away(self._nanos, NANOS)

    def milli_value(self) -> int:
        """Return thousandths, rounded away from zero."""
        return _divide_away(self._nanos, _MICROS)

    def as_float(self) -> float:
        """Return the float that upstream computes, which may differ from the nearest one.

        Tolerances and ratios are compared in floats, so the last digit decides whether a workload scales.
        """
        exponent = self._exponent
        if exponent == 0 or self._nanos == 0:
            return _to_float(self._nanos // NANOS)
        if exponent > _LARGEST_FLOAT_EXPONENT:
            return float("inf") * self.sign
        return _to_float(self._nanos // 10 ** (exponent + 9)) * _power_of_ten(exponent)

    def __add__(self, other: "Quantity") -> "Quantity":
        return self._combined(self._nanos + other._nanos, other)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self._combined(self._nanos - other._nanos, other)

    def _combined(self, nanos: int, other: "Quantity") -> "Quantity":
        # A zero takes the format of the other amount, so that a sum may begin with a plain 0.
        written = self._format if self._nanos else other._format
        return Quantity(nanos, written, min(self._exponent, other._exponent))

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self._nanos < other._nanos

    def __le__(self, other: "Quantity") -> bool:
        return self._nanos <= other._nanos

    def __gt__(self, other: "Quantity") -> bool:
        return self._nanos > other._nanos

    def __ge__(self, other: "Quantity") -> bool:
        return self._nanos >= other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __str__(self) -> str:
        return write(self._nanos, self._format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


Quantity.zero = Quantity(0, exponent=0)


def milli_value_of(text: str) -> int:
    """Return `Quantity.parse(text).milli_value()` without building a quantity.

    Usage arrives as ever new numbers, so a cache would not help. The metrics server writes nanocores and kibibytes: these
    two have a fast path.
    """
    if text[-1:] == "n" and len(text) < 18 and (number := text[:-1]).isdigit() and number.isascii():
        return -(-int(number) // _MICROS)
    if text[-2:] == "Ki" and len(text) < 12 and (number := text[:-2]).isdigit() and number.isascii():
        return int(number) * 1_024_000
    return _divide_away(read(text)[0], _MICROS)


def _divide_away(nanos: int, divisor: int) -> int:
    return -(-nanos // divisor) if nanos >= 0 else nanos // divisor


def _to_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _power_of_ten(exponent: int) -> float:
    if exponent < 0:
        return 1.0 / float(f"1e{-exponent}")
    # Upstream's table is made in steps of 1e32, whose product is not always the float nearest to the power.
    return float(f"1e{exponent - exponent % 32}") * float(f"1e{exponent % 32}")
