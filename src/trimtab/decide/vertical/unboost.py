"""Takes startup boosts back once they are over, in place, in every update mode.

A boosted pod is left out of all other updates: its requests are outside of the recommended range on purpose, and its
replacement would be boosted again. So its boost ends here, whatever the VPA's mode is: its CPU goes to what is recommended,
or back to what it was without a recommendation and in mode Off. Nothing else of the pod changes.
"""

from collections.abc import Generator
from typing import Final

from trimtab.decide.vertical.actions import Action, Outcome, Resize
from trimtab.decide.vertical.boost import BoostError, expired_boosts, next_end, resources_before_boost
from trimtab.decide.vertical.budget import is_boosted, is_resizing
from trimtab.decide.vertical.control import Claim, boosting_vpa
from trimtab.decide.vertical.controllers import creator_of
from trimtab.decide.vertical.currency import is_recommendation_current
from trimtab.decide.vertical.inplace import Resizing, restarts_containers
from trimtab.decide.vertical.ledger import phase_of
from trimtab.decide.vertical.loop_state import POD, LoopContext, LoopState
from trimtab.decide.vertical.progress import DONE_MESSAGE, DONE_REASON
from trimtab.decide.vertical.resize import ResizePlan, plan_resize, size_running_pod
from trimtab.decide.vertical.resize_request import DEEDS, Wish, request_resize, requested_by
from trimtab.decide.vertical.sizes import NOTHING, ContainerResources
from trimtab.model.pod import Pod
from trimtab.model.resources import CPU

BOOSTED: Final = "its CPU is boosted while it starts"
OVER: Final = "its startup boost is over"


def is_spared(claim: Claim, context: LoopContext) -> bool:
    """Return whether the VPA's boosted pods are left out of all other updates.

    Upstream spares them while VPA and gate say so; here a boost that was given is always taken back first.
    """
    if context.compat.disruptions_last_until_ready:
        return True
    return context.gates.cpu_startup_boost and claim.has_boost


def unboost(context: LoopContext, loop: LoopState) -> Generator[Action, Outcome, None]:
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
        if pod.metadata.namespace in ignored or not (claim and is_spared(claim, context)):
            continue
        why = _waits_for(pod, claim, context, loop)
        if why:
            loop.leave(pod, claim.key, why)
        else:
            yield from _take_back(pod, claim, context, loop)


def _waits_for(pod: Pod, claim: Claim, context: LoopContext, loop: LoopState) -> str:
    """Return why a boost is not taken back now; empty if it is."""
    if pod.status.phase == "Pending" or not expired_boosts(pod, claim.vpa, context.now):
        loop.look_again(next_end(pod, claim.vpa, context.now))
        return BOOSTED
    if not context.compat.disruptions_last_until_ready:
        return "a resize is under way" if is_resizing(pod) else ""
    if phase_of(pod, context.now) is Resizing.IN_PROGRESS:
        return "a resize is under way"
    if not restarts_containers(pod):
        return ""
    return loop.hindrance(pod, creator_of(pod), restarts=True, is_urgent=False)


def _take_back(
    pod: Pod, claim: Claim, context: LoopContext, loop: LoopState
) -> Generator[Action, Outcome, None]:
    plan = _plan(pod, claim, context)
    # A pod that has its size already may still carry the note, if that could not be taken away.
    is_due = plan.operations or (plan.annotations and context.compat.disruptions_last_until_ready)
    if plan.refusal or not is_due:
        loop.leave(pod, claim.key, plan.refusal or "what it had before its startup boost is not known")
        return
    if context.compat.disruptions_last_until_ready:
        outcome = yield from _request(pod, claim, plan, loop)
    else:
        outcome = yield Resize(pod, claim.vpa, plan, OVER)
        if outcome is Outcome.DONE:
            loop.tell(POD, pod.metadata.key, DONE_REASON, DONE_MESSAGE)
    # If it failed the next loop tries again: a boost is no reason to evict.
    loop.note(pod, claim.key, DEEDS.get(outcome, "resize failed"), OVER)


def _request(
    pod: Pod, claim: Claim, plan: ResizePlan, loop: LoopState
) -> Generator[Action, Outcome, Outcome]:
    if not plan.operations:
        return (yield Resize(pod, claim.vpa, plan, OVER))
    wish = Wish(pod, claim.vpa, plan, OVER)
    outcome = yield from request_resize(wish, loop)
    creator = creator_of(pod)
    if outcome.is_charged and creator is not None:
        loop.resized(pod, creator, requested_by(wish, loop))
    return outcome


def _plan(pod: Pod, claim: Claim, context: LoopContext) -> ResizePlan:
    ranges = context.ranges.of(pod.metadata.namespace)
    sizing = size_running_pod(pod, claim.vpa, ranges, context.compat)
    over = expired_boosts(pod, claim.vpa, context.now)
    is_current = not context.compat.needs_current_recommendation or is_recommendation_current(claim)
    try:
        sizes = [
            _unboosted(pod, container.name, sizes if is_current else NOTHING)
            if container.name in over
            else NOTHING
            for container, sizes in zip(pod.spec.containers, sizing.containers, strict=True)
        ]
        return plan_resize(pod, claim.vpa, sizes, context.now, context.compat)
    except BoostError:
        return ResizePlan()


def _unboosted(pod: Pod, container: str, recommended: ContainerResources) -> ContainerResources:
    """Return the CPU that is recommended, else the CPU before the boost; memory is not boosted."""
    cpu = _cpu_of(recommended)
    return _cpu_of(resources_before_boost(pod.metadata.annotations, container, cpu))


def _cpu_of(sizes: ContainerResources) -> ContainerResources:
    requests, limits = (
        {CPU: amounts[CPU]} if CPU in amounts else {} for amounts in (sizes.requests, sizes.limits)
    )
    return ContainerResources(requests, limits)
