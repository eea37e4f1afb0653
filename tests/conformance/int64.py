"""What Go's int64 arithmetic makes of an exact number, so that vectors which overflowed still check ours.

Our quantities are exact (docs/decisions/quantities-and-replica-arithmetic-never-overflow.md); upstream's `Value` and `MilliValue` answer in
int64 and are garbage beyond it: wrapped around, zero, or rounded the wrong way, depending on how the quantity
is stored. Setting those cases aside would leave every large quantity unchecked. So the checkers narrow our
exact answer the way upstream's storage does and compare that.
"""

import re
from dataclasses import dataclass

from trimtab.model.quantity import Quantity

_NUMBER = re.compile(r"[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>.*)")
_SMALL_BINARY_DIGITS = {"Ki": 11, "Mi": 8, "Gi": 5, "Ti": 2, "Pi": 0, "Ei": 0}
_WRAPPING_SHIFTS = {1, 2, 3, 6, 9}


@dataclass(frozen=True)
class Amount:
    """A number as upstream stores it: `mantissa` times ten to the `exponent`, small (int64) or big."""

    mantissa: int
    exponent: int
    is_big: bool = False

    @classmethod
    def of_text(cls, text: str, quantity: Quantity) -> "Amount":
        """Say how upstream stores the quantity that was read from `text`."""
        exponent = quantity._exponent
        mantissa = quantity.nanos // 10 ** (exponent + 9) if quantity.nanos else 0
        return cls(mantissa, exponent, is_big=not _is_small(text))

    def narrowed(self, exact: int, scale: int) -> int:
        """Return what int64 arithmetic answers where `exact`, in units of ten to the `scale`, is right."""
        if self.is_big:
            return self._narrowed_big(scale)
        shift = self.exponent - scale
        if shift < 0 or -(2**63) <= exact < 2**63:
            return exact
        return wrapped(exact) if shift in _WRAPPING_SHIFTS else 0

    def _narrowed_big(self, scale: int) -> int:
        shift = self.exponent - scale
        if shift >= 0:
            return wrapped(self.mantissa * 10**shift)
        divisor = int(10**-shift)
        if self.mantissa < 2**63 - 1:  # true of every negative number, however large
            stored = wrapped(self.mantissa)
            quotient, rest = divmod(abs(stored), divisor)
            return (quotient if stored >= 0 else -quotient) + (rest != 0)
        quotient, rest = divmod(self.mantissa, divisor)
        return wrapped(quotient + (rest != 0))

    def as_int64(self) -> int | None:
        """Return the number if it is stored small and is a whole int64."""
        if self.is_big or self.exponent < 0:
            return None
        number = self.mantissa * 10**self.exponent
        return number if -(2**63) <= number < 2**63 else None


def wrapped(number: int) -> int:
    """Return the int64 with the same lowest 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def _is_small(text: str) -> bool:
    found = _NUMBER.match(text)
    assert found is not None
    whole, fraction, suffix = found["whole"] or "0", found["fraction"] or "", found["suffix"]
    if suffix in _SMALL_BINARY_DIGITS:
        return not fraction and len(whole) <= _SMALL_BINARY_DIGITS[suffix]
    decimals = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
    exponent = decimals[suffix] if suffix in decimals else int(suffix[1:])
    return len(whole) + len(fraction) <= 18 and exponent - len(fraction) >= -9
