"""Ends startup boosts in place once they are over, in every update mode.

A boosted pod is excluded from all other updates: its requests are outside the recommended range on purpose, and its
replacement would be boosted again. The exception is a pod that is OOM-killed, since it may never become Ready. When the
boost ends, the CPU becomes the recommended CPU. Without a recommendation and in mode Off it becomes the CPU before the
boost. Nothing else of the pod changes.

A boost whose VPA is deleted, or does not match the pod any more, ends as soon as the pod is Ready. Upstream never ends it.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from trimtab.decide.vertical.admission.startup_boost import (
    BoostError,
    expired_boosts,
    is_boosted,
    next_boost_end,
    resources_before_boost,
)
from trimtab.decide.vertical.control.claims import Trust, VpaClaim, VPAIndex
from trimtab.decide.vertical.control.control import Control, control_of
from trimtab.decide.vertical.control.controllers import creator_of, owner_of
from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.in_place.resize_request import (
    DONE_MESSAGE,
    DONE_REASON,
    ResizeRequest,
    request_resize,
)
from trimtab.decide.vertical.update.loop_state import POD, LoopContext, LoopState
from trimtab.decide.vertical.update.resize.plan import ResizePlan, plan_sizes, size_running_pod
from trimtab.decide.vertical.update.resize.status import (
    ResizeStatus,
    is_resizing,
    resize_status,
    restarts_containers,
)
from trimtab.decide.vertical.update.vpa_pods import BOOSTED, RESIZE_ACTIONS, Step, excludes_boosted_pods
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import CPU, Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

OVER: Final = "its startup boost is over"
LEFT_OVER: Final = "no VPA boosts its start any more"


@dataclass(frozen=True)
class BoostedPod:
    """A boosted pod and the VPA that ends its boost, or None if no VPA is left."""

    pod: Pod
    claim: VpaClaim | None

    @property
    def vpa(self) -> VerticalPodAutoscaler:
        """Return the VPA, or an empty one."""
        if self.claim is not None:
            return self.claim.vpa
        return VerticalPodAutoscaler(metadata=ObjectMeta(namespace=self.pod.metadata.namespace))

    @property
    def vpa_key(self) -> str | None:
        """Return the VPA's `namespace/name`."""
        return self.claim.key if self.claim else None

    @property
    def reason(self) -> str:
        """Return why the boost ends."""
        return OVER if self.claim else LEFT_OVER


def end_startup_boosts(context: LoopContext, loop: LoopState) -> Step:
    """Resize each pod whose startup boost is over."""
    if not (context.gates.cpu_startup_boost or context.rules.ours):
        return
    observation = context.observation
    pods = [pod for pod in context.live if is_boosted(pod)]
    if not pods:
        return
    index, owners = observation.index(context.gates, context.rules), observation.owners()
    ignored = frozenset(context.settings.ignored_namespaces)
    for pod in pods:
        if pod.metadata.key in loop.urgent_boosts or pod.metadata.namespace in ignored:
            continue
        control = control_of(pod, index, owners, observation.nodes)
        if not _may_end(pod, control, context, index):
            continue
        boosted = BoostedPod(pod, control.booster)
        if blocker := _blocker(boosted, context, loop):
            loop.skip(pod, boosted.vpa_key, blocker)
        else:
            yield from _end(boosted, context, loop)


def _may_end(pod: Pod, control: Control, context: LoopContext, index: VPAIndex) -> bool:
    """Return whether this updater ends the boost.

    It does not while the boost's VPA may exist and is only not found.
    """
    if control.booster is not None:
        return excludes_boosted_pods(control.booster, context)
    if control.undecided or not context.rules.ours:
        return False
    if control.target is None:
        return owner_of(pod) is None  # an unknown owner may be a target
    return all(other.selector is not None for other in index.claims_on(control.target))


def _blocker(boosted: BoostedPod, context: LoopContext, loop: LoopState) -> str:
    """Return why a boost does not end now, or empty if it does."""
    pod = boosted.pod
    if pod.status.phase == "Pending" or not expired_boosts(pod, boosted.vpa, context.now):
        loop.requeue(next_boost_end(pod, boosted.vpa, context.now))
        return BOOSTED
    if not context.rules.ours:
        return "a resize is under way" if is_resizing(pod) else ""
    if resize_status(pod, context.now) is ResizeStatus.IN_PROGRESS:
        return "a resize is under way"
    if not restarts_containers(pod):
        return ""
    return loop.disruption_blocker(pod, creator_of(pod), restarts=True, is_urgent=False)


def _end(boosted: BoostedPod, context: LoopContext, loop: LoopState) -> Step:
    pod, plan = boosted.pod, _plan(boosted, context)
    # A pod may have its size already and still carry the annotation, if removing it failed.
    is_due = plan.operations or (plan.annotations_after and context.rules.ours)
    if plan.refusal or not is_due:
        reason = plan.refusal or "what it had before its startup boost is not known"
        loop.skip(pod, boosted.vpa_key, reason)
        return
    if context.rules.ours:
        result = yield from _request(boosted, plan, loop)
    else:
        result = yield Resize(pod, boosted.vpa, plan, boosted.reason)
        if result is ActionResult.DONE:
            loop.emit(POD, pod.metadata.key, DONE_REASON, DONE_MESSAGE)
    # After a failure the next loop tries again. A boost is no reason to evict.
    if plan.operations or not result.is_disruption:
        action = RESIZE_ACTIONS.get(result, "resize failed")
        loop.set_result(pod, boosted.vpa_key, action, boosted.reason)
    else:
        loop.skip(pod, boosted.vpa_key, f"{boosted.reason}; its size stays as it is")


def _request(
    boosted: BoostedPod, plan: ResizePlan, loop: LoopState
) -> Generator[Action, ActionResult, ActionResult]:
    if not plan.operations:
        return (yield Resize(boosted.pod, boosted.vpa, plan, boosted.reason))
    request = ResizeRequest(boosted.pod, boosted.vpa, plan, boosted.reason, ends_boost=True)
    result = yield from request_resize(request, loop)
    creator = creator_of(boosted.pod)
    if result.is_disruption and creator is not None:
        loop.record_resize(boosted.pod, creator, request.as_disruption(loop.context.now))
    return result


def _plan(boosted: BoostedPod, context: LoopContext) -> ResizePlan:
    pod, vpa = boosted.pod, boosted.vpa
    ranges, server_rules = context.ranges.of(pod.metadata.namespace), context.observation.server_rules
    sizing = size_running_pod(pod, vpa, ranges, context.rules, server_rules)
    expired = expired_boosts(pod, vpa, context.now)
    is_recommended = _is_recommended(boosted, context)
    try:
        sizes = [
            _without_boost(pod, container.name, size if is_recommended else NOTHING)
            if container.name in expired
            else None
            for container, size in zip(pod.spec.containers, sizing.containers, strict=True)
        ]
        return plan_sizes(pod, sizes, expired, context.rules, server_rules)
    except BoostError:
        return ResizePlan()


def _is_recommended(boosted: BoostedPod, context: LoopContext) -> bool:
    """Return whether the VPA's recommendation is for this pod, and applied."""
    if boosted.claim is None or boosted.claim.mode == UpdateMode.OFF:
        return False
    return not context.rules.ours or boosted.claim.trust is Trust.ALL


def _without_boost(pod: Pod, container: str, recommended: ContainerResources) -> ContainerResources:
    """Return the recommended CPU, else the CPU before the boost."""
    return _cpu_of(resources_before_boost(pod.metadata.annotations, container, _cpu_of(recommended)))


def _cpu_of(sizes: ContainerResources) -> ContainerResources:
    requests, limits = (
        {CPU: amounts[CPU]} if CPU in amounts else {} for amounts in (sizes.requests, sizes.limits)
    )
    return ContainerResources(requests, limits)
