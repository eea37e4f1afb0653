"""How big each ReplicaSet of a Deployment should be next: surge, unavailability, proportions (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from trimtab.lab.controllers.base.kinds import IntOrString, UpdateStrategy


@dataclass(frozen=True, slots=True)
class SetSize:
    """A ReplicaSet by name: how many pods it should have, has, and has available."""

    name: str
    wanted: int
    actual: int
    available: int


@dataclass(frozen=True, slots=True)
class SurgeLimits:
    """How far a rollout may leave the wanted number of pods, up and down."""

    surge: int
    unavailable: int


def limits_of(strategy: UpdateStrategy, replicas: int) -> SurgeLimits:
    """Resolve percentages: surge rounds up, unavailability down, and both are never zero."""
    if strategy.type == "Recreate":
        return SurgeLimits(0, 0)
    surge = resolve(strategy.rolling_update.max_surge, replicas, rounds_up=True)
    unavailable = min(resolve(strategy.rolling_update.max_unavailable, replicas, rounds_up=False), replicas)
    return SurgeLimits(surge, unavailable or int(surge == 0))


def resolve(value: IntOrString | None, total: int, *, rounds_up: bool) -> int:
    """Return a number, or a percentage of `total`; servers fill in what is missing, with one pod at a time."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        return int(value)
    share = int(value[:-1]) * total / 100
    return ceil(share) if rounds_up else floor(share)


def grow_new(new: SetSize, old: Sequence[SetSize], replicas: int, limits: SurgeLimits) -> int:
    """Return the next size of the new ReplicaSet: up as far as the surge allows."""
    if new.wanted >= replicas:
        return replicas
    total = new.wanted + sum(one.wanted for one in old)
    room = replicas + limits.surge - total
    return new.wanted + max(min(room, replicas - new.wanted), 0)


def shrink_old(new: SetSize, old: Sequence[SetSize], replicas: int, limits: SurgeLimits) -> dict[str, int]:
    """Return the next sizes of the old ReplicaSets, oldest first: broken pods go first, then spare ones."""
    sizes = {one.name: one.wanted for one in old}
    if not any(sizes.values()):
        return sizes
    least = replicas - limits.unavailable
    total = new.wanted + sum(sizes.values())
    budget = total - least - (new.wanted - new.available)
    if budget <= 0:
        return sizes
    for one in old:
        broken = min(one.wanted - one.available, budget)
        if broken > 0:
            sizes[one.name] -= broken
            budget -= broken
    spare = new.available + sum(one.available for one in old) - least
    for one in old:
        gone = min(sizes[one.name], max(spare, 0))
        sizes[one.name] -= gone
        spare -= gone
    return sizes


def share_out(sets: Sequence[SetSize], total: int, former: int) -> dict[str, int]:
    """Spread a changed total over the ReplicaSets in proportion to their sizes, the largest first.

    `former` is the total they were sized for; what rounding leaves over goes to the largest.
    """
    sizes = {one.name: one.wanted for one in sets}
    current = sum(sizes.values())
    missing = total - current
    if not missing or not current:
        return sizes
    ordered = sorted(sets, key=lambda one: one.wanted, reverse=missing > 0)
    left = missing
    for one in ordered:
        fair = round(one.wanted * total / (former or current)) - one.wanted
        step = min(max(fair, 0), left) if missing > 0 else max(min(fair, 0), left, -one.wanted)
        sizes[one.name] += step
        left -= step
    for one in ordered:
        step = left if missing > 0 else max(left, -sizes[one.name])
        sizes[one.name] += step
        left -= step
    return sizes
