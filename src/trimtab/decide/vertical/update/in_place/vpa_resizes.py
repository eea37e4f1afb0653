"""One VPA's resizes in place: request, replace, revert, and when to evict instead.

A waiting request is replaced as soon as the recommendation differs, an outdated request is reverted, and no pod is
evicted only to shrink. Upstream's own rules, for `--compat`, are in `upstream_resizes`.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import timedelta

from trimtab.decide.vertical.admission.startup_boost import is_boosted
from trimtab.decide.vertical.update.actions import Action, ActionResult
from trimtab.decide.vertical.update.eligibility import UpdateCandidate, is_lower_anywhere
from trimtab.decide.vertical.update.evictions import VpaEvictions
from trimtab.decide.vertical.update.in_place.resize_request import ResizeRequest, request_resize
from trimtab.decide.vertical.update.in_place.reverts import OUTDATED, is_outdated, revert_resize
from trimtab.decide.vertical.update.loop_state import NO_BUDGET, POD, LoopContext, LoopState
from trimtab.decide.vertical.update.resize.annotation import read_resize_annotation
from trimtab.decide.vertical.update.resize.memory_limits import keep_limits, keep_memory, lowers_memory_limit
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.decide.vertical.update.resize.status import (
    DEFERRED_TIMEOUT,
    RESIZE_TIMEOUTS,
    WAITING,
    ResizeStatus,
    kubelet_message,
    resize_status,
    restarts_containers,
)
from trimtab.decide.vertical.update.vpa_pods import UNKNOWN_GROUP, Step, VpaPods
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import UpdateMode

ALREADY_REQUESTED = "its containers already ask for what is recommended"
SKIPPED_REASON = "InPlaceResizeSkipped"
SKIPPED_MESSAGE = (
    "Previously recorded in-place update was infeasible, current recommendation is not lower than previous, "
    "skipping resize"
)
CandidateStep = Generator[Action, ActionResult, UpdateCandidate | None]
"""A step about one candidate; it returns the candidate if the pod should be evicted instead."""


@dataclass
class VpaResizes:
    """The resizes of one VPA in one loop."""

    update: VpaPods

    @property
    def _context(self) -> LoopContext:
        return self.update.context

    @property
    def _state(self) -> LoopState:
        return self.update.state

    def run(self) -> Step:
        """Revert outdated resizes, request new ones, and evict pods whose resize fails."""
        possible = [pod for pod in self.update.pods if self._is_possible(pod)]
        candidates = self.update.candidates(possible)
        wanted = {candidate.pod.metadata.key for candidate in candidates}
        for pod in possible:
            if pod.metadata.key not in wanted:
                yield from self._revert_outdated(pod)
        failed: list[UpdateCandidate] = []
        for candidate in candidates:
            to_evict = yield from self._resize(candidate)
            if to_evict is not None and self._may_be_evicted(to_evict):
                failed.append(to_evict)
        yield from VpaEvictions(self.update).evict(failed)

    def _is_possible(self, pod: Pod) -> bool:
        update = self.update
        if blocked := self._blocked(pod):
            update.skip(pod, blocked)
            return False
        earlier = update.infeasible_for(pod) if update.mode == UpdateMode.IN_PLACE else None
        recommended = update.vpa.status.recommendation
        if earlier is not None and not is_lower_anywhere(earlier.recommendation, recommended):
            update.skip(pod, "an earlier resize was infeasible and nothing recommended is lower now")
            self._state.emit(POD, pod.metadata.key, SKIPPED_REASON, SKIPPED_MESSAGE)
            return False
        return True

    def _blocked(self, pod: Pod) -> str:
        if pod.metadata.key not in self.update.members.creators:
            return UNKNOWN_GROUP
        if pod.status.phase == "Pending":
            return "it is Pending"
        return "" if self.update.vpa.status.recommendation is not None else "there is no recommendation yet"

    def _may_be_evicted(self, candidate: UpdateCandidate) -> bool:
        if self.update.mode != UpdateMode.IN_PLACE_OR_RECREATE:
            return False
        if candidate.priority.is_scale_up:
            return True
        self.update.skip(candidate.pod, f"{candidate.reason}; it is not evicted only to shrink")
        return False

    def _resize(self, candidate: UpdateCandidate) -> CandidateStep:
        pod = candidate.pod
        status = resize_status(pod, self._context.now)
        if status is ResizeStatus.IN_PROGRESS:
            reason = f"a resize is under way: {_describe(pod, status)}"
            return self._wait(candidate, RESIZE_TIMEOUTS[status], reason)
        if status is ResizeStatus.ERROR and lowers_memory_limit(pod):
            lower = self._plan_keeping_limits(pod)
            if lower is not None and lower.operations:
                return (yield from self._request(candidate, lower, is_refused=True))
        plan = self._plan(pod)
        if status in WAITING and not (plan.operations and self._is_outdated(pod, candidate)):
            return (yield from self._while_waiting(candidate, status))
        return (yield from self._request(candidate, plan))

    def _is_outdated(self, pod: Pod, candidate: UpdateCandidate) -> bool:
        return is_outdated(pod, candidate.recommendation, self._context.settings.min_change)

    def _while_waiting(self, candidate: UpdateCandidate, status: ResizeStatus) -> CandidateStep:
        pod = candidate.pod
        waits = f"its resize waits: {_describe(pod, status)}"
        if self.update.mode != UpdateMode.IN_PLACE:
            # The kubelet retries a refused decrease, as it does with a resize that it deferred.
            timeout = DEFERRED_TIMEOUT if lowers_memory_limit(pod) else RESIZE_TIMEOUTS.get(status)
            return self._wait(candidate, timeout, waits)
        if status is ResizeStatus.INFEASIBLE:
            self.update.remember_infeasible(pod)
        is_late = status is ResizeStatus.DEFERRED and self._state.waited(pod) > DEFERRED_TIMEOUT
        if is_late and restarts_containers(pod):
            # It would restart the pod at any moment, so no other pod may be disrupted while it waits.
            yield from self._revert(pod, f"it waited too long: {_describe(pod, status)}")
        else:
            self.update.skip(pod, waits)
        return None

    def _wait(
        self, candidate: UpdateCandidate, timeout: timedelta | None, reason: str
    ) -> UpdateCandidate | None:
        waited = self._state.waited(candidate.pod)
        is_in_time = timeout is not None and waited <= timeout
        if is_in_time or self.update.mode == UpdateMode.IN_PLACE:
            self.update.skip(candidate.pod, reason)
            return None
        return replace(candidate, reason=f"{candidate.reason}, and {reason}")

    def _revert_outdated(self, pod: Pod) -> Step:
        """Revert a waiting request if the pod's actual size is right for its current role."""
        status = resize_status(pod, self._context.now)
        if status not in WAITING or is_boosted(pod):
            return
        recommendation = self.update.sizing(pod).recommendation
        if not is_outdated(pod, recommendation, self._context.settings.min_change):
            self.update.skip(pod, f"its resize waits: {_describe(pod, status)}")
            return
        yield from self._revert(pod, OUTDATED)

    def _revert(self, pod: Pod, reason: str) -> Step:
        yield from revert_resize(pod, self.update.vpa, reason, self._state)

    def _request(
        self, candidate: UpdateCandidate, plan: ResizePlan, *, is_refused: bool = False
    ) -> CandidateStep:
        pod, update = candidate.pod, self.update
        if plan.refusal:
            update.skip_resize(pod, plan.refusal)
            return replace(candidate, reason=f"{candidate.reason}, and {plan.refusal}")
        if not plan.operations:
            update.skip(pod, ALREADY_REQUESTED)
            return None
        creator = update.members.creators[pod.metadata.key]
        blocker = self._state.disruption_blocker(
            pod, creator, restarts=restarts_containers(pod), is_urgent=candidate.is_urgent
        )
        if blocker:
            update.skip(pod, blocker)
            if blocker == NO_BUDGET and update.claim.level:
                self._state.short_of_budget.add(creator)
            return None
        refusals = _count_refusals(pod, plan, is_refused=is_refused)
        request = ResizeRequest(
            pod, update.vpa, plan, candidate.reason, refusals=refusals, is_refused=is_refused
        )
        result = yield from request_resize(request, self._state)
        if update.finish_resize(candidate, result, request.as_disruption(self._context.now)):
            return replace(candidate, reason=f"{candidate.reason}, and its resize in place failed")
        return None

    def _plan(self, pod: Pod) -> ResizePlan:
        plan = None
        if read_resize_annotation(pod).keeps_memory_limits(self._context.now):
            plan = self._plan_keeping_limits(pod)
        return plan or self.update.plan_resize(pod, self.update.sizing(pod).containers)

    def _plan_keeping_limits(self, pod: Pod) -> ResizePlan | None:
        """Plan to lower what can be lowered, or None if no limit would be lowered."""
        sizes = self.update.sizing(pod).containers
        for keep in (keep_limits, keep_memory):
            kept = keep(pod, sizes)
            if kept == sizes:
                return None
            plan = self.update.plan_resize(pod, kept)
            if not plan.refusal:
                return plan
        return ResizePlan()


def _count_refusals(pod: Pod, plan: ResizePlan, *, is_refused: bool) -> int:
    last = read_resize_annotation(pod)
    if is_refused:
        return last.refusals + 1
    is_retry = any(
        wanted.limits != container.resources.limits
        for container in pod.spec.containers
        if (wanted := plan.resources.get(container.name)) is not None
    )
    return last.refusals if last.refused_at is not None and is_retry else 0


def _describe(pod: Pod, status: ResizeStatus) -> str:
    return kubelet_message(pod) or status.value
