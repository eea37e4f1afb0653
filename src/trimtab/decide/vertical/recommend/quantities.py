"""Writes recommended amounts as quantities: rounding flags, readable memory, whole cores."""

import math
from dataclasses import dataclass
from typing import Final

import msgspec

from trimtab.model.core.pod import CPU, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)

_INTEGER_CPU_PREFIX: Final = "vpa-post-processor.kubernetes.io/"
_INTEGER_CPU_SUFFIX: Final = "_integerCPU"
_UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@dataclass(frozen=True)
class RecommendationRounding:
    """Rounding of recommendations, with upstream's defaults, which round nothing."""

    cpu_millicores: int = 1
    """CPU is rounded up to a multiple of this. 0 or less means no rounding."""
    memory_bytes: int = 1
    """Memory is rounded up to a multiple of this. 0 or less means no rounding."""
    humanize_memory: bool = False
    """Write memory with two decimals in the largest binary unit."""


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


def round_to_whole_cores(
    vpa: VerticalPodAutoscaler, recommendation: RecommendedPodResources
) -> RecommendedPodResources:
    """Round CPU up to whole cores for each container that an annotation of the VPA names."""
    named = {
        key[len(_INTEGER_CPU_PREFIX) : -len(_INTEGER_CPU_SUFFIX)]
        for key, value in vpa.metadata.annotations.items()
        if value == "true"
        and len(key) > len(_INTEGER_CPU_PREFIX + _INTEGER_CPU_SUFFIX)
        and key.startswith(_INTEGER_CPU_PREFIX)
        and key.endswith(_INTEGER_CPU_SUFFIX)
    }
    entries = tuple(
        _with_whole_cores(entry) if entry.container_name in named else entry
        for entry in recommendation.container_recommendations
    )
    return msgspec.structs.replace(recommendation, container_recommendations=entries)


def _with_whole_cores(entry: RecommendedContainerResources) -> RecommendedContainerResources:
    return msgspec.structs.replace(
        entry,
        target=_round_cpu(entry.target),
        lower_bound=_round_cpu(entry.lower_bound),
        upper_bound=_round_cpu(entry.upper_bound),
        uncapped_target=_round_cpu(entry.uncapped_target),
    )


def _round_cpu(amounts: ResourceList) -> ResourceList:
    cpu = amounts.get(CPU)
    return amounts if cpu is None else {**amounts, CPU: Quantity.from_int(cpu.value(), cpu.format)}
