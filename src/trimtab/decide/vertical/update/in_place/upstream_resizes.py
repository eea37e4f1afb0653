"""One VPA's resizes in place as upstream's updater does them, for `--compat`.

Trimtab's own are in `vpa_resizes`.
"""

from collections.abc import Generator
from dataclasses import dataclass

from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.eligibility import UpdateCandidate
from trimtab.decide.vertical.update.evictions import VpaEvictions
from trimtab.decide.vertical.update.in_place.resize_request import DONE_MESSAGE, DONE_REASON
from trimtab.decide.vertical.update.in_place.vpa_resizes import (
    ALREADY_REQUESTED,
    SKIPPED_MESSAGE,
    SKIPPED_REASON,
)
from trimtab.decide.vertical.update.loop_state import POD
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.decide.vertical.update.upstream_restrictions import (
    InPlaceDecision,
    InPlaceRequest,
    InPlaceResult,
    decide_in_place,
)
from trimtab.decide.vertical.update.vpa_pods import Step, VpaPods
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode


@dataclass
class UpstreamVpaResizes:
    """The resizes of one VPA in one loop."""

    update: VpaPods

    def run(self) -> Step:
        """Resize pods in place, and evict those whose resize fails."""
        possible = [pod for pod in self.update.pods if self._is_possible(pod)]
        failed: list[UpdateCandidate] = []
        for candidate in self.update.candidates(possible):
            decided = self._decide(candidate.pod)
            if decided.decision is InPlaceDecision.EVICT:
                failed.append(candidate)
            elif self._goes_on(candidate.pod, decided):
                is_done = yield from self._resize(candidate, decided)
                if not is_done and self.update.mode == UpdateMode.IN_PLACE_OR_RECREATE:
                    failed.append(candidate)
        yield from VpaEvictions(self.update).evict(failed)

    def _is_possible(self, pod: Pod) -> bool:
        decided = self._decide(pod)
        self.update.skip(pod, decided.reason)
        if decided.decision is InPlaceDecision.INFEASIBLE_CACHED:
            self.update.state.emit(POD, pod.metadata.key, SKIPPED_REASON, SKIPPED_MESSAGE)
            return False
        if decided.decision is InPlaceDecision.APPROVED:
            return True
        if decided.decision is InPlaceDecision.EVICT:
            return self.update.mode == UpdateMode.IN_PLACE_OR_RECREATE
        return self.update.mode == UpdateMode.IN_PLACE

    def _decide(self, pod: Pod) -> InPlaceResult:
        key, update = pod.metadata.key, self.update
        earlier = update.infeasible_for(pod)
        request = InPlaceRequest(
            pod=pod,
            mode=update.mode,
            group_status=update.group_status(pod),
            recommendation=update.vpa.status.recommendation,
            infeasible=earlier.recommendation if earlier else None,
            first_seen=update.state.resizes_first_seen.get(key),
            is_mode_allowed=update.context.gates.in_place,
            skips_budget=update.context.settings.skips_budget_in_place,
        )
        decided = decide_in_place(request, update.context.now)
        if decided.first_seen is not None:
            update.state.resizes_first_seen[key] = decided.first_seen
        return decided

    def _goes_on(self, pod: Pod, decided: InPlaceResult) -> bool:
        if decided.decision is InPlaceDecision.INFEASIBLE:
            self.update.remember_infeasible(pod)
            return True
        if decided.decision is InPlaceDecision.DEFERRED:
            self.update.skip(pod, decided.reason)
            # Upstream sends a resize in mode InPlace all the same, beyond the budget (surprise 26).
            return self.update.mode == UpdateMode.IN_PLACE and not self.update.context.rules.ours
        return decided.decision is InPlaceDecision.APPROVED

    def _resize(
        self, candidate: UpdateCandidate, decided: InPlaceResult
    ) -> Generator[Action, ActionResult, bool]:
        """Resize one pod, and return whether that succeeded."""
        pod, update = candidate.pod, self.update
        creator = update.members.creators.get(pod.metadata.key)
        plan = update.plan_resize(pod, update.sizing(pod).containers) if creator else ResizePlan()
        if plan.refusal:
            update.skip_resize(pod, plan.refusal)
            return False
        if not plan.operations or creator is None:
            update.skip(pod, ALREADY_REQUESTED if creator else decided.reason)
            # Upstream counts a resize without a change as failed, and evicts the pod.
            return update.context.rules.ours
        result = yield Resize(pod, update.vpa, plan, candidate.reason)
        if result is ActionResult.DONE:
            update.state.emit(POD, pod.metadata.key, DONE_REASON, DONE_MESSAGE)
        return not update.finish_resize(candidate, result)
