"""One VPA with the live pods it controls: their sizes, groups, and which of them should change."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION
from trimtab.decide.vertical.admission.startup_boost import (
    BoostError,
    expired_boosts,
    is_boosted,
    without_boosts,
)
from trimtab.decide.vertical.control.claims import VpaClaim
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.resources.pod_resources import Sizing
from trimtab.decide.vertical.update.actions import Action, ActionResult
from trimtab.decide.vertical.update.disruption_budget import Membership
from trimtab.decide.vertical.update.disruption_ledger import Disruption
from trimtab.decide.vertical.update.eligibility import (
    UpdateCandidate,
    admits_eviction,
    check_eligibility,
    has_quick_oom,
    in_update_order,
    is_lower_anywhere,
    oom_threshold,
    update_priority,
)
from trimtab.decide.vertical.update.loop_state import POD, Infeasible, LoopContext, LoopState
from trimtab.decide.vertical.update.resize.memory_limits import LIMIT_DUE, is_limit_due
from trimtab.decide.vertical.update.resize.plan import ResizePlan, plan_resize, size_running_pod
from trimtab.decide.vertical.update.upstream_restrictions import GroupStatus
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

Step = Generator[Action, ActionResult, None]
BOOSTED = "its CPU is boosted while it starts"
UNKNOWN_GROUP = "its group is unknown or below the minimum of replicas"
RATE_LIMITED = "the rate limit of evictions and resizes is reached"
RESIZE_ACTIONS = {
    ActionResult.DONE: "resized",
    ActionResult.DRY_RUN: "would resize",
    ActionResult.UNKNOWN: "resize not answered",
}
"""The action of the pod's result, if the resize counts as a disruption."""
IN_PLACE_MODES = frozenset({UpdateMode.IN_PLACE, UpdateMode.IN_PLACE_OR_RECREATE})


def excludes_boosted_pods(claim: VpaClaim, context: LoopContext) -> bool:
    """Return whether the VPA's boosted pods are excluded from all other updates.

    Upstream excludes them while VPA and gate ask for boosts. Here a boost that was given always ends first.
    """
    if context.rules.ours:
        return True
    return context.gates.cpu_startup_boost and claim.has_boost


@dataclass
class VpaPods:
    """A VPA and the live pods it controls, for the length of one loop."""

    claim: VpaClaim
    context: LoopContext
    state: LoopState
    mode: str
    pods: list[Pod] = field(default_factory=list)
    members: Membership = field(default_factory=lambda: Membership({}))
    _sizings: dict[tuple[object, ...], Sizing] = field(default_factory=dict)

    @property
    def vpa(self) -> VerticalPodAutoscaler:
        """Return the VPA itself."""
        return self.claim.vpa

    def candidates(self, pods: Iterable[Pod]) -> tuple[UpdateCandidate, ...]:
        """Return the pods that should change, most urgent first."""
        chosen = [candidate for pod in pods if (candidate := self._candidate(pod)) is not None]
        policy = self.vpa.spec.update_policy
        requirements = policy.eviction_requirements if policy else None
        admitted = []
        for candidate in in_update_order(chosen):
            if admits_eviction(without_boosts(candidate.pod), candidate.recommendation, requirements):
                admitted.append(candidate)
            else:
                self.skip(candidate.pod, "the VPA's evictionRequirements are not met")
        return tuple(admitted)

    def _candidate(self, pod: Pod) -> UpdateCandidate | None:
        context = self.context
        thresholds = context.settings.thresholds
        threshold = oom_threshold(self.vpa, thresholds.evict_after_oom, context.gates)
        is_quick_oom = has_quick_oom(pod, self.vpa, context.now, threshold)
        if not self._may_precede_boost(pod, is_quick_oom=is_quick_oom):
            self.skip(pod, BOOSTED)
            return None
        sizing = self.sizing(pod)
        if not self._is_worth_trying(pod, sizing):
            return None
        priority = update_priority(without_boosts(pod), sizing.recommendation)
        eligibility = check_eligibility(
            pod, priority, is_quick_oom=is_quick_oom, now=context.now, thresholds=thresholds
        )
        if eligibility.is_eligible:
            return UpdateCandidate(
                pod, priority, sizing.recommendation, eligibility.reason, is_urgent=is_quick_oom
            )
        if context.rules.ours and is_limit_due(pod, sizing, context.now):
            return UpdateCandidate(pod, priority, sizing.recommendation, LIMIT_DUE)
        self.skip(pod, f"{eligibility.reason}; {sizing.note}" if sizing.note else eligibility.reason)
        return None

    def _may_precede_boost(self, pod: Pod, *, is_quick_oom: bool) -> bool:
        """Return whether the pod need not wait for the end of its boost.

        An OOM-killed pod need not, unless its boost is expired. Then the boost ends first.
        """
        context = self.context
        if not is_boosted(pod) or not excludes_boosted_pods(self.claim, context):
            return True
        if not is_quick_oom or not context.rules.ours:
            return False
        if expired_boosts(pod, self.vpa, context.now):
            return False
        self.state.urgent_boosts.add(pod.metadata.key)
        return True

    def _is_worth_trying(self, pod: Pod, sizing: Sizing) -> bool:
        """Return whether the pod's size is admissible and not known to be infeasible."""
        if sizing.refusal:
            self.skip(pod, sizing.refusal)
            if self.mode != UpdateMode.IN_PLACE:  # that mode replaces no pod
                message = f"the replacement of pod {pod.name} would be refused: {sizing.refusal}"
                self.state.inadmissible[pod.metadata.key] = message
            return False
        earlier = self.infeasible_for(pod) if self.mode == UpdateMode.IN_PLACE else None
        if earlier is not None and not is_lower_anywhere(earlier.recommendation, sizing.recommendation):
            self.skip(pod, "an earlier resize was infeasible and nothing is lower now")
            return False
        return True

    def sizing(self, pod: Pod) -> Sizing:
        """Return what the VPA gives to a pod.

        Pods of one template share their spec, and so the result.
        """
        spec, rules = pod.spec, self.context.rules
        parts = (spec.containers, spec.init_containers, spec.resources)
        originals = pod.metadata.annotations.get(ORIGINALS_ANNOTATION)
        key = (*map(id, parts), originals, pod.status.qos_class) if rules.ours else (id(pod),)
        if key not in self._sizings:
            ranges = self.context.ranges.of(pod.metadata.namespace)
            self._sizings[key] = size_running_pod(
                pod, self.vpa, ranges, rules, self.context.observation.server_rules
            )
        return self._sizings[key]

    def infeasible_for(self, pod: Pod) -> Infeasible | None:
        """Return the recommendation that was infeasible for a pod."""
        infeasible = self.state.infeasible.get(pod.metadata.uid)
        is_per_vpa = self.context.rules.ours
        if infeasible is not None and is_per_vpa and infeasible.vpa != self.claim.key:
            return None
        return infeasible

    def remember_infeasible(self, pod: Pod) -> None:
        """Store that the node cannot hold the current recommendation."""
        recommendation = self.vpa.status.recommendation
        if recommendation is not None:
            infeasible = Infeasible(vpa=self.claim.key, recommendation=recommendation)
            self.state.infeasible[pod.metadata.uid] = infeasible

    def group_status(self, pod: Pod) -> GroupStatus:
        """Return the pod's replica group."""
        creator = self.members.creators.get(pod.metadata.key)
        if creator is None:
            return GroupStatus(False, None)
        return GroupStatus(True, self.state.groups.get(creator), creator in self.members.below_minimum)

    def plan_resize(self, pod: Pod, sizes: tuple[ContainerResources, ...]) -> ResizePlan:
        """Plan a resize, or nothing if the pod's startup boost is unreadable."""
        try:
            context = self.context
            return plan_resize(
                pod, self.vpa, sizes, context.now, context.rules, context.observation.server_rules
            )
        except BoostError:
            return ResizePlan()

    def skip(self, pod: Pod, reason: str) -> None:
        """Set the result of a pod that stays as it is."""
        self.state.skip(pod, self.claim.key, reason)

    def set_result(self, pod: Pod, action: str, reason: str) -> None:
        """Set the result of a pod."""
        self.state.set_result(pod, self.claim.key, action, reason)

    def finish_resize(
        self, candidate: UpdateCandidate, result: ActionResult, disruption: Disruption | None = None
    ) -> bool:
        """Record the result of a resize, and return whether it failed."""
        pod = candidate.pod
        if result.is_disruption:
            self.state.record_resize(pod, self.members.creators[pod.metadata.key], disruption)
            self.set_result(pod, RESIZE_ACTIONS[result], candidate.reason)
            return False
        if result is ActionResult.RATE_LIMITED:
            self.skip(pod, RATE_LIMITED)
            return False
        if result in (ActionResult.INFEASIBLE, ActionResult.INVALID) and self.mode == UpdateMode.IN_PLACE:
            self.remember_infeasible(pod)
        self.set_result(pod, "resize failed", candidate.reason)
        return True

    def skip_resize(self, pod: Pod, refusal: str) -> None:
        """Skip a resize that the API server would refuse."""
        self.skip(pod, refusal)
        if self.mode == UpdateMode.IN_PLACE:
            message = f"Pod cannot be resized in place: {refusal}"
            self.state.emit(POD, pod.metadata.key, "InPlaceResizeSkipped", message)
