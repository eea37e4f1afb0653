"""The part of an update loop that is about one VPA: choose among its pods, then resize or evict them."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION
from trimtab.decide.vertical.admission.startup_boost import expired_boosts, without_boosts
from trimtab.decide.vertical.control.control import DRIVING_MODES, VpaClaim
from trimtab.decide.vertical.control.selector_hash import is_recommendation_current
from trimtab.decide.vertical.resources.limits_in_use import LIMIT_DUE, is_limit_due
from trimtab.decide.vertical.resources.pod_resources import Sizing
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict
from trimtab.decide.vertical.update.disruption_budget import (
    Membership,
    is_boosted,
    membership,
)
from trimtab.decide.vertical.update.disruption_ledger import kubelet_message, phase_of
from trimtab.decide.vertical.update.eligibility import (
    UpdateCandidate,
    admits_eviction,
    has_quick_oom,
    in_update_order,
    is_lower_anywhere,
    judge,
    oom_threshold,
    update_priority,
)
from trimtab.decide.vertical.update.eviction_limits import after_refusal
from trimtab.decide.vertical.update.in_place.group_status import (
    PATIENCE,
    GroupStatus,
    can_evict,
)
from trimtab.decide.vertical.update.in_place.resize import size_running_pod
from trimtab.decide.vertical.update.in_place.step import RATE_LIMITED, InPlaceStep
from trimtab.decide.vertical.update.in_place.unboost import BOOSTED, is_spared
from trimtab.decide.vertical.update.in_place.upstream_step import UpstreamInPlaceStep
from trimtab.decide.vertical.update.in_place.withdraw import take_back_all, take_back_unwanted
from trimtab.decide.vertical.update.loop_state import (
    NO_BUDGET,
    POD,
    VPA,
    Infeasible,
    LoopContext,
    LoopState,
)
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

Step = Generator[Action, ActionResult, None]
_DEEDS = {
    ActionResult.DONE: "evicted",
    ActionResult.WOULD: "would evict",
    ActionResult.UNKNOWN: "eviction not answered",
}
_IN_PLACE_MODES = frozenset({UpdateMode.IN_PLACE, UpdateMode.IN_PLACE_OR_RECREATE})


def effective_mode(claim: VpaClaim, context: LoopContext) -> str:
    """Return how the VPA's pods are changed; Auto with a scope is in place first, so that a leader keeps its lease."""
    is_scoped_auto = claim.mode == UpdateMode.AUTO and claim.vpa.spec.vpa_scope is not None
    if is_scoped_auto and context.compat.scoped_auto_is_in_place and context.observation.serves_resize:
        return UpdateMode.IN_PLACE_OR_RECREATE
    return claim.mode


@dataclass
class VPAUpdate:
    """One VPA and the live pods it controls, for the length of one loop."""

    claim: VpaClaim
    context: LoopContext
    state: LoopState
    pods: list[Pod] = field(default_factory=list)
    members: Membership = field(default_factory=lambda: Membership({}))
    mode: str = ""
    _sizings: dict[tuple[object, ...], Sizing] = field(default_factory=dict)

    @property
    def vpa(self) -> VerticalPodAutoscaler:
        """Return the VPA itself."""
        return self.claim.vpa

    def run(self) -> Step:
        """Change those pods that should be, as far as budgets and brakes allow."""
        context = self.context
        self.mode = effective_mode(self.claim, context)
        if unfit := self._unfit():
            for pod in self.pods:
                self.leave(pod, unfit)
            if forbids := self._forbids_changes():
                yield from take_back_all(self, forbids)
            return
        if not context.compat.budget_is_shared:
            self.state.count(self.pods)
        is_in_place = self.mode in _IN_PLACE_MODES
        self.members = membership(
            self.pods,
            self._required(),
            minimum_is_waived=is_in_place and context.settings.skips_budget_in_place,
            known=self.state.groups,
            compat=context.compat,
        )
        if is_in_place and context.compat.disruptions_last_until_ready:
            yield from InPlaceStep(self).run()
        elif is_in_place:
            yield from UpstreamInPlaceStep(self).run()
        else:
            returned = yield from take_back_unwanted(self)
            yield from self.evict_all(self._evictable(returned))

    def _required(self) -> int:
        policy = self.vpa.spec.update_policy
        if policy is not None and policy.min_replicas is not None:
            return policy.min_replicas
        return self.context.settings.min_replicas

    def _unfit(self) -> str:
        """Say why nothing is done for this VPA in this loop; empty if something may be."""
        if forbids := self._forbids_changes():
            return forbids
        if self.context.compat.needs_current_recommendation and not is_recommendation_current(self.claim):
            return "the recommendation was learnt under another target or scope"
        return ""

    def _forbids_changes(self) -> str:
        """Say why no running pod of this VPA may change; empty if some may."""
        if self.mode not in DRIVING_MODES:
            return f"update mode {self.mode} changes no running pod"
        if self.mode == UpdateMode.IN_PLACE and not self.context.gates.in_place:
            return "mode InPlace needs feature gate InPlace"
        return ""

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
                self.leave(candidate.pod, "the VPA's evictionRequirements are not met")
        return tuple(admitted)

    def _candidate(self, pod: Pod) -> UpdateCandidate | None:
        context = self.context
        thresholds = context.settings.thresholds
        threshold = oom_threshold(self.vpa, thresholds.evict_after_oom, context.gates)
        is_quick_oom = has_quick_oom(pod, self.vpa, context.now, threshold)
        if is_boosted(pod) and is_spared(self.claim, context):
            if not (is_quick_oom and self._may_precede_boost(pod)):
                self.leave(pod, BOOSTED)
                return None
            self.state.urgent_boosts.add(pod.metadata.key)
        sizing = self.sizing(pod)
        if sizing.refusal:
            self.leave(pod, sizing.refusal)
            if self.mode != UpdateMode.IN_PLACE:  # that mode replaces no pod
                message = f"the replacement of pod {pod.name} would be refused: {sizing.refusal}"
                self.state.inadmissible[pod.metadata.key] = message
            return None
        capped = sizing.recommendation
        earlier = self.infeasible_for(pod) if self.mode == UpdateMode.IN_PLACE else None
        if earlier is not None and not is_lower_anywhere(earlier.recommendation, capped):
            self.leave(pod, "an earlier resize was infeasible and nothing is lower now")
            return None
        priority = update_priority(without_boosts(pod), capped)
        found = judge(pod, priority, is_quick_oom=is_quick_oom, now=context.now, thresholds=thresholds)
        if found.is_eligible:
            return UpdateCandidate(pod, priority, capped, found.reason, is_urgent=is_quick_oom)
        if context.compat.disruptions_last_until_ready and is_limit_due(pod, sizing, context.now):
            return UpdateCandidate(pod, priority, capped, LIMIT_DUE)
        self.leave(pod, f"{found.reason}; {sizing.note}" if sizing.note else found.reason)
        return None

    def _may_precede_boost(self, pod: Pod) -> bool:
        """Return whether an urgent update need not wait for the end of a boost; one that is over ends first."""
        context = self.context
        return context.compat.disruptions_last_until_ready and not expired_boosts(pod, self.vpa, context.now)

    def sizing(self, pod: Pod) -> Sizing:
        """Return what the VPA gives to a pod; pods of one template share the answer, as they share their spec."""
        spec, compat = pod.spec, self.context.compat
        parts = (spec.containers, spec.init_containers, spec.resources)
        originals = pod.metadata.annotations.get(ORIGINALS_ANNOTATION)
        key = (*map(id, parts), originals) if compat.ratio_is_the_users else (id(pod),)
        if key not in self._sizings:
            ranges = self.context.ranges.of(pod.metadata.namespace)
            self._sizings[key] = size_running_pod(pod, self.vpa, ranges, compat)
        return self._sizings[key]

    def infeasible_for(self, pod: Pod) -> Infeasible | None:
        """Return what was found infeasible for a pod."""
        found = self.state.infeasible.get(pod.metadata.uid)
        if found is not None and self.context.compat.infeasible_is_per_vpa and found.vpa != self.claim.key:
            return None
        return found

    def standing(self, pod: Pod) -> GroupStatus:
        """Return a pod's place in its group."""
        creator = self.members.creators.get(pod.metadata.key)
        if creator is None:
            return GroupStatus(False, None)
        return GroupStatus(True, self.state.groups.get(creator), creator in self.members.below_minimum)

    def remember_infeasible(self, pod: Pod) -> None:
        """Remember that the node cannot hold what is recommended."""
        found = self.vpa.status.recommendation
        if found is not None:
            self.state.infeasible[pod.metadata.uid] = Infeasible(vpa=self.claim.key, recommendation=found)

    def refused(self, pod: Pod, refusal: str) -> bool:
        """Say why a resize is not even sent; False, so that the pod may be evicted instead."""
        self.leave(pod, refusal)
        if self.mode == UpdateMode.IN_PLACE:
            message = f"Pod cannot be resized in place: {refusal}"
            self.state.tell(POD, pod.metadata.key, "InPlaceResizeSkipped", message)
        return False

    def _evictable(self, returned: frozenset[str]) -> tuple[UpdateCandidate, ...]:
        possible = []
        for pod in self.pods:
            if pod.metadata.key in returned:
                continue
            if self.context.compat.disruptions_last_until_ready or self._may_evict(pod):
                possible.append(pod)
            else:
                self.leave(pod, NO_BUDGET)
        return self.candidates(possible)

    def _may_evict(self, pod: Pod, *, is_urgent: bool = False) -> bool:
        if self.context.compat.disruptions_last_until_ready:
            return not self._eviction_hindrance(pod, is_urgent=is_urgent)
        key = pod.metadata.key
        seen = self.state.resizes_seen.get(key)
        is_allowed, seen = can_evict(pod, self.standing(pod), seen, self.context.now)
        if seen is not None:
            self.state.resizes_seen[key] = seen
        return is_allowed

    def _eviction_hindrance(self, pod: Pod, *, is_urgent: bool) -> str:
        """Say why a pod cannot be evicted now; empty if it can."""
        standing = self.standing(pod)
        if not standing.is_member or (standing.is_below_minimum and pod.status.phase != "Pending"):
            return "its group is unknown or below the minimum of replicas"
        if self.mode not in _IN_PLACE_MODES and (waits := self._waits_for_resize(pod)):
            return waits
        creator = self.members.creators[pod.metadata.key]
        return self.state.hindrance(pod, creator, restarts=True, is_urgent=is_urgent)

    def _waits_for_resize(self, pod: Pod) -> str:
        """Say that a resize of another origin is under way; it has its time before the pod is evicted."""
        phase = phase_of(pod, self.context.now)
        patience = PATIENCE.get(phase)
        if patience is None or self.state.waited(pod) > patience:
            return ""
        return f"a resize is under way: {kubelet_message(pod) or phase}"

    def evict_all(self, candidates: Iterable[UpdateCandidate]) -> Step:
        """Evict pods as far as budget and brakes allow."""
        for candidate in candidates:
            pod = candidate.pod
            self.state.to_evict.add(pod.metadata.key)
            if not self._may_evict(pod, is_urgent=candidate.is_urgent):
                self.leave(pod, self._why_not_evicted(candidate))
            elif braked := self.state.braked(pod, self.members.creators[pod.metadata.key]):
                self.leave(pod, braked)
            else:
                outcome = yield Evict(pod, self.vpa, candidate.reason)
                self._after_evicting(candidate, outcome)

    def _why_not_evicted(self, candidate: UpdateCandidate) -> str:
        if not self.context.compat.disruptions_last_until_ready:
            return NO_BUDGET
        return self._eviction_hindrance(candidate.pod, is_urgent=candidate.is_urgent)

    def _after_evicting(self, candidate: UpdateCandidate, outcome: ActionResult) -> None:
        pod, state = candidate.pod, self.state
        if outcome is ActionResult.LATER:
            self.leave(pod, RATE_LIMITED)
            return
        if not outcome.is_charged:
            state.note(pod, self.claim.key, "eviction failed", candidate.reason)
            if outcome in (ActionResult.REFUSED, ActionResult.UNREPLACEABLE):
                brakes = self.context.settings.brake
                state.brake = after_refusal(state.brake, pod.metadata.uid, self.context.now, brakes)
            return
        if outcome is ActionResult.DONE:
            message = "Pod was evicted by VPA Updater to apply resource recommendation."
            state.tell(POD, pod.metadata.key, "EvictedByVPA", message)
            message = f"VPA Updater evicted Pod {pod.name} to apply resource recommendation."
            state.tell(VPA, self.claim.key, "EvictedPod", message)
        state.note(pod, self.claim.key, _DEEDS[outcome], candidate.reason)
        state.evicted(pod, self.members.creators[pod.metadata.key], self.claim.key)

    def leave(self, pod: Pod, reason: str) -> None:
        """Say why nothing is done with a pod."""
        self.state.leave(pod, self.claim.key, reason)
