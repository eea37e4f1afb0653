"""Whether a recommendation moved enough to be written.

Bounds draw closer to the target with every sample, by less and less: in a VPA's first day nearly every loop moves them,
and each write costs the API server as much as ten of ours. Nothing depends on a hundredth of a bound: the updater acts
on differences of a tenth.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscalerStatus,
)

SMALL_MOVE: Final = 0.01
"""Of what is stored; measured against that, so that small moves in one direction add up to one that is written."""


def is_small_move(stored: VerticalPodAutoscalerStatus, now: VerticalPodAutoscalerStatus) -> bool:
    """Return whether nothing moved but bounds, and these by little."""
    if _without_recommendation(stored) != _without_recommendation(now):
        return False
    return _is_near(stored.recommendation, now.recommendation)


def _without_recommendation(status: VerticalPodAutoscalerStatus) -> VerticalPodAutoscalerStatus:
    return msgspec.structs.replace(status, recommendation=None)


def _is_near(stored: RecommendedPodResources | None, now: RecommendedPodResources | None) -> bool:
    if stored is None or now is None:
        return stored is now
    old, new = stored.container_recommendations, now.container_recommendations
    return len(old) == len(new) and all(map(_is_near_in, old, new))


def _is_near_in(stored: RecommendedContainerResources, now: RecommendedContainerResources) -> bool:
    if (stored.container_name, stored.target, stored.uncapped_target) != (
        now.container_name,
        now.target,
        now.uncapped_target,
    ):
        return False
    return _are_near(stored.lower_bound, now.lower_bound) and _are_near(stored.upper_bound, now.upper_bound)


def _are_near(stored: Mapping[str, Quantity], now: Mapping[str, Quantity]) -> bool:
    return stored.keys() == now.keys() and all(
        abs(now[name].nanos - amount.nanos) < SMALL_MOVE * abs(amount.nanos) or now[name] == amount
        for name, amount in stored.items()
    )
