"""Amounts and spans as people read them: `250m`, `18.2 cores`, `1,330 cores`, `250 MiB`, `12 h`."""

from datetime import timedelta
from typing import Final

from trimtab.model.core.pod import CPU, MEMORY

MANY_MILLICORES: Final = 10_000
"""From here on thousandths of a core are noise: 18.2 cores, not 18218m."""
_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SPANS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def readable_amount(resource: str, thousandths: int) -> str:
    """Write an amount of a resource, given in thousandths: of a core, of a byte, of anything else."""
    if resource == MEMORY:
        return readable_bytes(thousandths / 1000)
    if resource == CPU and thousandths >= MANY_MILLICORES:
        return f"{_three_digits(thousandths / 1000)} cores"
    return f"{thousandths // 1000}" if thousandths % 1000 == 0 else f"{thousandths}m"


def readable_bytes(amount: float) -> str:
    """Write bytes in their largest binary unit."""
    for unit in _BYTES[:-1]:
        if amount < 1024:
            return f"{_three_digits(amount)} {unit}"
        amount /= 1024
    return f"{_three_digits(amount)} {_BYTES[-1]}"


def readable_span(span: timedelta) -> str:
    """Write a span in its two largest units: `12 h`, `1 d 6 h`, `90 s` as `1 min 30 s`."""
    left = round(abs(span).total_seconds())
    parts = []
    for unit, seconds in _SPANS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def _three_digits(amount: float) -> str:
    """Write a number with three digits, and never with an exponent."""
    digits = 0 if amount >= 100 else 1 if amount >= 10 else 2
    text = f"{amount:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
