"""One VPA's resizes in place as upstream's updater does them, for `--compat`; ours are in `in_place_step`."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.decide.vertical.admission.startup_boost import BoostError
from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.eligibility import UpdateCandidate
from trimtab.decide.vertical.update.in_place.group_status import (
    InPlaceDecision,
    InPlaceRequest,
    InPlaceResult,
    decide_in_place,
)
from trimtab.decide.vertical.update.in_place.progress import DONE_MESSAGE, DONE_REASON
from trimtab.decide.vertical.update.in_place.resize import ResizePlan, plan_resize
from trimtab.decide.vertical.update.in_place.resize_request import DEEDS
from trimtab.decide.vertical.update.in_place.step import RATE_LIMITED, SKIPPED
from trimtab.decide.vertical.update.loop_state import POD
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode

if TYPE_CHECKING:
    from trimtab.decide.vertical.update.vpa_update import VPAUpdate


@dataclass
class UpstreamInPlaceStep:
    """The resizes of one VPA in one loop."""

    update: "VPAUpdate"

    def run(self) -> Generator[Action, ActionResult, None]:
        """Resize what may be, and evict where that failed."""
        possible = [pod for pod in self.update.pods if self._is_possible(pod)]
        failed: list[UpdateCandidate] = []
        for candidate in self.update.candidates(possible):
            answer = self._decide(candidate.pod)
            if answer.decision is InPlaceDecision.EVICT:
                failed.append(candidate)
            elif self._goes_on(candidate.pod, answer):
                is_done = yield from self._resize(candidate, answer)
                if not is_done and self.update.mode == UpdateMode.IN_PLACE_OR_RECREATE:
                    failed.append(candidate)
        yield from self.update.evict_all(failed)

    def _is_possible(self, pod: Pod) -> bool:
        """Return whether a pod is worth looking at for a resize; says why if not."""
        answer = self._decide(pod)
        self.update.leave(pod, answer.reason)
        if answer.decision is InPlaceDecision.INFEASIBLE_CACHED:
            self.update.state.tell(POD, pod.metadata.key, "InPlaceResizeSkipped", SKIPPED)
            return False
        if answer.decision is InPlaceDecision.APPROVED:
            return True
        if answer.decision is InPlaceDecision.EVICT:
            return self.update.mode == UpdateMode.IN_PLACE_OR_RECREATE
        return self.update.mode == UpdateMode.IN_PLACE

    def _decide(self, pod: Pod) -> InPlaceResult:
        key, earlier = pod.metadata.key, self.update.infeasible_for(pod)
        request = InPlaceRequest(
            pod=pod,
            mode=self.update.mode,
            standing=self.update.standing(pod),
            recommendation=self.update.vpa.status.recommendation,
            infeasible=earlier.recommendation if earlier else None,
            first_seen=self.update.state.resizes_seen.get(key),
            is_mode_allowed=self.update.context.gates.in_place,
            skips_budget=self.update.context.settings.skips_budget_in_place,
        )
        answer = decide_in_place(request, self.update.context.now)
        if answer.first_seen is not None:
            self.update.state.resizes_seen[key] = answer.first_seen
        return answer

    def _goes_on(self, pod: Pod, answer: InPlaceResult) -> bool:
        if answer.decision is InPlaceDecision.INFEASIBLE:
            self.update.remember_infeasible(pod)
            return True
        if answer.decision is InPlaceDecision.DEFERRED:
            self.update.leave(pod, answer.reason)
            # Upstream sends a resize in mode InPlace all the same, beyond the budget (surprise 26).
            return self.update.mode == UpdateMode.IN_PLACE and not self.update.context.compat.in_place_waits
        return answer.decision is InPlaceDecision.APPROVED

    def _resize(
        self, candidate: UpdateCandidate, answer: InPlaceResult
    ) -> Generator[Action, ActionResult, bool]:
        """Resize one pod; False if it failed, so that the pod may be evicted instead."""
        pod = candidate.pod
        creator = self.update.members.creators.get(pod.metadata.key)
        plan = self._plan(pod) if creator else ResizePlan()
        if plan.refusal:
            return self.update.refused(pod, plan.refusal)
        if not plan.operations or creator is None:
            self.update.leave(
                pod, "its containers already ask for what is recommended" if creator else answer.reason
            )
            # Nothing to send is a failure upstream, which then evicts; to us there is nothing to do.
            return self.update.context.compat.resizes_only_changes
        outcome = yield Resize(pod, self.update.vpa, plan, candidate.reason)
        if outcome is ActionResult.DONE:
            self.update.state.tell(POD, pod.metadata.key, DONE_REASON, DONE_MESSAGE)
            self.update.state.resized(pod, creator)
            self.update.state.note(pod, self.update.claim.key, "resized", candidate.reason)
            return True
        if outcome.is_charged:
            self.update.state.resized(pod, creator)
            self.update.state.note(pod, self.update.claim.key, DEEDS[outcome], candidate.reason)
            return True
        if outcome is ActionResult.LATER:
            self.update.leave(pod, RATE_LIMITED)
            return True
        if (
            outcome in (ActionResult.INFEASIBLE, ActionResult.INVALID)
            and self.update.mode == UpdateMode.IN_PLACE
        ):
            self.update.remember_infeasible(pod)
        self.update.state.note(pod, self.update.claim.key, "resize failed", candidate.reason)
        return False

    def _plan(self, pod: Pod) -> ResizePlan:
        context = self.update.context
        try:
            return plan_resize(
                pod, self.update.vpa, self.update.sizing(pod).containers, context.now, context.compat
            )
        except BoostError:
            return ResizePlan()
