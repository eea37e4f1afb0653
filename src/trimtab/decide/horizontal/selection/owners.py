"""Walks owner references upwards from pods, by uid (KEP-5625).

The operator looks owners up and stores each result under the reference's `owner_key`; `owners_to_find` returns the lookups
that are still missing. The walk follows every reference, not only controllers, because KEP-5625 says owned.
"""

from collections.abc import Iterable, Iterator, Mapping

from trimtab.decide.horizontal.observation.owners import (
    Owner,
    OwnerLookup,
    OwnerNotFound,
    OwnerUnavailable,
    Target,
    owner_key,
)
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.model.core.meta import OwnerReference

DEEPEST_CHAIN = 10
"""Owners above a pod that the walk follows; a longer chain is a mistake or an attack."""

CLUSTER_SCOPED = frozenset({("", "Node")})
"""Owners that are never looked up: no workload owns a Node, which owns mirror pods."""

_Ends = dict[type[OwnerNotFound | OwnerUnavailable], str]


class OwnerError(Exception):
    """An owner in the chain could not be read."""


class OwnerChains:
    """Walks from pods to a target, through each owner once however many pods it has."""

    __slots__ = ("_lookups", "_reasons", "_target")

    def __init__(self, target: Target, lookups: Mapping[str, OwnerLookup]) -> None:
        """Walk chains to `target` through the owners in `lookups`."""
        self._target, self._lookups = target, lookups
        self._reasons: dict[OwnerReference, str] = {}

    def reason_not_owned(self, pod: PodSnapshot) -> str:
        """Return why the pod is not the target's, or an empty text if it is.

        Raise OwnerError if an owner that decides it could not be read.
        """
        reasons = []
        unavailable: OwnerError | None = None
        for reference in pod.owners:
            reason = self._reasons.get(reference)
            if reason is None:
                try:
                    reason = self._reasons[reference] = self._walk(reference)
                except OwnerError as error:
                    unavailable = error  # another reference may still lead to the target
                    continue
            if not reason:
                return ""
            reasons.append(reason)
        if unavailable:
            raise unavailable
        return reasons[0] if reasons else "it has no owner"

    def _walk(self, first: OwnerReference) -> str:
        """Search upwards, breadth first, from one reference of a pod."""
        level, visited = [first], {owner_key(first)}
        ends: _Ends = {}
        for _ in range(DEEPEST_CHAIN):
            if any(self._target.is_named_by(reference) for reference in level):
                return ""
            level = self._level_above(level, visited, ends)
            if not level:
                break
        if OwnerUnavailable in ends:
            raise OwnerError(ends[OwnerUnavailable])
        if level:
            return f"its owners go more than {DEEPEST_CHAIN} levels up from {first.kind}/{first.name}"
        return ends.get(OwnerNotFound, f"it belongs to {first.kind}/{first.name}")

    def _level_above(
        self, level: list[OwnerReference], visited: set[str], ends: _Ends
    ) -> list[OwnerReference]:
        above: list[OwnerReference] = []
        for reference in level:
            owner = _lookup(reference, self._lookups) if _is_followed(reference) else None
            name = f"{reference.kind}/{reference.name}"
            if isinstance(owner, Owner):
                above += _new_references(owner, visited)
            elif isinstance(owner, OwnerUnavailable):
                ends.setdefault(OwnerUnavailable, f"{name}: {owner}")
            elif isinstance(owner, OwnerNotFound):
                ends.setdefault(OwnerNotFound, f"its owner {name} is gone: {owner.reason}")
        return above


def owners_to_find(
    pods: Iterable[PodSnapshot], target: Target, lookups: Mapping[str, OwnerLookup]
) -> dict[str, OwnerReference]:
    """Return the owners that still have to be looked up, by `owner_key`.

    Look them up, add them to `lookups` and call again until the result is empty: once per level of ownership.
    """
    needed: dict[str, OwnerReference] = {}
    for owners in dict.fromkeys(pod.owners for pod in pods):  # pods of one workload have the same
        if any(target.is_named_by(reference) for reference in owners):
            continue
        for reference in _not_looked_up(owners, target, lookups):
            needed.setdefault(owner_key(reference), reference)
    return needed


def _not_looked_up(
    references: tuple[OwnerReference, ...], target: Target, lookups: Mapping[str, OwnerLookup]
) -> Iterator[OwnerReference]:
    level, visited = list(references), {owner_key(reference) for reference in references}
    for _ in range(DEEPEST_CHAIN):
        above: list[OwnerReference] = []
        for reference in level:
            if not _is_followed(reference) or target.is_named_by(reference):
                continue
            owner = _lookup(reference, lookups)
            if owner is None:
                yield reference
            elif isinstance(owner, Owner):
                above += _new_references(owner, visited)
        level = above


def _lookup(reference: OwnerReference, lookups: Mapping[str, OwnerLookup]) -> OwnerLookup | None:
    # Records of older programs have the result under the uid alone.
    return lookups.get(owner_key(reference)) or lookups.get(reference.uid)


def _new_references(owner: Owner, visited: set[str]) -> list[OwnerReference]:
    """Return the owner's references that the walk has not visited, because users can write a loop."""
    fresh = [reference for reference in owner.owners if owner_key(reference) not in visited]
    visited.update(owner_key(reference) for reference in fresh)
    return fresh


def _is_followed(reference: OwnerReference) -> bool:
    return (reference.group, reference.kind) not in CLUSTER_SCOPED
