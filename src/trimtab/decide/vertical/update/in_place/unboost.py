"""Takes startup boosts back once they are over, in place, in every update mode.

A boosted pod is left out of all other updates: its requests are outside of the recommended range on purpose, and its
replacement would be boosted again. Only one that is killed for want of memory is not, since it may never be Ready. So its
boost ends here, whatever the VPA's mode is: its CPU goes to what is recommended, or back to what it was without a
recommendation and in mode Off. Nothing else of the pod changes.

A boost whose VPA is gone, or does not match the pod any more, ends as soon as the pod is Ready. Upstream leaves it for good.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from trimtab.decide.vertical.admission.startup_boost import (
    BoostError,
    expired_boosts,
    next_end,
    resources_before_boost,
)
from trimtab.decide.vertical.control.control import VpaClaim, VPAIndex, boosting_vpa
from trimtab.decide.vertical.control.controllers import (
    ControllerIndex,
    creator_of,
    owner_of,
    topmost_controller,
)
from trimtab.decide.vertical.control.selector_hash import is_recommendation_current
from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.disruption_budget import is_boosted, is_resizing
from trimtab.decide.vertical.update.disruption_ledger import phase_of
from trimtab.decide.vertical.update.in_place.group_status import Resizing, restarts_containers
from trimtab.decide.vertical.update.in_place.progress import DONE_MESSAGE, DONE_REASON
from trimtab.decide.vertical.update.in_place.resize import (
    ResizePlan,
    plan_sizes,
    size_running_pod,
)
from trimtab.decide.vertical.update.in_place.resize_request import (
    DEEDS,
    Wish,
    request_resize,
    requested_by,
)
from trimtab.decide.vertical.update.loop_state import POD, LoopContext, LoopState
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import CPU, Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

BOOSTED: Final = "its CPU is boosted while it starts"
OVER: Final = "its startup boost is over"
LEFT_OVER: Final = "no VPA boosts its start any more"


@dataclass(frozen=True)
class Boost:
    """A boosted pod, and the VPA that ends its boost; None if no VPA has to do with the pod any more."""

    pod: Pod
    claim: VpaClaim | None

    @property
    def vpa(self) -> VerticalPodAutoscaler:
        """Return the VPA; in its place one that recommends nothing and boosts nothing."""
        if self.claim is not None:
            return self.claim.vpa
        return VerticalPodAutoscaler(metadata=ObjectMeta(namespace=self.pod.metadata.namespace))

    @property
    def key(self) -> str | None:
        """Return the VPA's `namespace/name`."""
        return self.claim.key if self.claim else None

    @property
    def reason(self) -> str:
        """Return why the boost ends."""
        return OVER if self.claim else LEFT_OVER


def is_spared(claim: VpaClaim, context: LoopContext) -> bool:
    """Return whether the VPA's boosted pods are left out of all other updates.

    Upstream spares them while VPA and gate say so; here a boost that was given is always taken back first.
    """
    if context.compat.disruptions_last_until_ready:
        return True
    return context.gates.cpu_startup_boost and claim.has_boost


def unboost(context: LoopContext, loop: LoopState) -> Generator[Action, ActionResult, None]:
    """Resize each pod whose startup boost is over."""
    if not (context.gates.cpu_startup_boost or context.compat.disruptions_last_until_ready):
        return
    observation = context.observation
    boosted = [pod for pod in context.live if is_boosted(pod)]
    if not boosted:
        return
    index, owners = observation.index(context.gates, context.compat), observation.owners()
    ignored = frozenset(context.settings.ignored_namespaces)
    for pod in boosted:
        claim = boosting_vpa(pod, index, owners, observation.nodes).claim
        if pod.metadata.key in loop.urgent_boosts:
            continue
        if pod.metadata.namespace in ignored or not _may_end(pod, claim, context, index, owners):
            continue
        boost = Boost(pod, claim)
        why = _waits_for(boost, context, loop)
        if why:
            loop.leave(pod, boost.key, why)
        else:
            yield from _take_back(boost, context, loop)


def _may_end(
    pod: Pod, claim: VpaClaim | None, context: LoopContext, index: VPAIndex, owners: ControllerIndex
) -> bool:
    """Return whether the boost is for us to end; not while its VPA may be there and is only not found."""
    if claim is not None:
        return is_spared(claim, context)
    if not context.compat.disruptions_last_until_ready:
        return False
    target = topmost_controller(pod, owners)
    if target is None:
        return owner_of(pod) is None  # an owner that is not known may be a target
    return all(each.selector is not None for each in index.claims_on(target))


def _waits_for(boost: Boost, context: LoopContext, loop: LoopState) -> str:
    """Return why a boost is not taken back now; empty if it is."""
    pod = boost.pod
    if pod.status.phase == "Pending" or not expired_boosts(pod, boost.vpa, context.now):
        loop.look_again(next_end(pod, boost.vpa, context.now))
        return BOOSTED
    if not context.compat.disruptions_last_until_ready:
        return "a resize is under way" if is_resizing(pod) else ""
    if phase_of(pod, context.now) is Resizing.IN_PROGRESS:
        return "a resize is under way"
    if not restarts_containers(pod):
        return ""
    return loop.hindrance(pod, creator_of(pod), restarts=True, is_urgent=False)


def _take_back(boost: Boost, context: LoopContext, loop: LoopState) -> Generator[Action, ActionResult, None]:
    pod, plan = boost.pod, _plan(boost, context)
    # A pod that has its size already may still carry the note, if that could not be taken away.
    is_due = plan.operations or (plan.annotations and context.compat.disruptions_last_until_ready)
    if plan.refusal or not is_due:
        loop.leave(pod, boost.key, plan.refusal or "what it had before its startup boost is not known")
        return
    if context.compat.disruptions_last_until_ready:
        outcome = yield from _request(boost, plan, loop)
    else:
        outcome = yield Resize(pod, boost.vpa, plan, boost.reason)
        if outcome is ActionResult.DONE:
            loop.tell(POD, pod.metadata.key, DONE_REASON, DONE_MESSAGE)
    # If it failed the next loop tries again: a boost is no reason to evict.
    if plan.operations or not outcome.is_charged:
        loop.note(pod, boost.key, DEEDS.get(outcome, "resize failed"), boost.reason)
    else:
        loop.leave(pod, boost.key, f"{boost.reason}; its size stays as it is")


def _request(
    boost: Boost, plan: ResizePlan, loop: LoopState
) -> Generator[Action, ActionResult, ActionResult]:
    if not plan.operations:
        return (yield Resize(boost.pod, boost.vpa, plan, boost.reason))
    wish = Wish(boost.pod, boost.vpa, plan, boost.reason, ends_boost=True)
    outcome = yield from request_resize(wish, loop)
    creator = creator_of(boost.pod)
    if outcome.is_charged and creator is not None:
        loop.resized(boost.pod, creator, requested_by(wish, loop))
    return outcome


def _plan(boost: Boost, context: LoopContext) -> ResizePlan:
    pod, vpa = boost.pod, boost.vpa
    sizing = size_running_pod(pod, vpa, context.ranges.of(pod.metadata.namespace), context.compat)
    over = expired_boosts(pod, vpa, context.now)
    try:
        sizes = [
            _unboosted(pod, container.name, sizes if _is_recommended(boost, context) else NOTHING)
            if container.name in over
            else None
            for container, sizes in zip(pod.spec.containers, sizing.containers, strict=True)
        ]
        return plan_sizes(pod, sizes, over, context.compat)
    except BoostError:
        return ResizePlan()


def _is_recommended(boost: Boost, context: LoopContext) -> bool:
    """Return whether the VPA's recommendation is for this pod, and applied."""
    if boost.claim is None or boost.claim.mode == UpdateMode.OFF:
        return False
    return not context.compat.needs_current_recommendation or is_recommendation_current(boost.claim)


def _unboosted(pod: Pod, container: str, recommended: ContainerResources) -> ContainerResources:
    """Return the CPU that is recommended, else the CPU before the boost; memory is not boosted."""
    cpu = _cpu_of(recommended)
    return _cpu_of(resources_before_boost(pod.metadata.annotations, container, cpu))


def _cpu_of(sizes: ContainerResources) -> ContainerResources:
    requests, limits = (
        {CPU: amounts[CPU]} if CPU in amounts else {} for amounts in (sizes.requests, sizes.limits)
    )
    return ContainerResources(requests, limits)
