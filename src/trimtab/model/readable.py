"""Readable text of amounts, time spans and numbers: `250m`, `18.2 cores`, `1,330 cores`, `250 MiB`, `12 h`, `1 pod`."""

from datetime import timedelta
from typing import Final

from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.quantity import Quantity

_MANY_MILLICORES: Final = 10_000
"""From here on millicores are noise: 18.2 cores, not 18218m."""
_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LARGE_UNITS: Final = ("M", "G", "T", "P", "E", "Mi", "Gi", "Ti", "Pi", "Ei")
_SPANS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 pod`, `2 pods` or `3 queries`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def readable_amount(resource: str, thousandths: int) -> str:
    """Return the text of an amount in thousandths of a core, a byte or another unit."""
    if resource == MEMORY:
        return _readable_bytes(thousandths / 1000)
    if resource == CPU and thousandths >= _MANY_MILLICORES:
        return f"{_three_digits(thousandths / 1000)} cores"
    return f"{thousandths // 1000}" if thousandths % 1000 == 0 else f"{thousandths}m"


def quantity_of_bytes(quantity: Quantity) -> str:
    """Return bytes as a manifest writes them. Those without a large unit are rounded to 3 digits: `878Mi`, `1.5Gi`."""
    text = str(quantity)
    if text.endswith(_LARGE_UNITS):
        return text
    return _readable_bytes(quantity.as_float()).removesuffix("B").replace(" ", "").replace(",", "")


def readable_span(span: timedelta) -> str:
    """Return a span in its two largest units, such as `12 h` or `1 min 30 s`."""
    left = round(abs(span).total_seconds())
    parts = []
    for unit, seconds in _SPANS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def _readable_bytes(amount: float) -> str:
    for unit in _BYTES[:-1]:
        if amount < 1024:
            return f"{_three_digits(amount)} {unit}"
        amount /= 1024
    return f"{_three_digits(amount)} {_BYTES[-1]}"


def _three_digits(amount: float) -> str:
    digits = 0 if amount >= 100 else 1 if amount >= 10 else 2
    text = f"{amount:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
