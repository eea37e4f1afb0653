"""Whole cores for containers that ask for them, so that the kubelet's static CPU policy can pin them."""

import msgspec

from trimtab.model.core.pod import CPU, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)

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
