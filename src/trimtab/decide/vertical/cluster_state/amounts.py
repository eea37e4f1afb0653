"""Amounts of a resource: whole millicores or bytes, cut from floats as upstream's ResourceAmount is."""

import math
from typing import Final

import numpy as np

from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats

LARGEST_AMOUNT: Final = 10**14
"""The largest amount of any resource: 1e14 millicores or bytes."""

NOT_AN_AMOUNT: Final = -(2**63)
"""The amount of NaN. It lies below every minimum, so the floor replaces it."""


def amount_from_float(amount: float) -> int:
    """Cut a float to a whole amount between 0 and the largest amount."""
    if math.isnan(amount):
        return NOT_AN_AMOUNT
    if amount > LARGEST_AMOUNT:
        return LARGEST_AMOUNT
    return 0 if amount < 0 else int(amount)


def amounts_from_floats(amounts: Floats) -> Ints:
    """Cut many floats to whole amounts, each as `amount_from_float` does."""
    whole = np.where(np.isnan(amounts), NOT_AN_AMOUNT, np.clip(np.nan_to_num(amounts), 0, LARGEST_AMOUNT))
    return whole.astype(np.int64)


def millicores_from_cores(cores: float) -> int:
    """Return cores as millicores."""
    return amount_from_float(cores * 1000.0)


def scaled(amount: int, factor: float) -> int:
    """Multiply an amount by a factor and cut the result."""
    return amount_from_float(float(amount) * factor)
