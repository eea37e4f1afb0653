"""How many pods of one controller may be disrupted at a time.

A replica group is the pods of one ReplicaSet, StatefulSet and so on. The budget belongs to the group, so all VPAs of a
workload share its counters, and two roles never take down more pods than one role could (edge case 5.3-16).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.decide.vertical.admission.startup_boost import is_boosted
from trimtab.decide.vertical.control.controllers import ControllerKey, creator_of
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.resize.status import is_resizing
from trimtab.model.core.pod import Pod

_COUNTED_KINDS = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet"})
_UNCOUNTED_KIND = "Job"


@dataclass(frozen=True)
class ReplicaGroup:
    """The pods of one controller: how many it should have, has, and lost in this loop."""

    configured: int
    tolerance: int
    pending: int = 0
    running: int = 0
    """Pods that are Ready and not disrupted. Upstream counts those that are not Pending."""
    resizing: int = 0
    """Resizes of earlier loops that are not finished."""
    evicted: int = 0
    resized: int = 0
    """Resizes requested in this loop."""

    @property
    def is_disruptable(self) -> bool:
        """Return whether another pod may be disrupted.

        With tolerance 0 one may, while all are running.
        """
        alive = self.running - self.evicted - self.resized
        untouched = self.evicted == 0 and self.resized == 0
        return alive > self.configured - self.tolerance or (
            self.configured == self.running and self.tolerance == 0 and untouched
        )

    @property
    def missing(self) -> int:
        """Return how many pods are not available, those evicted in this loop included."""
        return max(self.configured - self.running, 0) + self.evicted

    def after_eviction(self) -> "ReplicaGroup":
        """Return the group with one more pod evicted."""
        return replace(self, evicted=self.evicted + 1)

    def after_resize(self) -> "ReplicaGroup":
        """Return the group with one more resize requested."""
        return replace(self, resized=self.resized + 1)


@dataclass(frozen=True)
class Membership:
    """The replica group of each pod of one VPA."""

    creators: Mapping[str, ControllerKey]
    """By pod `namespace/name`. A pod that is not listed must not be disrupted."""
    below_minimum: frozenset[ControllerKey] = frozenset()
    """Groups with fewer pods than the VPA's minimum of replicas."""


def by_creator(pods: Iterable[Pod], rules: Rules) -> dict[ControllerKey, list[Pod]]:
    """Return the pods of each controller, without pods that no controller would replace."""
    grouped: dict[ControllerKey, list[Pod]] = {}
    for pod in pods:
        creator = creator_of(pod)
        if creator is None and not rules.ours:
            creator = ControllerKey(pod.metadata.namespace, "", "")
        if creator is not None:
            grouped.setdefault(creator, []).append(pod)
    return grouped


def count_group(
    creator: ControllerKey,
    pods: Sequence[Pod],
    replicas: int | None,
    tolerance: float,
    rules: Rules,
    available: Collection[str] | None = None,
) -> ReplicaGroup | None:
    """Count one controller's live pods, or None if the configured number is unknown.

    `available` names the pods that are available. Without it every pod that is not Pending is, as in upstream.
    """
    configured = _configured(creator, len(pods), replicas, rules)
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


def _configured(creator: ControllerKey, live: int, replicas: int | None, rules: Rules) -> int | None:
    if creator.kind == _UNCOUNTED_KIND:
        return live
    if creator.kind in _COUNTED_KINDS:
        return replicas or None
    if not rules.ours:
        return 0
    return replicas or live


def assign_groups(
    pods: Iterable[Pod],
    required: int,
    *,
    minimum_is_waived: bool,
    known: Collection[ControllerKey],
    rules: Rules,
) -> Membership:
    """Return the groups of one VPA's pods that may be disrupted at all.

    A group needs `required` live pods. `minimum_is_waived` admits smaller groups to resizes in place; their pods still
    cannot be evicted.
    """
    creators: dict[str, ControllerKey] = {}
    below_minimum: set[ControllerKey] = set()
    for creator, group in by_creator(pods, rules).items():
        if creator not in known:
            continue
        if len(group) < required:
            # Upstream ends boosts among all other updates, and so waives the minimum for the siblings of a boosted pod.
            is_boosting = not rules.ours and any(map(is_boosted, group))
            if not (minimum_is_waived or is_boosting):
                continue
            if minimum_is_waived:
                below_minimum.add(creator)
        creators.update({pod.metadata.key: creator for pod in group})
    return Membership(creators, frozenset(below_minimum))
