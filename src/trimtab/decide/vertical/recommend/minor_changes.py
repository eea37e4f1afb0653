"""Which changes of a VPA's status are too small to write."""

from collections.abc import Mapping
from typing import Final

import msgspec

from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscalerStatus,
)

MINOR_CHANGE: Final = 0.01
"""A share of the stored bound. Small changes in one direction add up until they are written."""


def is_minor_change(stored: VerticalPodAutoscalerStatus, now: VerticalPodAutoscalerStatus) -> bool:
    """Return whether only bounds changed, each by less than 1 %."""
    if _without_recommendation(stored) != _without_recommendation(now):
        return False
    return _is_near(stored.recommendation, now.recommendation)


def _without_recommendation(status: VerticalPodAutoscalerStatus) -> VerticalPodAutoscalerStatus:
    return msgspec.structs.replace(status, recommendation=None)


def _is_near(stored: RecommendedPodResources | None, now: RecommendedPodResources | None) -> bool:
    if stored is None or now is None:
        return stored is now
    old, new = stored.container_recommendations, now.container_recommendations
    return len(old) == len(new) and all(map(_is_container_near, old, new))


def _is_container_near(stored: RecommendedContainerResources, now: RecommendedContainerResources) -> bool:
    return (
        stored.container_name == now.container_name
        and stored.target == now.target
        and stored.uncapped_target == now.uncapped_target
        and _are_amounts_near(stored.lower_bound, now.lower_bound)
        and _are_amounts_near(stored.upper_bound, now.upper_bound)
    )


def _are_amounts_near(stored: Mapping[str, Quantity], now: Mapping[str, Quantity]) -> bool:
    return stored.keys() == now.keys() and all(
        abs(now[name].nanos - amount.nanos) < MINOR_CHANGE * abs(amount.nanos) or now[name] == amount
        for name, amount in stored.items()
    )
