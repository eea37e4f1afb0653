"""Evictions of one VPA's pods, as far as budget and eviction limits allow."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.decide.vertical.update.actions import ActionResult, Evict
from trimtab.decide.vertical.update.eligibility import UpdateCandidate
from trimtab.decide.vertical.update.eviction_limits import with_backoff
from trimtab.decide.vertical.update.loop_state import NO_BUDGET, POD, VPA
from trimtab.decide.vertical.update.resize.status import RESIZE_TIMEOUTS, kubelet_message, resize_status
from trimtab.decide.vertical.update.upstream_restrictions import can_evict
from trimtab.decide.vertical.update.vpa_pods import IN_PLACE_MODES, RATE_LIMITED, UNKNOWN_GROUP, Step, VpaPods
from trimtab.model.core.pod import Pod

_ACTIONS = {
    ActionResult.DONE: "evicted",
    ActionResult.DRY_RUN: "would evict",
    ActionResult.UNKNOWN: "eviction not answered",
}
"""The action of the pod's result, if the eviction counts as a disruption."""


@dataclass
class VpaEvictions:
    """The evictions of one VPA in one loop."""

    update: VpaPods

    def run(self, reverted: frozenset[str]) -> Step:
        """Evict the pods that should change, except those whose resize was reverted in this loop."""
        possible = []
        for pod in self.update.pods:
            if pod.metadata.key in reverted:
                continue
            if self.update.context.rules.ours or not self._blocker(pod):
                possible.append(pod)
            else:
                self.update.skip(pod, NO_BUDGET)
        yield from self.evict(self.update.candidates(possible))

    def evict(self, candidates: Iterable[UpdateCandidate]) -> Step:
        """Evict these pods as far as budget and limits allow."""
        update = self.update
        for candidate in candidates:
            pod = candidate.pod
            update.state.to_evict.add(pod.metadata.key)
            if blocker := self._blocker(pod, is_urgent=candidate.is_urgent):
                update.skip(pod, blocker)
            elif limit := update.state.eviction_limit(pod, update.members.creators[pod.metadata.key]):
                update.skip(pod, limit)
            else:
                result = yield Evict(pod, update.vpa, candidate.reason)
                self._after(candidate, result)

    def _blocker(self, pod: Pod, *, is_urgent: bool = False) -> str:
        """Return why a pod cannot be evicted now, or empty if it can."""
        if not self.update.context.rules.ours:
            return "" if self._can_evict_as_upstream(pod) else NO_BUDGET
        status = self.update.group_status(pod)
        if not status.is_member or (status.is_below_minimum and pod.status.phase != "Pending"):
            return UNKNOWN_GROUP
        if self.update.mode not in IN_PLACE_MODES and (waits := self._waits_for_resize(pod)):
            return waits
        creator = self.update.members.creators[pod.metadata.key]
        return self.update.state.disruption_blocker(pod, creator, restarts=True, is_urgent=is_urgent)

    def _can_evict_as_upstream(self, pod: Pod) -> bool:
        first_seen = self.update.state.resizes_first_seen
        key, now = pod.metadata.key, self.update.context.now
        is_allowed, moment = can_evict(pod, self.update.group_status(pod), first_seen.get(key), now)
        if moment is not None:
            first_seen[key] = moment
        return is_allowed

    def _waits_for_resize(self, pod: Pod) -> str:
        """Return that a resize by another program is under way, until it times out."""
        status = resize_status(pod, self.update.context.now)
        timeout = RESIZE_TIMEOUTS.get(status)
        if timeout is None or self.update.state.waited(pod) > timeout:
            return ""
        return f"a resize is under way: {kubelet_message(pod) or status}"

    def _after(self, candidate: UpdateCandidate, result: ActionResult) -> None:
        pod, update, state = candidate.pod, self.update, self.update.state
        if result is ActionResult.RATE_LIMITED:
            update.skip(pod, RATE_LIMITED)
            return
        if not result.is_disruption:
            update.set_result(pod, "eviction failed", candidate.reason)
            if result in (ActionResult.REFUSED, ActionResult.UNREPLACEABLE):
                settings, now = update.context.settings.eviction_limits, update.context.now
                state.eviction_limits = with_backoff(state.eviction_limits, pod.metadata.uid, now, settings)
            return
        if result is ActionResult.DONE:
            message = "Pod was evicted by VPA Updater to apply resource recommendation."
            state.emit(POD, pod.metadata.key, "EvictedByVPA", message)
            message = f"VPA Updater evicted Pod {pod.name} to apply resource recommendation."
            state.emit(VPA, update.claim.key, "EvictedPod", message)
        update.set_result(pod, _ACTIONS[result], candidate.reason)
        state.record_eviction(pod, update.members.creators[pod.metadata.key], update.claim.key)
