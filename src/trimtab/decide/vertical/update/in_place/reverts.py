"""Reverts waiting resizes that are not wanted any more: the spec is set to the pod's actual size.

Such a request comes from the VPA of another role, from an older recommendation, or from before the VPA's mode was
edited. Until it is reverted, the kubelet may carry it out at any moment.
"""

from collections.abc import Generator
from datetime import datetime

from trimtab.decide.vertical.admission.startup_boost import is_boosted
from trimtab.decide.vertical.update.actions import Action, ActionResult
from trimtab.decide.vertical.update.disruption_ledger import DisruptionKind
from trimtab.decide.vertical.update.eligibility import update_priority
from trimtab.decide.vertical.update.in_place.resize_request import ResizeRequest, request_resize
from trimtab.decide.vertical.update.loop_state import LoopState
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, read_resize_annotation
from trimtab.decide.vertical.update.resize.memory_limits import actual_sizes, as_requested
from trimtab.decide.vertical.update.resize.plan import plan_resize
from trimtab.decide.vertical.update.resize.status import WAITING, is_resizing, kubelet_message, resize_status
from trimtab.decide.vertical.update.vpa_pods import RESIZE_ACTIONS, Step, VpaPods
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import RecommendedPodResources, VerticalPodAutoscaler

OUTDATED = "what it asks for is not recommended any more"


def has_waiting_request(pod: Pod, now: datetime) -> bool:
    """Return whether a resize that Trimtab requested waits, other than the end of a boost."""
    last = read_resize_annotation(pod)
    return not last.ends_boost and last.matches_spec(pod) and resize_status(pod, now) in WAITING


def has_leftovers(pod: Pod) -> bool:
    """Return whether the pod has a boost, waiting request or annotation that outlives its VPA."""
    if is_boosted(pod) or REFUSED_ANNOTATION in pod.metadata.annotations:
        return True
    return RESIZE_ANNOTATION in pod.metadata.annotations and is_resizing(pod)


def is_outdated(pod: Pod, recommendation: RecommendedPodResources | None, min_change: float) -> bool:
    """Return whether the pod's spec is too far from the recommendation to go on waiting for it."""
    priority = update_priority(as_requested(pod), recommendation)
    return priority.is_outside_range or priority.resource_diff >= min_change


def revert_resize(pod: Pod, vpa: VerticalPodAutoscaler, reason: str, state: LoopState) -> Step:
    """Request the pod's actual size, so that no resize waits any more."""
    now = state.context.now
    plan = plan_resize(
        pod, vpa, actual_sizes(pod), now, state.context.rules, state.context.observation.server_rules
    )
    reason = f"its resize waits ({kubelet_message(pod)}), and {reason}"
    if plan.refusal or not plan.operations:
        state.skip(pod, vpa.key, reason)
        return
    request = ResizeRequest(pod, vpa, plan, reason, DisruptionKind.REVERT)
    result = yield from request_resize(request, state)
    action = "resize failed"
    if result.is_disruption:
        state.disruptions[pod.metadata.uid] = request.as_disruption(now)
        state.resizes_first_seen.pop(pod.metadata.key, None)
        action = RESIZE_ACTIONS[result] if result is ActionResult.UNKNOWN else "resize taken back"
    state.set_result(pod, vpa.key, action, reason)


def revert_all(update: VpaPods, reason: str) -> Step:
    """Revert every waiting request on the VPA's pods."""
    for pod in update.pods:
        if _can_revert(pod, update):
            yield from revert_resize(pod, update.vpa, reason, update.state)


def revert_outdated(update: VpaPods) -> Generator[Action, ActionResult, frozenset[str]]:
    """Revert requests that are not recommended any more, and return the keys of their pods."""
    if update.vpa.status.recommendation is None:
        return frozenset()
    reverted = set()
    min_change = update.context.settings.min_change
    for pod in update.pods:
        if _can_revert(pod, update) and is_outdated(pod, update.sizing(pod).recommendation, min_change):
            reverted.add(pod.metadata.key)
            yield from revert_resize(pod, update.vpa, OUTDATED, update.state)
    return frozenset(reverted)


def _can_revert(pod: Pod, update: VpaPods) -> bool:
    if not update.context.rules.ours or is_boosted(pod):
        return False
    return has_waiting_request(pod, update.context.now)
