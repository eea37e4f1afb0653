"""The part of an update loop that is about one VPA: choose among its pods, then resize or evict them."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from trimtab.decide.vertical.actions import Action, Evict, Outcome, Resize
from trimtab.decide.vertical.boost import BoostError
from trimtab.decide.vertical.brake import after_refusal
from trimtab.decide.vertical.budget import Membership, membership
from trimtab.decide.vertical.cap import cap_for_pod
from trimtab.decide.vertical.control import DRIVING_MODES, Claim
from trimtab.decide.vertical.currency import is_recommendation_current
from trimtab.decide.vertical.eligibility import (
    Candidate,
    admits_eviction,
    has_quick_oom,
    in_update_order,
    is_lower_anywhere,
    judge,
    oom_threshold,
)
from trimtab.decide.vertical.inplace import (
    Answer,
    InPlaceDecision,
    InPlaceRequest,
    Standing,
    can_evict,
    decide_in_place,
)
from trimtab.decide.vertical.loop_state import POD, VPA, LoopContext, LoopState
from trimtab.decide.vertical.patches import Operation, in_place_annotations
from trimtab.decide.vertical.priority import update_priority
from trimtab.decide.vertical.resize import resize_operations
from trimtab.decide.vertical.sizing import size_pod
from trimtab.decide.vertical.updater_state import Infeasible
from trimtab.model.pod import Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

Step = Generator[Action, Outcome, None]
_IN_PLACE_MODES = frozenset({UpdateMode.IN_PLACE, UpdateMode.IN_PLACE_OR_RECREATE})
_NO_BUDGET = "its group cannot spare another pod now"
_SKIPPED = (
    "Previously recorded in-place update was infeasible, current recommendation is not lower than previous, "
    "skipping resize"
)


def effective_mode(claim: Claim, context: LoopContext) -> str:
    """Return how the VPA's pods are changed; Auto with a scope is in place first, so that a leader keeps its lease."""
    is_scoped_auto = claim.mode == UpdateMode.AUTO and claim.vpa.spec.vpa_scope is not None
    if is_scoped_auto and context.compat.scoped_auto_is_in_place and context.observation.serves_resize:
        return UpdateMode.IN_PLACE_OR_RECREATE
    return claim.mode


@dataclass
class VPAUpdate:
    """One VPA and the live pods it controls, for the length of one loop."""

    claim: Claim
    context: LoopContext
    state: LoopState
    pods: list[Pod] = field(default_factory=list)
    members: Membership = field(default_factory=lambda: Membership({}))
    mode: str = ""

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
                self._leave(pod, unfit)
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
        yield from self._in_place() if is_in_place else self._evict_all(self._evictable())

    def _required(self) -> int:
        policy = self.vpa.spec.update_policy
        if policy is not None and policy.min_replicas is not None:
            return policy.min_replicas
        return self.context.settings.min_replicas

    def _unfit(self) -> str:
        """Say why nothing is done for this VPA in this loop; empty if something may be."""
        if self.mode not in DRIVING_MODES:
            return f"update mode {self.mode} changes no running pod"
        if self.mode == UpdateMode.IN_PLACE and not self.context.gates.in_place:
            return "mode InPlace needs feature gate InPlace"
        if self.context.compat.needs_current_recommendation and not is_recommendation_current(self.vpa):
            return "the recommendation is older than the VPA's present specification"
        return ""

    def _candidates(self, pods: Iterable[Pod]) -> tuple[Candidate, ...]:
        """Return the pods that should change, most urgent first."""
        chosen = [candidate for pod in pods if (candidate := self._candidate(pod)) is not None]
        policy = self.vpa.spec.update_policy
        requirements = policy.eviction_requirements if policy else None
        admitted = []
        for candidate in in_update_order(chosen):
            if admits_eviction(candidate.pod, candidate.recommendation, requirements):
                admitted.append(candidate)
            else:
                self._leave(candidate.pod, "the VPA's evictionRequirements are not met")
        return tuple(admitted)

    def _candidate(self, pod: Pod) -> Candidate | None:
        context = self.context
        capped = cap_for_pod(self.vpa, pod, context.ranges.of(pod.metadata.namespace), context.compat)
        earlier = self._infeasible_for(pod) if self.mode == UpdateMode.IN_PLACE else None
        if earlier is not None and not is_lower_anywhere(earlier.recommendation, capped.recommendation):
            self._leave(pod, "an earlier resize was infeasible and nothing is lower now")
            return None
        priority = update_priority(pod, capped.recommendation)
        thresholds = context.settings.thresholds
        threshold = oom_threshold(self.vpa, thresholds.evict_after_oom, context.gates)
        is_quick_oom = has_quick_oom(pod, self.vpa, context.now, threshold)
        found = judge(pod, priority, is_quick_oom=is_quick_oom, now=context.now, thresholds=thresholds)
        if found.is_eligible:
            return Candidate(pod, priority, capped.recommendation, found.reason)
        self._leave(pod, found.reason)
        return None

    def _infeasible_for(self, pod: Pod) -> Infeasible | None:
        found = self.state.infeasible.get(pod.metadata.uid)
        if found is not None and self.context.compat.infeasible_is_per_vpa and found.vpa != self.claim.key:
            return None
        return found

    def _standing(self, pod: Pod) -> Standing:
        creator = self.members.creators.get(pod.metadata.key)
        if creator is None:
            return Standing(False, None)
        return Standing(True, self.state.groups.get(creator), creator in self.members.below_minimum)

    def _in_place(self) -> Step:
        possible = [pod for pod in self.pods if self._is_possible(pod)]
        failed: list[Candidate] = []
        for candidate in self._candidates(possible):
            answer = self._decide(candidate.pod)
            if answer.decision is InPlaceDecision.EVICT:
                failed.append(candidate)
            elif self._goes_on(candidate.pod, answer):
                is_done = yield from self._resize(candidate, answer)
                if not is_done and self.mode == UpdateMode.IN_PLACE_OR_RECREATE:
                    failed.append(candidate)
        yield from self._evict_all(failed)

    def _is_possible(self, pod: Pod) -> bool:
        """Return whether a pod is worth looking at for a resize; says why if not."""
        answer = self._decide(pod)
        self._leave(pod, answer.reason)
        if answer.decision is InPlaceDecision.INFEASIBLE_CACHED:
            self.state.tell(POD, pod.metadata.key, "InPlaceResizeSkipped", _SKIPPED)
            return False
        if answer.decision is InPlaceDecision.APPROVED:
            return True
        if answer.decision is InPlaceDecision.EVICT:
            return self.mode == UpdateMode.IN_PLACE_OR_RECREATE
        return self.mode == UpdateMode.IN_PLACE

    def _decide(self, pod: Pod) -> Answer:
        key, earlier = pod.metadata.key, self._infeasible_for(pod)
        request = InPlaceRequest(
            pod=pod,
            mode=self.mode,
            standing=self._standing(pod),
            recommendation=self.vpa.status.recommendation,
            infeasible=earlier.recommendation if earlier else None,
            first_seen=self.state.resizes_seen.get(key),
            is_mode_allowed=self.context.gates.in_place,
            skips_budget=self.context.settings.skips_budget_in_place,
        )
        answer = decide_in_place(request, self.context.now)
        if answer.first_seen is not None:
            self.state.resizes_seen[key] = answer.first_seen
        return answer

    def _goes_on(self, pod: Pod, answer: Answer) -> bool:
        if answer.decision is InPlaceDecision.INFEASIBLE:
            self._remember_infeasible(pod)
            return True
        if answer.decision is InPlaceDecision.DEFERRED:
            self._leave(pod, answer.reason)
            # Upstream sends a resize in mode InPlace all the same, beyond the budget (surprise 26).
            return self.mode == UpdateMode.IN_PLACE and not self.context.compat.in_place_waits
        return answer.decision is InPlaceDecision.APPROVED

    def _remember_infeasible(self, pod: Pod) -> None:
        found = self.vpa.status.recommendation
        if found is not None:
            self.state.infeasible[pod.metadata.uid] = Infeasible(vpa=self.claim.key, recommendation=found)

    def _resize(self, candidate: Candidate, answer: Answer) -> Generator[Action, Outcome, bool]:
        """Resize one pod; False if it failed, so that the pod may be evicted instead."""
        pod = candidate.pod
        creator = self.members.creators.get(pod.metadata.key)
        operations = self._resize_operations(pod) if creator else []
        if not operations or creator is None:
            self._leave(
                pod, "its containers already ask for what is recommended" if creator else answer.reason
            )
            # Nothing to send is a failure upstream, which then evicts; to us there is nothing to do.
            return self.context.compat.resizes_only_changes
        annotations = tuple(in_place_annotations(pod))
        outcome = yield Resize(pod, self.vpa, tuple(operations), annotations, candidate.reason)
        if outcome is Outcome.DONE:
            message = "Pod was resized in place by VPA Updater."
            self.state.tell(POD, pod.metadata.key, "InPlaceResizedByVPA", message)
            self.state.resized(creator)
            self.state.note(pod, self.claim.key, "resized", candidate.reason)
            return True
        if outcome is Outcome.INFEASIBLE and self.mode == UpdateMode.IN_PLACE:
            self._remember_infeasible(pod)
        self.state.note(pod, self.claim.key, "resize failed", candidate.reason)
        return False

    def _resize_operations(self, pod: Pod) -> list[Operation]:
        context = self.context
        sizing = size_pod(pod, self.vpa, context.ranges.of(pod.metadata.namespace), context.compat)
        try:
            return resize_operations(pod, self.vpa, sizing.containers, context.now, context.compat)
        except BoostError:
            return []

    def _evictable(self) -> tuple[Candidate, ...]:
        possible = []
        for pod in self.pods:
            if self._may_evict(pod):
                possible.append(pod)
            else:
                self._leave(pod, _NO_BUDGET)
        return self._candidates(possible)

    def _may_evict(self, pod: Pod) -> bool:
        key = pod.metadata.key
        seen = self.state.resizes_seen.get(key)
        is_allowed, seen = can_evict(pod, self._standing(pod), seen, self.context.now)
        if seen is not None:
            self.state.resizes_seen[key] = seen
        return is_allowed

    def _evict_all(self, candidates: Iterable[Candidate]) -> Step:
        for candidate in candidates:
            pod = candidate.pod
            if not self._may_evict(pod):
                self._leave(pod, _NO_BUDGET)
            elif braked := self.state.braked(pod, self.members.creators[pod.metadata.key]):
                self._leave(pod, braked)
            else:
                outcome = yield Evict(pod, self.vpa, candidate.reason)
                self._after_evicting(candidate, outcome)

    def _after_evicting(self, candidate: Candidate, outcome: Outcome) -> None:
        pod, state = candidate.pod, self.state
        if outcome is not Outcome.DONE:
            state.note(pod, self.claim.key, "eviction failed", candidate.reason)
            if outcome is Outcome.REFUSED:
                brakes = self.context.settings.brake
                state.brake = after_refusal(state.brake, pod.metadata.uid, self.context.now, brakes)
            return
        message = "Pod was evicted by VPA Updater to apply resource recommendation."
        state.tell(POD, pod.metadata.key, "EvictedByVPA", message)
        message = f"VPA Updater evicted Pod {pod.name} to apply resource recommendation."
        state.tell(VPA, self.claim.key, "EvictedPod", message)
        state.note(pod, self.claim.key, "evicted", candidate.reason)
        state.evicted(pod, self.members.creators[pod.metadata.key])

    def _leave(self, pod: Pod, reason: str) -> None:
        self.state.leave(pod, self.claim.key, reason)
