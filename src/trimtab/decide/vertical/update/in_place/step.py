"""One VPA's resizes in place: request, replace, take back, and when to evict instead.

Upstream's own way, for `--compat`, is in `upstream_step`. Here a request that waits is replaced as soon as something
else is wanted, what nobody wants is taken back, and no pod is evicted only to shrink.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from trimtab.decide.vertical.admission.startup_boost import BoostError
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.resources.limits_in_use import (
    as_requested,
    keep_limits,
    keep_memory,
    lowers_memory_limit,
)
from trimtab.decide.vertical.update.actions import Action, ActionResult
from trimtab.decide.vertical.update.disruption_budget import is_boosted
from trimtab.decide.vertical.update.disruption_ledger import (
    WAITING,
    Kind,
    kubelet_message,
    phase_of,
)
from trimtab.decide.vertical.update.eligibility import (
    UpdateCandidate,
    is_lower_anywhere,
    update_priority,
)
from trimtab.decide.vertical.update.in_place.group_status import (
    DEFERRED_TIMEOUT,
    PATIENCE,
    Resizing,
    restarts_containers,
)
from trimtab.decide.vertical.update.in_place.resize import ResizePlan, plan_resize
from trimtab.decide.vertical.update.in_place.resize_note import read_note
from trimtab.decide.vertical.update.in_place.resize_request import (
    DEEDS,
    Wish,
    request_resize,
    requested_by,
    take_back,
)
from trimtab.decide.vertical.update.in_place.withdraw import UNWANTED, is_unwanted
from trimtab.decide.vertical.update.loop_state import (
    NO_BUDGET,
    POD,
    LoopContext,
    LoopState,
)
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode

if TYPE_CHECKING:
    from trimtab.decide.vertical.update.vpa_update import VPAUpdate

RATE_LIMITED = "the rate limit of evictions and resizes is reached"
SKIPPED = (
    "Previously recorded in-place update was infeasible, current recommendation is not lower than previous, "
    "skipping resize"
)
Sizes = tuple[ContainerResources, ...]


@dataclass
class InPlaceStep:
    """The resizes of one VPA in one loop."""

    update: "VPAUpdate"

    @property
    def _context(self) -> LoopContext:
        return self.update.context

    @property
    def _state(self) -> LoopState:
        return self.update.state

    def run(self) -> Generator[Action, ActionResult, None]:
        """Take back what is not wanted any more, request what is, and evict where that fails."""
        possible = [pod for pod in self.update.pods if self._is_possible(pod)]
        candidates = self.update.candidates(possible)
        wanted = {candidate.pod.metadata.key for candidate in candidates}
        for pod in possible:
            if pod.metadata.key not in wanted:
                yield from self._take_back_unwanted(pod)
        failed: list[UpdateCandidate] = []
        for candidate in candidates:
            evicted = yield from self._change(candidate)
            if evicted is not None and self._may_be_evicted(evicted):
                failed.append(evicted)
        yield from self.update.evict_all(failed)

    def _is_possible(self, pod: Pod) -> bool:
        """Return whether a pod can be looked at for a resize; says why if not."""
        update = self.update
        if blocked := self._blocked(pod):
            update.leave(pod, blocked)
            return False
        earlier = update.infeasible_for(pod) if update.mode == UpdateMode.IN_PLACE else None
        recommended = update.vpa.status.recommendation
        if earlier is not None and not is_lower_anywhere(earlier.recommendation, recommended):
            update.leave(pod, "an earlier resize was infeasible and nothing recommended is lower now")
            self._state.tell(POD, pod.metadata.key, "InPlaceResizeSkipped", SKIPPED)
            return False
        return True

    def _blocked(self, pod: Pod) -> str:
        if pod.metadata.key not in self.update.members.creators:
            return "its group is unknown or below the minimum of replicas"
        if pod.status.phase == "Pending":
            return "it is Pending"
        return "" if self.update.vpa.status.recommendation is not None else "there is no recommendation yet"

    def _may_be_evicted(self, candidate: UpdateCandidate) -> bool:
        if self.update.mode != UpdateMode.IN_PLACE_OR_RECREATE:
            return False
        if candidate.priority.is_scale_up:
            return True
        self.update.leave(candidate.pod, f"{candidate.reason}; it is not evicted only to shrink")
        return False

    def _change(self, candidate: UpdateCandidate) -> Generator[Action, ActionResult, UpdateCandidate | None]:
        """Request what is wanted; returns the candidate if it should be evicted instead."""
        pod = candidate.pod
        phase = phase_of(pod, self._context.now)
        if phase is Resizing.IN_PROGRESS:
            return self._wait(candidate, PATIENCE[phase], f"a resize is under way: {_words(pod, phase)}")
        if phase is Resizing.ERROR and lowers_memory_limit(pod):
            lower = self._keeping_limits(pod)
            if lower is not None and lower.operations:
                return (yield from self._send(candidate, lower, is_refused=True))
        plan = self._plan(pod)
        if phase in WAITING and not (plan.operations and self._differs(candidate)):
            return (yield from self._while_waiting(candidate, phase))
        return (yield from self._send(candidate, plan))

    def _differs(self, candidate: UpdateCandidate) -> bool:
        """Return whether what the spec asks for is too far from what is wanted now to go on waiting for it."""
        rank = update_priority(as_requested(candidate.pod), candidate.recommendation)
        return rank.is_outside_range or rank.resource_diff >= self._context.settings.min_change

    def _while_waiting(
        self, candidate: UpdateCandidate, phase: Resizing
    ) -> Generator[Action, ActionResult, UpdateCandidate | None]:
        pod, mode = candidate.pod, self.update.mode
        waits = f"its resize waits: {_words(pod, phase)}"
        if mode == UpdateMode.IN_PLACE:
            if phase is Resizing.INFEASIBLE:
                self.update.remember_infeasible(pod)
            is_late = phase is Resizing.DEFERRED and self._state.waited(pod) > DEFERRED_TIMEOUT
            if is_late and restarts_containers(pod):
                # It would restart the pod at any moment, so no other pod may be disturbed while it waits.
                yield from self._take_back(pod, f"it waited too long: {_words(pod, phase)}")
            else:
                self.update.leave(pod, waits)
            return None
        # The kubelet tries a refused decrease again, as it does with a resize that it deferred.
        patience = DEFERRED_TIMEOUT if lowers_memory_limit(pod) else PATIENCE.get(phase)
        return self._wait(candidate, patience, waits)

    def _wait(
        self, candidate: UpdateCandidate, patience: timedelta | None, words: str
    ) -> UpdateCandidate | None:
        waited = self._state.waited(candidate.pod)
        if patience is not None and waited <= patience:
            self.update.leave(candidate.pod, words)
            return None
        return replace(candidate, reason=f"{candidate.reason}, and {words}")

    def _take_back_unwanted(self, pod: Pod) -> Generator[Action, ActionResult, None]:
        """Take back a request that waits, if the pod's present size is right for its present role."""
        phase = phase_of(pod, self._context.now)
        if phase not in WAITING or is_boosted(pod):
            return
        if not is_unwanted(pod, self.update):
            self.update.leave(pod, f"its resize waits: {_words(pod, phase)}")
            return
        yield from self._take_back(pod, UNWANTED)

    def _take_back(self, pod: Pod, reason: str) -> Generator[Action, ActionResult, None]:
        yield from take_back(pod, self.update.vpa, reason, self._state)

    def _send(
        self, candidate: UpdateCandidate, plan: ResizePlan, *, is_refused: bool = False
    ) -> Generator[Action, ActionResult, UpdateCandidate | None]:
        pod, update = candidate.pod, self.update
        creator = update.members.creators[pod.metadata.key]
        if plan.refusal:
            update.refused(pod, plan.refusal)
            return replace(candidate, reason=f"{candidate.reason}, and {plan.refusal}")
        if not plan.operations:
            update.leave(pod, "its containers already ask for what is recommended")
            return None
        hindrance = self._state.hindrance(
            pod, creator, restarts=restarts_containers(pod), is_urgent=candidate.is_urgent
        )
        if hindrance:
            update.leave(pod, hindrance)
            if hindrance == NO_BUDGET and update.claim.level:
                self._state.short_of_budget.add(creator)
            return None
        wish = Wish(
            pod,
            update.vpa,
            plan,
            candidate.reason,
            Kind.RESIZE,
            self._refusals(pod, plan, is_refused),
            is_refused,
        )
        outcome = yield from request_resize(wish, self._state)
        return self._after(candidate, wish, outcome)

    def _refusals(self, pod: Pod, plan: ResizePlan, is_refused: bool) -> int:
        note = read_note(pod)
        if is_refused:
            return note.refusals + 1
        is_tried_again = any(
            found.limits != container.resources.limits
            for container in pod.spec.containers
            if (found := plan.resources.get(container.name)) is not None
        )
        return note.refusals if note.refused_at is not None and is_tried_again else 0

    def _after(self, candidate: UpdateCandidate, wish: Wish, outcome: ActionResult) -> UpdateCandidate | None:
        pod, update, state = candidate.pod, self.update, self._state
        creator = update.members.creators[pod.metadata.key]
        if outcome.is_charged:
            state.resized(pod, creator, requested_by(wish, state))
            state.note(pod, update.claim.key, DEEDS[outcome], candidate.reason)
            return None
        if outcome is ActionResult.LATER:
            update.leave(pod, RATE_LIMITED)
            return None
        if outcome in (ActionResult.INFEASIBLE, ActionResult.INVALID) and update.mode == UpdateMode.IN_PLACE:
            update.remember_infeasible(pod)
        state.note(pod, update.claim.key, "resize failed", candidate.reason)
        return replace(candidate, reason=f"{candidate.reason}, and its resize in place failed")

    def _plan(self, pod: Pod) -> ResizePlan:
        sizes = self.update.sizing(pod).containers
        if read_note(pod).holds_limits(self._context.now):
            return self._keeping_limits(pod) or self._planned(pod, sizes)
        return self._planned(pod, sizes)

    def _keeping_limits(self, pod: Pod) -> ResizePlan | None:
        """Return the resize that lowers what can be lowered; None if no limit would be lowered."""
        sizes = self.update.sizing(pod).containers
        for keep in (keep_limits, keep_memory):
            kept = keep(pod, sizes)
            if kept == sizes:
                return None
            plan = self._planned(pod, kept)
            if not plan.refusal:
                return plan
        return ResizePlan()

    def _planned(self, pod: Pod, sizes: Sizes) -> ResizePlan:
        context = self._context
        try:
            return plan_resize(pod, self.update.vpa, sizes, context.now, context.compat)
        except BoostError:
            return ResizePlan()


def _words(pod: Pod, phase: Resizing) -> str:
    return kubelet_message(pod) or phase.value
