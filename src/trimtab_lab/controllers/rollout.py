"""The next sizes of a Deployment's ReplicaSets: surge, unavailability and proportions, without I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab_lab.controllers.kinds import UpdateStrategy, scaled_value


@dataclass(frozen=True, slots=True)
class ReplicaSetSize:
    """The name of a ReplicaSet, its desired replicas and its available ones."""

    name: str
    desired: int
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """How many pods a rollout may have above and below the desired replicas."""

    max_surge: int
    max_unavailable: int


def rollout_limits(strategy: UpdateStrategy, replicas: int) -> RolloutLimits:
    """Resolve percentages. Surge rounds up, unavailability down, and they are never both 0."""
    if strategy.type == "Recreate":
        return RolloutLimits(0, 0)
    rolling = strategy.rolling_update
    surge = scaled_value(rolling.max_surge, replicas, rounds_up=True)
    unavailable = min(scaled_value(rolling.max_unavailable, replicas, rounds_up=False), replicas)
    return RolloutLimits(surge, unavailable or int(surge == 0))


def scale_up_new(
    new: ReplicaSetSize, old: Sequence[ReplicaSetSize], replicas: int, limits: RolloutLimits
) -> int:
    """Return the next size of the new ReplicaSet, as far up as the surge allows."""
    if new.desired >= replicas:
        return replicas
    total = new.desired + sum(size.desired for size in old)
    allowed = replicas + limits.max_surge - total
    return new.desired + max(min(allowed, replicas - new.desired), 0)


def scale_down_old(
    new: ReplicaSetSize, old: Sequence[ReplicaSetSize], replicas: int, limits: RolloutLimits
) -> dict[str, int]:
    """Return the next sizes of the old ReplicaSets, which come oldest first.

    Unavailable pods go first, then as many available ones as may be missing.
    """
    sizes = {size.name: size.desired for size in old}
    if not any(sizes.values()):
        return sizes
    min_available = replicas - limits.max_unavailable
    total = new.desired + sum(sizes.values())
    budget = total - min_available - (new.desired - new.available)
    if budget <= 0:
        return sizes
    for size in old:
        unavailable = min(size.desired - size.available, budget)
        if unavailable > 0:
            sizes[size.name] -= unavailable
            budget -= unavailable
    spare = new.available + sum(size.available for size in old) - min_available
    for size in old:
        removed = min(sizes[size.name], max(spare, 0))
        sizes[size.name] -= removed
        spare -= removed
    return sizes


def scale_proportionally(
    replica_sets: Sequence[ReplicaSetSize], total: int, former_total: int
) -> dict[str, int]:
    """Spread a changed total over the ReplicaSets in proportion to their sizes.

    `former_total` is the total of their present sizes. The rest of the rounding goes to the largest.
    """
    sizes = {size.name: size.desired for size in replica_sets}
    current = sum(sizes.values())
    missing = total - current
    if not missing or not current:
        return sizes
    ordered = sorted(replica_sets, key=lambda size: size.desired, reverse=missing > 0)
    left = missing
    for size in ordered:
        fair = round(size.desired * total / (former_total or current)) - size.desired
        step = min(max(fair, 0), left) if missing > 0 else max(min(fair, 0), left, -size.desired)
        sizes[size.name] += step
        left -= step
    for size in ordered:
        step = left if missing > 0 else max(left, -sizes[size.name])
        sizes[size.name] += step
        left -= step
    return sizes
