"""The state of one update loop while it runs: groups, limits, events and a result per pod.

`LoopState` is mutable and owned by one generator (`loop`), which freezes it into an `UpdaterState` at the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import PodUpdateResult, UpdateEvent
from trimtab.decide.vertical.update.disruption_budget import ReplicaGroup, by_creator, count_group
from trimtab.decide.vertical.update.disruption_ledger import (
    Disruption,
    DisruptionKind,
    is_available,
    is_ready,
    is_stuck,
    open_disruptions,
    waiting_since,
)
from trimtab.decide.vertical.update.eligibility import UpdateThresholds
from trimtab.decide.vertical.update.eviction_limits import (
    INEFFECTIVE_REASON,
    NO_EVICTION_LIMITS,
    EvictionLimits,
    EvictionLimitSettings,
    EvictionTrial,
    drop_expired,
    evaluate_trial,
    evictions_left,
    ineffective_message,
    with_eviction,
)
from trimtab.decide.vertical.update.observation import UpdateObservation
from trimtab.decide.vertical.update.resize.status import is_resizing
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json.wire import Wire
from trimtab.model.vpa.types import RecommendedPodResources

POD, VPA = "Pod", "VerticalPodAutoscaler"
NO_BUDGET = "its group cannot spare another pod now"
BACKING_OFF = "the API refused its eviction a short while ago"


class Infeasible(Wire):
    """A recommendation that a pod's node could not hold, and its VPA."""

    vpa: str
    recommendation: RecommendedPodResources


class UpdaterState(Wire):
    """What the updater keeps between loops."""

    resizes_first_seen: dict[str, datetime] = msgspec.field(default_factory=dict)
    """When a resize under way was first seen, by pod `namespace/name`."""
    infeasible: dict[str, Infeasible] = msgspec.field(default_factory=dict)
    """By pod uid."""
    disruptions: dict[str, Disruption] = msgspec.field(default_factory=dict)
    """Resizes and evictions that are not over, by pod uid."""
    eviction_limits: EvictionLimits = EvictionLimits()
    reported_conflicts: tuple[tuple[str, str, str], ...] = ()
    """Pairs of VPAs whose scopes overlap on a pod, with an event for both already emitted."""


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
    eviction_limits: EvictionLimitSettings = EvictionLimitSettings()

    @property
    def thresholds(self) -> UpdateThresholds:
        """Return how far off, and how old, a pod must be."""
        return UpdateThresholds(
            self.min_change,
            timedelta(seconds=self.lifetime_seconds),
            timedelta(seconds=self.evict_after_oom_seconds),
        )


DEFAULT_SETTINGS = UpdaterSettings()

UPSTREAM_SETTINGS = UpdaterSettings(eviction_limits=NO_EVICTION_LIMITS)
"""Upstream's defaults: a budget per group and no eviction limits."""


@dataclass(frozen=True)
class LoopContext:
    """The input of a loop."""

    observation: UpdateObservation
    now: datetime
    settings: UpdaterSettings
    gates: FeatureGates
    rules: Rules
    live: tuple[Pod, ...] = ()
    ranges: NamespaceRanges = field(default_factory=lambda: NamespaceRanges(()))


class LoopState:
    """The mutable state of one loop."""

    def __init__(self, context: LoopContext, before: UpdaterState) -> None:
        self.context = context
        pods = {pod.metadata.uid: pod for pod in context.live}
        creators = {str(creator) for creator in by_creator(context.live, context.rules)}
        self.groups: dict[ControllerKey, ReplicaGroup] = {}
        self.events: list[UpdateEvent] = []
        self.pod_results: dict[str, PodUpdateResult] = {}
        self.resizes_first_seen = self._still_resizing(before.resizes_first_seen)
        self.disruptions = open_disruptions(before.disruptions, pods, context.now)
        self.available = {
            pod.metadata.key
            for pod in context.live
            if is_available(pod, self.disruptions.get(pod.metadata.uid), context.now)
        }
        """Pods that are Ready and not disrupted. Changing them uses budget."""
        self.short_of_budget: set[ControllerKey] = set()
        """Creators whose pods with a role wait for the budget."""
        self.to_evict: set[str] = set()
        """Pods that should be evicted, whether they can be now or not."""
        self.urgent_boosts: set[str] = set()
        """Boosted pods that are updated before their boost is over."""
        self.inadmissible: dict[str, str] = {}
        """Pods whose replacement would break a rule of the API server, and the rule."""
        self.requeue_at: datetime | None = None
        self.infeasible = {uid: entry for uid, entry in before.infeasible.items() if uid in pods}
        self.eviction_limits = drop_expired(before.eviction_limits, pods.keys(), creators, context.now)
        self.reported_conflicts = frozenset(before.reported_conflicts)

    def _still_resizing(self, first_seen: Mapping[str, datetime]) -> dict[str, datetime]:
        if not self.context.rules.ours:
            return dict(first_seen)
        resizing = {pod.metadata.key for pod in self.context.live if is_resizing(pod)}
        return {key: moment for key, moment in first_seen.items() if key in resizing}

    def freeze(self) -> UpdaterState:
        """Return the state for the next loop."""
        return UpdaterState(
            resizes_first_seen=self.resizes_first_seen,
            disruptions=self.disruptions,
            infeasible=self.infeasible,
            eviction_limits=self.eviction_limits,
            reported_conflicts=tuple(sorted(self.reported_conflicts)),
        )

    def count_groups(self, pods: Iterable[Pod]) -> None:
        """Replace the replica groups by those of these pods."""
        context = self.context
        self.groups = {}
        for creator, members in by_creator(pods, context.rules).items():
            group = count_group(
                creator,
                members,
                context.observation.replicas(creator),
                context.settings.eviction_tolerance,
                context.rules,
                self.available if context.rules.ours else None,
            )
            if group is not None:
                self.groups[creator] = group

    def evaluate_trials(self, vpa_of: Mapping[str, str]) -> None:
        """Pause controllers whose evicted pods came back unchanged, and warn their VPAs."""
        trials = dict(self.eviction_limits.trials)
        for creator, pods in by_creator(self.context.live, self.context.rules).items():
            before = trials.get(str(creator))
            if before is None:
                continue
            after = evaluate_trial(before, pods, self.context.now, self.context.settings.eviction_limits)
            trials[str(creator)] = after
            if after.paused_until is not None and before.paused_until is None:
                for key in sorted({vpa_of[pod.metadata.key] for pod in pods if pod.metadata.key in vpa_of}):
                    self.warn(key, INEFFECTIVE_REASON, ineffective_message(str(creator), after))
        self.eviction_limits = msgspec.structs.replace(self.eviction_limits, trials=trials)

    def eviction_limit(self, pod: Pod, creator: ControllerKey) -> str:
        """Return the limit that holds back the eviction of this pod, or empty if none does."""
        now, settings = self.context.now, self.context.settings.eviction_limits
        if evictions_left(self.eviction_limits, len(self.context.live), now, settings) == 0:
            return "enough pods of the cluster were evicted within the last minute"
        backoff = self.eviction_limits.backoffs.get(pod.metadata.uid)
        if backoff is not None and now < backoff.until:
            return BACKING_OFF
        paused_until = self.eviction_limits.trials.get(str(creator), EvictionTrial()).paused_until
        if paused_until is not None and now < paused_until:
            return f"evicting pods of {creator} changed nothing lately; next try at {paused_until:%H:%M:%S}"
        group, most = self.groups.get(creator), settings.max_missing_per_controller
        # Evicting a pod that is down takes nothing from its controller; two such pods must not hold each other back.
        if most is not None and group is not None and is_ready(pod):
            missing = group.missing - (not self.is_up(pod))
            if missing >= most:
                return f"{creator} already lacks {missing} of its pods"
        return ""

    def is_up(self, pod: Pod) -> bool:
        """Return whether disrupting the pod makes one available pod less."""
        if not self.context.rules.ours:
            return pod.status.phase != "Pending"
        return pod.metadata.key in self.available

    def disruption_blocker(
        self, pod: Pod, creator: ControllerKey | None, *, restarts: bool, is_urgent: bool
    ) -> str:
        """Return why a pod cannot be disrupted now, or empty if it can.

        A pod that is not up uses no budget. It is left to start, unless it was OOM-killed or exceeded its time.
        """
        group = self.groups.get(creator) if creator is not None else None
        if group is None:
            return "how many replicas its creator should have is not known"
        if self.is_up(pod):
            is_waived = self.context.settings.skips_budget_in_place and not restarts
            return "" if is_waived or group.is_disruptable else NO_BUDGET
        disruption = self.disruptions.get(pod.metadata.uid)
        if disruption is not None and not disruption.is_observed:
            moment = f"{disruption.requested_at:%H:%M:%S}"
            return f"its {disruption.kind} was requested at {moment} and is not seen yet"
        return "it is not Ready yet" if restarts and not is_urgent and self._is_starting(pod) else ""

    def _is_starting(self, pod: Pod) -> bool:
        if pod.status.phase == "Pending" or is_ready(pod):
            return False
        return not is_stuck(pod, self.context.now)

    def record_eviction(self, pod: Pod, creator: ControllerKey, vpa: str = "") -> None:
        """Count an eviction. A pod that was not up uses no budget."""
        if self.is_up(pod) and creator in self.groups:
            self.groups[creator] = self.groups[creator].after_eviction()
        self.available.discard(pod.metadata.key)
        if self.context.rules.ours:
            self.disruptions[pod.metadata.uid] = Disruption(
                kind=DisruptionKind.EVICTION, requested_at=self.context.now, vpa=vpa
            )
        self.eviction_limits = with_eviction(self.eviction_limits, str(creator), pod, self.context.now)

    def record_resize(self, pod: Pod, creator: ControllerKey, disruption: Disruption | None = None) -> None:
        """Count a resize."""
        if disruption is not None:
            self.disruptions[pod.metadata.uid] = disruption
            self.resizes_first_seen.pop(pod.metadata.key, None)
        is_counted = self.is_up(pod) or not self.context.rules.ours
        if is_counted and creator in self.groups:
            self.groups[creator] = self.groups[creator].after_resize()
        self.available.discard(pod.metadata.key)

    def requeue(self, moment: datetime | None) -> None:
        """Ask for a loop at a time, if that is before the next one."""
        if moment is not None:
            self.requeue_at = moment if self.requeue_at is None else min(self.requeue_at, moment)

    def waited(self, pod: Pod) -> timedelta:
        """Return for how long the pod's current resize has waited."""
        now, key = self.context.now, pod.metadata.key
        since = waiting_since(pod, self.disruptions.get(pod.metadata.uid))
        return now - (since or self.resizes_first_seen.setdefault(key, now))

    def skip(self, pod: Pod, vpa: str | None, reason: str) -> None:
        """Set the result of a pod that stays as it is."""
        self.set_result(pod, vpa, "none", reason)

    def set_result(self, pod: Pod, vpa: str | None, action: str, reason: str) -> None:
        """Set the result of a pod, replacing an earlier one."""
        key = pod.metadata.key
        self.pod_results[key] = PodUpdateResult(pod=key, vpa=vpa, action=action, reason=reason)

    def emit(self, kind: str, key: str, reason: str, message: str) -> None:
        """Add a Normal event."""
        self.events.append(UpdateEvent(kind=kind, object=key, type="Normal", reason=reason, message=message))

    def warn(self, vpa: str, reason: str, message: str) -> None:
        """Add a Warning event about a VPA."""
        self.events.append(UpdateEvent(kind=VPA, object=vpa, type="Warning", reason=reason, message=message))
