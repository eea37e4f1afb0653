"""Conversion between the text of a quantity and nanos.

Every quantity is a whole number of nanos (1e-9), because Kubernetes rounds finer digits up. `quantity` builds the value
type on it. `MAX_TEXT` and `MAX_DIGITS` bound the work before a big number is computed.
"""

import re
from typing import Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANOS = 10**9
"""Nanos in one unit."""

MAX_TEXT = 1024
"""Longest text that is read, in characters. Upstream has no limit; real quantities have at most about 30."""

MAX_DIGITS = 1000
"""Most digits before the decimal point. Upstream stores `1e1000000000`, and computing with it takes minutes."""

LARGEST_BINARY = 2**63 - 1
"""Cap of quantities with a binary suffix, in units."""


class QuantityError(ValueError):
    """The text is not a quantity. The message is Kubernetes' own where it has one."""


Reading = tuple[int, int, Format]
"""Nanos, the power of ten that upstream counts them in, and the family of the suffix."""

_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"

# Sign, whole digits, fraction, suffix; and of an exponent, sign and digits. The possessive `*+` never gives digits
# back: the matcher would otherwise try every split of a thousand zeros before a wrong letter.
_SYNTAX = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?[0-9]*+)\Z", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?)0*([0-9]+)\Z", re.ASCII)

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY)

# Upstream counts a quantity in the power of ten it was written in while it surely fits int64, and in nanos
# otherwise. The difference shows in nothing but the last digit of its float, which tolerances compare with.
_PLAIN_DIGITS = 18
_PLAIN_BINARY_DIGITS = {"Ki": 11, "Mi": 8, "Gi": 5, "Ti": 2, "Pi": 0, "Ei": 0}

# Suffix -> most digits, nanos of one, power of ten, family: all that plain digits with a suffix need.
_SHAPES: dict[str, tuple[int, int, int, Format]] = {
    **{suffix: (_PLAIN_DIGITS, 10 ** (power + 9), power, "DecimalSI") for suffix, power in _DECIMAL.items()},
    **{
        suffix: (_PLAIN_BINARY_DIGITS[suffix], NANOS << power, 0, "BinarySI")
        for suffix, power in _BINARY.items()
    },
}
_NO_SHAPE: tuple[int, int, int, Format] = (0, 0, 0, "DecimalSI")


def read(text: str) -> Reading:
    """Return what a text means, or raise QuantityError.

    It rejects what Kubernetes rejects, and what exceeds the bounds of this module.
    """
    last = text[-1:]
    if last <= "9":
        number, shape = text, _SHAPES[""]
    elif last == "i":
        number, shape = text[:-2], _SHAPES.get(text[-2:], _NO_SHAPE)
    else:
        number, shape = text[:-1], _SHAPES.get(last, _NO_SHAPE)
    digits, nanos, exponent, written = shape
    # str.isdigit alone accepts the digits of every script.
    if len(number) <= digits and number.isdigit() and number.isascii():
        return int(number) * nanos, exponent, written
    return _read_any(text)


def _read_any(text: str) -> Reading:
    if len(text) > MAX_TEXT:
        raise QuantityError(f"a quantity may have at most {MAX_TEXT} characters, this one has {len(text)}")
    found = _SYNTAX.match(text)
    if found is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = found.groups()
    whole, fraction = whole or "0", fraction or ""
    if suffix in _BINARY:
        nanos, exponent, written = _read_binary(whole, fraction, suffix)
    elif suffix in _DECIMAL:
        nanos, exponent, written = _read_decimal(whole, fraction, _DECIMAL[suffix], "DecimalSI")
    else:
        nanos, exponent, written = _read_decimal(whole, fraction, _exponent(suffix), "DecimalExponent")
    return -nanos if sign == "-" else nanos, exponent, written


def _exponent(suffix: str) -> int:
    found = _EXPONENT.match(suffix)
    if found is None:
        raise QuantityError(_WRONG_SUFFIX)
    sign, digits = found.groups()
    # Seven digits are already out of bounds on one side and less than a nano on the other.
    return int(sign + digits[:7])


def _read_decimal(whole: str, fraction: str, exponent: int, written: Format) -> Reading:
    digits = int(whole + fraction)
    scale = exponent - len(fraction)
    if len(whole) + exponent > MAX_DIGITS and digits:
        raise QuantityError(f"a quantity may have at most {MAX_DIGITS} digits before the decimal point")
    counted_in = scale if len(whole) + len(fraction) <= _PLAIN_DIGITS and scale >= -9 else -9
    if not digits:
        return 0, counted_in, written
    if scale >= -9:
        return digits * 10 ** (scale + 9), counted_in, written
    if len(whole) + exponent <= -9:
        return 1, -9, written  # all digits lie below a nano
    return -(-digits // 10 ** (-9 - scale)), -9, written


def _read_binary(whole: str, fraction: str, suffix: str) -> Reading:
    scaled = int(whole + fraction) * NANOS << _BINARY[suffix]
    nanos = -(-scaled // 10 ** len(fraction))
    if nanos > LARGEST_BINARY * NANOS:
        return LARGEST_BINARY * NANOS, 0, "BinarySI"
    is_plain = not fraction and len(whole) <= _PLAIN_BINARY_DIGITS[suffix]
    # Less than one unit has no text with a binary suffix, so it changes families for good.
    written: Format = "DecimalSI" if 0 < nanos < NANOS else "BinarySI"
    return nanos, 0 if is_plain else -9, written


def write(nanos: int, written: Format) -> str:
    """Return the canonical text: the shortest whole number with a suffix of the family."""
    if nanos == 0:
        return "0"
    # Below 1024 units there is no binary suffix to use, and none has fractions.
    if written == "BinarySI" and nanos % NANOS == 0 and abs(nanos) >= 1024 * NANOS:
        return _write_binary(nanos // NANOS)
    return _write_decimal(nanos, written)


def _write_binary(units: int) -> str:
    steps = 0
    while units % 1024 == 0 and steps < len(_BINARY):
        units //= 1024
        steps += 1
    return f"{units}{_BINARY_SUFFIXES[steps]}"


def _write_decimal(nanos: int, written: Format) -> str:
    number, exponent = nanos, -9
    while number % 1000 == 0:
        number //= 1000
        exponent += 3
    # There is no suffix above E. Upstream 1.36 left the suffix out there and so lost the amount
    # (kubernetes/kubernetes#140459); its later releases write the exponent, as we do.
    if written == "DecimalExponent" or exponent not in _DECIMAL_SUFFIXES:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIXES[exponent]}"
