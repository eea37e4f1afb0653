"""Who owns a pod, up the chain of owner references, by uid (KEP-5625).

The shell looks owners up and hands over what it found under each reference's `owner_key`; `owners_to_find` says which it
still needs. The walk follows every reference, not only controllers: the seed says owned, not controlled.
"""

from collections.abc import Iterable, Iterator, Mapping

from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.model.core.meta import OwnerReference, group_of
from trimtab.model.json.wire import Wire

DEEPEST_CHAIN = 10
"""Owners above a pod that are looked at; a longer chain is a mistake or an attack."""

CLUSTER_SCOPED = frozenset({("", "Node")})
"""Owners that no workload is reached through (mirror pods belong to a Node); they are never fetched."""


class Owner(Wire, tag="owner"):
    """An object that owns pods, and its own owners."""

    uid: str
    kind: str = ""
    name: str = ""
    owners: tuple[OwnerReference, ...] = ()


class OwnerNotFound(Wire, tag="gone"):
    """There is no such object (any more): a broken chain, which is an answer and not an error."""

    why: str = "it no longer exists"


class OwnerUnavailable(Wire, tag="unread"):
    """The object could not be read, so its owners are unknown."""

    error: str
    right: str = ""
    """The right that is missing, such as `get replicasets.apps`; empty if that is not the cause."""

    def __str__(self) -> str:
        return f"{self.error}; the right to {self.right} is missing" if self.right else self.error


OwnerLookup = Owner | OwnerNotFound | OwnerUnavailable


class Target(Wire):
    """The workload that an autoscaler scales."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""

    def is_named_by(self, reference: OwnerReference) -> bool:
        """Return whether a reference means this workload: by uid, or by name where a uid is not known.

        Versions of the API do not matter, nor does a missing group on either side of an old object.
        """
        if self.uid and reference.uid:
            return self.uid == reference.uid
        mine, theirs = group_of(self.api_version), reference.group
        same_group = mine == theirs or not self.api_version
        return same_group and self.kind == reference.kind and self.name == reference.name


def found_owner(reference: OwnerReference, owner: Owner | None) -> Owner | OwnerNotFound:
    """Return what a lookup by name means for the reference; another uid under that name is another object."""
    if owner is None:
        return OwnerNotFound()
    if reference.uid and owner.uid != reference.uid:
        return OwnerNotFound(why="another object has taken its name")
    return owner


class OwnerError(Exception):
    """An owner on the way could not be read; the text names it."""


class Chains:
    """Answers whether pods belong to a target, asking about each owner once however many pods it has."""

    __slots__ = ("_found", "_known", "_target")

    def __init__(self, target: Target, found: Mapping[str, OwnerLookup]) -> None:
        """Walk chains to `target` through what was found."""
        self._target, self._found = target, found
        self._known: dict[OwnerReference, str] = {}

    def why_not_owned(self, pod: PodSnapshot) -> str:
        """Return an empty text if the pod belongs to the target, else the reason; raise OwnerError if unknown."""
        whys = []
        unread: OwnerError | None = None
        for reference in pod.owners:
            why = self._known.get(reference)
            if why is None:
                try:
                    why = self._known[reference] = self._walk(reference)
                except OwnerError as error:
                    unread = error  # another reference may still lead to the target
                    continue
            if not why:
                return ""
            whys.append(why)
        if unread:
            raise unread
        return whys[0] if whys else "it has no owner"

    def _walk(self, first: OwnerReference) -> str:
        """Search upwards, breadth first, from one reference of a pod."""
        level, seen = [first], {owner_key(first)}
        ends: dict[type[OwnerNotFound | OwnerUnavailable], str] = {}
        for _ in range(DEEPEST_CHAIN):
            if any(self._target.is_named_by(reference) for reference in level):
                return ""
            level = self._above(level, seen, ends)
            if not level:
                break
        if OwnerUnavailable in ends:
            raise OwnerError(ends[OwnerUnavailable])
        if level:
            return f"its owners go more than {DEEPEST_CHAIN} levels up from {first.kind}/{first.name}"
        return ends.get(OwnerNotFound, f"it belongs to {first.kind}/{first.name}")

    def _above(
        self,
        level: list[OwnerReference],
        seen: set[str],
        ends: dict[type[OwnerNotFound | OwnerUnavailable], str],
    ) -> list[OwnerReference]:
        """Return the owners one level up, and note how the chains that go no further end."""
        above: list[OwnerReference] = []
        for reference in level:
            found = found_of(reference, self._found) if _is_followed(reference) else None
            name = f"{reference.kind}/{reference.name}"
            if isinstance(found, Owner):
                above += _new_references(found, seen)
            elif isinstance(found, OwnerUnavailable):
                ends.setdefault(OwnerUnavailable, f"{name}: {found}")
            elif isinstance(found, OwnerNotFound):
                ends.setdefault(OwnerNotFound, f"its owner {name} is gone: {found.why}")
        return above


def owner_key(reference: OwnerReference) -> str:
    """Return what a reference is looked up under: all that it claims, for a pod may name an owner falsely."""
    return f"{reference.group}/{reference.kind}/{reference.name}/{reference.uid}"


def found_of(reference: OwnerReference, found: Mapping[str, OwnerLookup]) -> OwnerLookup | None:
    """Return what was found for a reference; records of older programs have it under the uid alone."""
    return found.get(owner_key(reference)) or found.get(reference.uid)


def _new_references(owner: Owner, seen: set[str]) -> list[OwnerReference]:
    """Return the owner's references that the walk has not met, and note them: users can write a loop of owners."""
    fresh = [reference for reference in owner.owners if owner_key(reference) not in seen]
    seen.update(owner_key(reference) for reference in fresh)
    return fresh


def _is_followed(reference: OwnerReference) -> bool:
    return (reference.group, reference.kind) not in CLUSTER_SCOPED


def owners_to_find(
    pods: Iterable[PodSnapshot], target: Target, found: Mapping[str, OwnerLookup]
) -> dict[str, OwnerReference]:
    """Return the owners that a decision needs next and that were not looked up yet, by `owner_key`.

    Look them up, add them to `found` and ask again, until nothing is left: one round per level of ownership.
    """
    needed: dict[str, OwnerReference] = {}
    for owners in dict.fromkeys(pod.owners for pod in pods):  # pods of one workload have the same
        if any(target.is_named_by(reference) for reference in owners):
            continue
        for reference in _unfound(owners, target, found):
            needed.setdefault(owner_key(reference), reference)
    return needed


def _unfound(
    references: tuple[OwnerReference, ...], target: Target, found: Mapping[str, OwnerLookup]
) -> Iterator[OwnerReference]:
    level, seen = list(references), {owner_key(reference) for reference in references}
    for _ in range(DEEPEST_CHAIN):
        above: list[OwnerReference] = []
        for reference in level:
            if not _is_followed(reference) or target.is_named_by(reference):
                continue
            owner = found_of(reference, found)
            if owner is None:
                yield reference
            elif isinstance(owner, Owner):
                above += _new_references(owner, seen)
        level = above
