"""How amounts become quantities in a VPA's status: rounding flags, BinarySI memory, readable memory."""

import math
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.model.core.pod import CPU, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)

_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@dataclass(frozen=True)
class RecommendationRounding:
    """How recommendations are written; each default is upstream's flag and changes nothing."""

    cpu_millicores: int = 1
    """CPU is rounded up to a multiple of this; 0 or less rounds nothing."""
    memory_bytes: int = 1
    """Memory is rounded up to a multiple of this; 0 or less rounds nothing."""
    humanize_memory: bool = False
    """Write memory with two decimals in the largest binary unit, for people to read."""


def cpu_quantity(millicores: int, rounding: RecommendationRounding) -> Quantity:
    """Write millicores as a quantity."""
    return Quantity.from_milli(round_up(millicores, rounding.cpu_millicores), "DecimalSI")


def memory_quantity(amount: int, rounding: RecommendationRounding) -> Quantity:
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


_PREFIX = "vpa-post-processor.kubernetes.io/"
_SUFFIX = "_integerCPU"


def round_to_whole_cores(
    vpa: VerticalPodAutoscaler, recommendation: RecommendedPodResources
) -> RecommendedPodResources:
    """Round CPU up to whole cores for each container that an annotation of the VPA names."""
    named = {
        key[len(_PREFIX) : -len(_SUFFIX)]
        for key, value in vpa.metadata.annotations.items()
        if value == "true"
        and len(key) > len(_PREFIX + _SUFFIX)
        and key.startswith(_PREFIX)
        and key.endswith(_SUFFIX)
    }
    entries = tuple(
        _rounded(entry) if entry.container_name in named else entry
        for entry in recommendation.container_recommendations
    )
    return msgspec.structs.replace(recommendation, container_recommendations=entries)


def _rounded(entry: RecommendedContainerResources) -> RecommendedContainerResources:
    return msgspec.structs.replace(
        entry,
        target=_whole(entry.target),
        lower_bound=_whole(entry.lower_bound),
        upper_bound=_whole(entry.upper_bound),
        uncapped_target=_whole(entry.uncapped_target),
    )


def _whole(amounts: ResourceList) -> ResourceList:
    cpu = amounts.get(CPU)
    return amounts if cpu is None else {**amounts, CPU: Quantity.from_int(cpu.value(), cpu.format)}


LARGEST_AMOUNT: Final = 10**14
"""The largest amount of any resource: 1e14 millicores or bytes."""

NOT_AN_AMOUNT: Final = -(2**63)
"""What becomes of NaN: below every minimum, so that the floor lifts it."""


def amount_from_float(amount: float) -> int:
    """Cut a float to a whole amount between 0 and the largest one."""
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
