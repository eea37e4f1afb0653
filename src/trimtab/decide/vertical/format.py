"""How amounts become quantities in a VPA's status: rounding flags, BinarySI memory, readable memory."""

import math
from dataclasses import dataclass

from trimtab.model.quantity import Quantity

_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@dataclass(frozen=True)
class Rounding:
    """How recommendations are written; each default is upstream's flag and changes nothing."""

    cpu_millicores: int = 1
    """CPU is rounded up to a multiple of this; 0 or less rounds nothing."""
    memory_bytes: int = 1
    """Memory is rounded up to a multiple of this; 0 or less rounds nothing."""
    humanize_memory: bool = False
    """Write memory with two decimals in the largest binary unit, for people to read."""


def cpu_quantity(millicores: int, rounding: Rounding) -> Quantity:
    """Write millicores as a quantity."""
    return Quantity.from_milli(round_up(millicores, rounding.cpu_millicores), "DecimalSI")


def memory_quantity(amount: int, rounding: Rounding) -> Quantity:
    """Write bytes as a quantity."""
    rounded = round_up(amount, rounding.memory_bytes)
    if rounding.humanize_memory and rounded:
        return Quantity.parse(humanized(rounded))
    return Quantity.from_int(rounded, "BinarySI")


def round_up(amount: int, multiple: int) -> int:
    """Return the next multiple at or above an amount."""
    if multiple <= 1 or not amount:
        return amount
    return math.ceil(float(amount) / float(multiple)) * multiple


def humanized(amount: int) -> str:
    """Write bytes with two decimals in the largest binary unit that they fill."""
    for unit, size in _UNITS:
        if amount >= size:
            return f"{amount / size:.2f}{unit}"
    return str(amount)
