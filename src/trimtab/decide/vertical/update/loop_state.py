"""What one update loop keeps while it runs: counters, brakes, events and a verdict per pod.

Mutable, and owned by a single generator; `trimtab.decide.vertical.update` turns it into frozen values at the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.compat import VpaCompat
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.update.actions import PodUpdateResult, UpdateEvent
from trimtab.decide.vertical.update.disruption_budget import (
    ReplicaGroup,
    by_creator,
    count_group,
    is_resizing,
)
from trimtab.decide.vertical.update.disruption_ledger import (
    Kind,
    Requested,
    is_available,
    is_ready,
    is_stuck,
    still_open,
    waiting_since,
)
from trimtab.decide.vertical.update.eligibility import UpdateThresholds
from trimtab.decide.vertical.update.eviction_limits import (
    FRUITLESS_REASON,
    NO_BRAKES,
    BrakeSettings,
    EvictionLimits,
    EvictionTrial,
    after_eviction,
    evictions_left,
    fruitless_message,
    judge_trial,
    still_relevant,
)
from trimtab.decide.vertical.update.observation import NamespaceRanges, UpdateObservation
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json.wire import Wire
from trimtab.model.vpa.types import RecommendedPodResources


class Infeasible(Wire):
    """A recommendation that a pod's node could not hold, and whose it was."""

    vpa: str
    recommendation: RecommendedPodResources


class UpdaterState(Wire):
    """What the updater remembers between loops."""

    resizes_seen: dict[str, datetime] = msgspec.field(default_factory=dict)
    """By pod `namespace/name`: when a resize under way was first seen."""
    infeasible: dict[str, Infeasible] = msgspec.field(default_factory=dict)
    """By pod uid."""
    requested: dict[str, Requested] = msgspec.field(default_factory=dict)
    """Resizes and evictions that are not done, by pod uid."""
    brake: EvictionLimits = EvictionLimits()
    conflicts_told: tuple[tuple[str, str, str], ...] = ()
    """Pairs of VPAs whose scopes overlap on a pod, for which both were warned already."""


class UpdaterSettings(Wire):
    """Settings of the updater."""

    min_replicas: int = 2
    """Least number of live pods a VPA must have to act, unless its own minReplicas says otherwise."""
    eviction_tolerance: float = 0.5
    """Share of a creator's replicas that may be down at once."""
    min_change: float = 0.1
    lifetime_seconds: float = 43_200
    evict_after_oom_seconds: float = 600
    skips_budget_in_place: bool = False
    """Whether resizes that restart nothing need neither budget nor minimum of replicas."""
    ignored_namespaces: tuple[str, ...] = ()
    brake: BrakeSettings = BrakeSettings()

    @property
    def thresholds(self) -> UpdateThresholds:
        """Return how far off, and how old, a pod must be."""
        return UpdateThresholds(
            self.min_change,
            timedelta(seconds=self.lifetime_seconds),
            timedelta(seconds=self.evict_after_oom_seconds),
        )


DEFAULT_SETTINGS = UpdaterSettings()

UPSTREAM_SETTINGS = UpdaterSettings(brake=NO_BRAKES)
"""Upstream's defaults: there is a budget per group and no other brake."""


POD, VPA = "Pod", "VerticalPodAutoscaler"
NO_BUDGET = "its group cannot spare another pod now"

BACKING_OFF = "the API refused its eviction a short while ago"


@dataclass(frozen=True)
class LoopContext:
    """What does not change during a loop."""

    observation: UpdateObservation
    now: datetime
    settings: UpdaterSettings
    gates: FeatureGates
    compat: VpaCompat
    live: tuple[Pod, ...] = ()
    ranges: NamespaceRanges = field(default_factory=lambda: NamespaceRanges(()))


class LoopState:
    """What does change: one per loop."""

    def __init__(self, context: LoopContext, before: UpdaterState) -> None:
        self.context = context
        uids = {pod.metadata.uid for pod in context.live}
        creators = {str(creator) for creator in by_creator(context.live, context.compat)}
        self.groups: dict[ControllerKey, ReplicaGroup] = {}
        self.events: list[UpdateEvent] = []
        self.verdicts: dict[str, PodUpdateResult] = {}
        self.resizes_seen = self._still_seen(before.resizes_seen)
        self.requested = still_open(
            before.requested, {pod.metadata.uid: pod for pod in context.live}, context.now
        )
        self.available = {
            pod.metadata.key
            for pod in context.live
            if is_available(pod, self.requested.get(pod.metadata.uid), context.now)
        }
        """Pods that are up and undisturbed, so that changing them costs budget."""
        self.short_of_budget: set[ControllerKey] = set()
        """Creators whose pods with a role wait for the budget."""
        self.to_evict: set[str] = set()
        """Pods that should be evicted, whether they can be now or not."""
        self.urgent_boosts: set[str] = set()
        """Boosted pods that are updated before their boost is over."""
        self.inadmissible: dict[str, str] = {}
        """Pods whose replacement would break a rule of the API server that is known here, and which."""
        self.again_at: datetime | None = None
        self.infeasible = {uid: found for uid, found in before.infeasible.items() if uid in uids}
        self.brake = still_relevant(before.brake, uids, creators, context.now)
        self.conflicts_told = frozenset(before.conflicts_told)

    def _still_seen(self, seen: Mapping[str, datetime]) -> dict[str, datetime]:
        if not self.context.compat.resize_clock_restarts:
            return dict(seen)
        under_way = {pod.metadata.key for pod in self.context.live if is_resizing(pod)}
        return {key: moment for key, moment in seen.items() if key in under_way}

    def frozen(self) -> UpdaterState:
        """Return what the next loop must know."""
        return UpdaterState(
            resizes_seen=self.resizes_seen,
            requested=self.requested,
            infeasible=self.infeasible,
            brake=self.brake,
            conflicts_told=tuple(sorted(self.conflicts_told)),
        )

    def count(self, pods: Iterable[Pod]) -> None:
        """Count the groups of these pods afresh."""
        context = self.context
        self.groups = {}
        for creator, members in by_creator(pods, context.compat).items():
            replicas = context.observation.replicas(creator)
            group = count_group(
                creator,
                members,
                replicas,
                context.settings.eviction_tolerance,
                context.compat,
                self.available if context.compat.disruptions_last_until_ready else None,
            )
            if group is not None:
                self.groups[creator] = group

    def judge_trials(self, vpa_of: Mapping[str, str]) -> None:
        """See how earlier evictions turned out; a controller whose pods come back unchanged is paused, and said so."""
        judged = dict(self.brake.trials)
        for creator, pods in by_creator(self.context.live, self.context.compat).items():
            before = judged.get(str(creator))
            if before is None:
                continue
            after = judge_trial(before, pods, self.context.now, self.context.settings.brake)
            judged[str(creator)] = after
            if after.paused_until is not None and before.paused_until is None:
                for key in sorted({vpa_of[pod.metadata.key] for pod in pods if pod.metadata.key in vpa_of}):
                    self.warn(key, FRUITLESS_REASON, fruitless_message(str(creator), after))
        self.brake = msgspec.structs.replace(self.brake, trials=judged)

    def braked(self, pod: Pod, creator: ControllerKey) -> str:
        """Say which brake holds back the eviction of this pod; empty if none does."""
        now, brakes = self.context.now, self.context.settings.brake
        if evictions_left(self.brake, len(self.context.live), now, brakes) == 0:
            return "enough pods of the cluster were evicted within the last minute"
        refusal = self.brake.refusals.get(pod.metadata.uid)
        if refusal is not None and now < refusal.until:
            return BACKING_OFF
        paused_until = self.brake.trials.get(str(creator), EvictionTrial()).paused_until
        if paused_until is not None and now < paused_until:
            return f"evicting pods of {creator} changed nothing lately; next try at {paused_until:%H:%M:%S}"
        group, most = self.groups.get(creator), brakes.max_missing_per_controller
        # A pod that is down takes nothing from its controller when it goes; two of them must not hold each other back.
        if most is not None and group is not None and is_ready(pod):
            missing = group.missing - (not self.is_up(pod))
            if missing >= most:
                return f"{creator} already lacks {missing} of its pods"
        return ""

    def is_up(self, pod: Pod) -> bool:
        """Return whether disturbing the pod takes one from those that are up."""
        if not self.context.compat.disruptions_last_until_ready:
            return pod.status.phase != "Pending"
        return pod.metadata.key in self.available

    def hindrance(self, pod: Pod, creator: ControllerKey | None, *, restarts: bool, is_urgent: bool) -> str:
        """Say why a pod cannot be disturbed now; empty if it can.

        A pod that is not up costs no budget. It is left to start, unless it was killed for memory or had its time.
        """
        group = self.groups.get(creator) if creator is not None else None
        if group is None:
            return "how many replicas its creator should have is not known"
        if self.is_up(pod):
            is_waived = self.context.settings.skips_budget_in_place and not restarts
            return "" if is_waived or group.is_disruptable else NO_BUDGET
        requested = self.requested.get(pod.metadata.uid)
        if requested is not None and not requested.is_seen:
            return f"its {requested.kind} was requested at {requested.at:%H:%M:%S} and is not seen yet"
        is_starting = pod.status.phase != "Pending" and not is_ready(pod)
        if is_starting and restarts and not is_urgent and not is_stuck(pod, self.context.now):
            return "it is not Ready yet"
        return ""

    def evicted(self, pod: Pod, creator: ControllerKey, vpa: str = "") -> None:
        """Take note of an eviction; a pod that was not up uses no budget."""
        if self.is_up(pod) and creator in self.groups:
            self.groups[creator] = self.groups[creator].after_eviction()
        self.available.discard(pod.metadata.key)
        if self.context.compat.disruptions_last_until_ready:
            self.requested[pod.metadata.uid] = Requested(kind=Kind.EVICTION, at=self.context.now, vpa=vpa)
        self.brake = after_eviction(self.brake, str(creator), pod, self.context.now)

    def resized(self, pod: Pod, creator: ControllerKey, requested: Requested | None = None) -> None:
        """Take note of a resize."""
        if requested is not None:
            self.requested[pod.metadata.uid] = requested
            self.resizes_seen.pop(pod.metadata.key, None)
            if requested.kind is Kind.RETURN:
                return  # the pod stays as it is
        is_counted = self.is_up(pod) or not self.context.compat.disruptions_last_until_ready
        if is_counted and creator in self.groups:
            self.groups[creator] = self.groups[creator].after_resize()
        self.available.discard(pod.metadata.key)

    def look_again(self, moment: datetime | None) -> None:
        """Ask for a loop at a moment, if that is before the next one."""
        if moment is not None:
            self.again_at = moment if self.again_at is None else min(self.again_at, moment)

    def waited(self, pod: Pod) -> timedelta:
        """Return for how long the pod's present resize has waited; it begins when it is first seen."""
        now, key = self.context.now, pod.metadata.key
        since = waiting_since(pod, self.requested.get(pod.metadata.uid))
        return now - (since or self.resizes_seen.setdefault(key, now))

    def leave(self, pod: Pod, vpa: str | None, reason: str) -> None:
        """Say why nothing is done with a pod."""
        self.note(pod, vpa, "none", reason)

    def note(self, pod: Pod, vpa: str | None, action: str, reason: str) -> None:
        """Say what was done with a pod, and why; the last word counts."""
        self.verdicts[pod.metadata.key] = PodUpdateResult(
            pod=pod.metadata.key, vpa=vpa, action=action, reason=reason
        )

    def tell(self, about: str, key: str, reason: str, message: str) -> None:
        """Record a Normal event."""
        self.events.append(UpdateEvent(kind=about, object=key, type="Normal", reason=reason, message=message))

    def warn(self, vpa: str, reason: str, message: str) -> None:
        """Record a Warning event about a VPA."""
        self.events.append(UpdateEvent(kind=VPA, object=vpa, type="Warning", reason=reason, message=message))
