"""How many pods of one creator may be disturbed at once.

A group is what one ReplicaSet, StatefulSet, ... made. Its budget belongs to the group, not to a VPA: all VPAs of
the workload draw on the same counters, so two roles can never take down more than one could (edge case 5.3-16).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.decide.vertical.compat import VpaCompat
from trimtab.decide.vertical.control.controllers import ControllerKey, creator_of
from trimtab.model.core.pod import Pod

BOOST_PREFIX = "vpaCpuStartupBoost/"
RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
_COUNTED_KINDS = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet"})
_UNCOUNTED_KIND = "Job"


@dataclass(frozen=True)
class ReplicaGroup:
    """The pods of one creator: how many there should be, are, and have been disturbed in this loop."""

    configured: int
    tolerance: int
    pending: int = 0
    running: int = 0
    """Pods that are up: Ready and undisturbed. Upstream counts those that are not Pending."""
    resizing: int = 0
    """Resizes of earlier loops that are not finished."""
    evicted: int = 0
    resized: int = 0
    """Resizes asked for in this loop."""

    @property
    def is_disruptable(self) -> bool:
        """Return whether one more pod may be disturbed; with tolerance 0 one may, while all are running."""
        alive = self.running - self.evicted - self.resized
        untouched = self.evicted == 0 and self.resized == 0
        return alive > self.configured - self.tolerance or (
            self.configured == self.running and self.tolerance == 0 and untouched
        )

    @property
    def missing(self) -> int:
        """Return how many pods are not up, those evicted in this loop included."""
        return max(self.configured - self.running, 0) + self.evicted

    def after_eviction(self) -> "ReplicaGroup":
        """Return the group with one more pod evicted."""
        return replace(self, evicted=self.evicted + 1)

    def after_resize(self) -> "ReplicaGroup":
        """Return the group with one more resize asked for."""
        return replace(self, resized=self.resized + 1)


@dataclass(frozen=True)
class Membership:
    """Which group each pod of one VPA belongs to, and which groups are below the VPA's minimum of replicas."""

    creators: Mapping[str, ControllerKey]
    """By pod `namespace/name`; a pod that is not listed must not be disturbed."""
    below_minimum: frozenset[ControllerKey] = frozenset()


def is_resizing(pod: Pod) -> bool:
    """Return whether a resize in place is pending or under way; the first such condition counts."""
    for condition in pod.status.conditions:
        if condition.type in {RESIZE_PENDING, RESIZE_IN_PROGRESS}:
            return condition.status == "True"
    return False


def is_boosted(pod: Pod) -> bool:
    """Return whether a container of the pod has extra CPU for its start."""
    return any(key.startswith(BOOST_PREFIX) for key in pod.metadata.annotations)


def by_creator(pods: Iterable[Pod], compat: VpaCompat) -> dict[ControllerKey, list[Pod]]:
    """Return the pods of each creator; a pod without one is in no group, for nothing would replace it."""
    grouped: dict[ControllerKey, list[Pod]] = {}
    for pod in pods:
        creator = creator_of(pod)
        if creator is None and not compat.unknown_kinds_are_budgeted:
            creator = ControllerKey(pod.metadata.namespace, "", "")
        if creator is not None:
            grouped.setdefault(creator, []).append(pod)
    return grouped


def count_group(
    creator: ControllerKey,
    pods: Sequence[Pod],
    replicas: int | None,
    tolerance: float,
    compat: VpaCompat,
    available: Collection[str] | None = None,
) -> ReplicaGroup | None:
    """Count one creator's live pods; None if how many there should be cannot be told, so none may be disturbed.

    `available` names the pods that are up; without it every pod that is not Pending is, as upstream has it.
    """
    configured = _configured(creator, len(pods), replicas, compat)
    if configured is None:
        return None
    pending = sum(pod.status.phase == "Pending" for pod in pods)
    return ReplicaGroup(
        configured=configured,
        tolerance=int(configured * tolerance),
        pending=pending,
        running=len(pods) - pending
        if available is None
        else sum(pod.metadata.key in available for pod in pods),
        resizing=sum(map(is_resizing, pods)),
    )


def _configured(creator: ControllerKey, live: int, replicas: int | None, compat: VpaCompat) -> int | None:
    if creator.kind == _UNCOUNTED_KIND:
        return live
    if creator.kind in _COUNTED_KINDS:
        return replicas or None
    if not compat.unknown_kinds_are_budgeted:
        return 0
    return replicas or live


def membership(
    pods: Iterable[Pod],
    required: int,
    *,
    minimum_is_waived: bool,
    known: Iterable[ControllerKey],
    compat: VpaCompat,
) -> Membership:
    """Decide which of one VPA's pods may be disturbed at all, given how many live pods it must have.

    `minimum_is_waived` lets groups below the minimum through for resizing in place; they still cannot be evicted.
    """
    creators: dict[str, ControllerKey] = {}
    below: set[ControllerKey] = set()
    countable = set(known)
    for creator, group in by_creator(pods, compat).items():
        if creator not in countable:
            continue
        if len(group) < required:
            # Upstream ends boosts among all other updates, and so waives the minimum for the siblings of a boosted pod.
            is_passed = not compat.disruptions_last_until_ready and any(map(is_boosted, group))
            if not (minimum_is_waived or is_passed):
                continue
            if minimum_is_waived:
                below.add(creator)
        creators.update({pod.metadata.key: creator for pod in group})
    return Membership(creators, frozenset(below))
