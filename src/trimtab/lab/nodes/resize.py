"""Resizing a running pod in place: granted, deferred or infeasible, then carried out (pure; KEP-1287).

The spec holds what is wanted, `allocatedResources` what the node granted, `resources` what the container runs with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import RunContainer, RunContainerStatus, RunPod
from trimtab.lab.controllers.base.status_writer import condition
from trimtab.lab.nodes.capacity import Amount, allocated_to, wanted_by
from trimtab.lab.nodes.pod_lifecycle import KILLED, LifecycleStep, Timing
from trimtab.lab.nodes.pod_status import pod_status
from trimtab.model.core.meta import Condition
from trimtab.model.core.pod import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    PodCondition,
    ResourceRequirements,
)
from trimtab.model.json import wire

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
#: Seconds until a memory limit that is below the usage is tried again.
RETRY_SECONDS = 10.0
_OWN = (
    PENDING,
    IN_PROGRESS,
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
    "PodScheduled",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node has, what its other pods were granted, and what the pod's containers use.

    `memory` is in bytes and includes page cache, as the usage by which a kubelet decides does.
    """

    capacity: Amount
    others: Amount
    memory: Mapping[str, int]


def wants_resize(pod: RunPod) -> bool:
    """Tell whether a running pod differs from its spec, or still says that it did."""
    statuses = {one.name: one for one in pod.status.container_statuses}
    differs = any(
        (status := statuses.get(one.name)) is not None
        and status.resources is not None
        and status.resources != one.resources
        for one in pod.spec.containers
    )
    return differs or any(one.type in (PENDING, IN_PROGRESS) for one in pod.status.conditions)


def resize_step(pod: RunPod, around: Surroundings, timing: Timing, now: datetime) -> LifecycleStep:
    """Return the next step of a resize."""
    now = now.replace(microsecond=0)
    if _is_done(pod):
        return LifecycleStep(pod_status(pod, pod.status.container_statuses, now, _others(pod)))
    is_granted = allocated_to(pod) == wanted_by(pod)
    progress = pod.status.condition(IN_PROGRESS)
    if is_granted and progress is not None and pod.status.condition(PENDING) is None:
        since = progress.last_transition_time or now
        wait = (since + timedelta(seconds=timing.resize_seconds) - now).total_seconds()
        return LifecycleStep(wait=wait) if wait > 0 else _carry_out(pod, around, timing, now)
    refusal = _refusal(pod, around)
    if refusal is not None:
        return _refuse(pod, refusal, now)
    granted = [replace(one, allocated_resources=_spec(pod, one).resources.requests) for one in _statuses(pod)]
    going = _condition(pod, (), IN_PROGRESS, now)
    return LifecycleStep(pod_status(pod, granted, now, [*_others(pod), going]))


def _is_done(pod: RunPod) -> bool:
    return all(
        one.resources == _spec(pod, one).resources for one in _statuses(pod) if one.resources is not None
    )


def _refusal(pod: RunPod, around: Surroundings) -> tuple[str, str] | None:
    """Return reason and message when the node cannot grant what is wanted, ever or now."""
    wanted = wanted_by(pod)
    if around.capacity.lacks(Amount(), wanted):
        name = around.capacity.lacks(Amount(), wanted)[0]
        asked, has = _named(wanted, name), _named(around.capacity, name)
        return "Infeasible", f"Node didn't have enough capacity: {name}, requested: {asked}, capacity: {has}"
    lacking = around.capacity.lacks(around.others, wanted)
    if lacking:
        name = lacking[0]
        asked, used = _named(wanted, name), _named(around.others, name)
        has = _named(around.capacity, name)
        message = (
            f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {has}"
        )
        return "Deferred", message
    return None


def _named(amount: Amount, name: str) -> int:
    return {"cpu": amount.cpu, "memory": amount.memory, "pods": amount.pods}[name]


def _refuse(pod: RunPod, refusal: tuple[str, str], now: datetime) -> LifecycleStep:
    reason, message = refusal
    known = pod.status.condition(PENDING)
    if known is not None and (known.reason, known.message) == refusal and _is_about(pod, known):
        return LifecycleStep()
    pending = _condition(pod, pod.status.conditions, PENDING, now, reason, message)
    return LifecycleStep(pod_status(pod, _statuses(pod), now, [*_others(pod), pending]))


def _carry_out(pod: RunPod, around: Surroundings, timing: Timing, now: datetime) -> LifecycleStep:
    if in_use := list(_limits_in_use(pod, around.memory)):
        return _cannot_shrink(pod, in_use, now)
    resized = [_resized(pod, one, timing, now) for one in _statuses(pod)]
    return LifecycleStep(pod_status(pod, resized, now, _others(pod)))


def _limits_in_use(pod: RunPod, memory: Mapping[str, int]) -> Iterator[str]:
    """Yield what a kubelet says of each memory limit that would fall to the usage or below it."""
    wanted = [one.resources.limits.get("memory") for one in pod.spec.containers]
    given = [one.resources.limits.get("memory") if one.resources else None for one in _statuses(pod)]
    used = sum(memory.values())
    if all(wanted) and all(given):
        limit, before = (sum(one.value() for one in limits if one) for limits in (wanted, given))
        if limit < before and used >= limit:
            yield f"attempting to set pod memory limit ({limit}) below current usage ({used})"
    for one in _statuses(pod):
        asked = _spec(pod, one).resources.limits.get("memory")
        has = one.resources.limits.get("memory") if one.resources is not None else None
        is_lower = asked is not None and (has is None or asked < has)
        if asked is not None and is_lower and memory.get(one.name, 0) >= asked.value():
            words = f"memory limit ({asked.value()}) below current usage ({memory[one.name]})"
            yield f'attempting to set container "{one.name}" {words}'


def _cannot_shrink(pod: RunPod, in_use: list[str], now: datetime) -> LifecycleStep:
    joined = in_use[0] if len(in_use) == 1 else f"[{', '.join(in_use)}]"
    known = pod.status.condition(IN_PROGRESS)
    if known is not None and known.reason == "Error" and _is_about(pod, known):
        return LifecycleStep(wait=RETRY_SECONDS)
    message = f"cannot decrease memory limits: {joined}"
    failing = _condition(pod, pod.status.conditions, IN_PROGRESS, now, "Error", message)
    return LifecycleStep(pod_status(pod, _statuses(pod), now, [*_others(pod), failing]), wait=RETRY_SECONDS)


def _condition(
    pod: RunPod, known: Iterable[Condition], kind: str, now: datetime, reason: str = "", message: str = ""
) -> Json:
    """Return a condition about the pod's present spec."""
    made = condition(known, kind, holds=True, reason=reason, message=message, now=now)
    return {**made, "observedGeneration": pod.metadata.generation} if pod.metadata.generation else made


def _is_about(pod: RunPod, known: PodCondition) -> bool:
    return known.observed_generation in (None, pod.metadata.generation)


def _resized(pod: RunPod, one: RunContainerStatus, timing: Timing, now: datetime) -> RunContainerStatus:
    container = _spec(pod, one)
    wanted = container.resources
    if one.resources == wanted:
        return one
    after = replace(one, resources=wanted, allocated_resources=wanted.requests)
    if not _restarts(container, one.resources or ResourceRequirements(), wanted):
        return after
    begun = one.state.running.started_at if one.state.running is not None else None
    ended = ContainerStateTerminated(exit_code=KILLED, reason="Error", started_at=begun, finished_at=now)
    return replace(
        after,
        ready=timing.ready_seconds <= 0,
        started=timing.ready_seconds <= 0,
        restart_count=one.restart_count + 1,
        state=ContainerState(running=ContainerStateRunning(started_at=now)),
        last_state=ContainerState(terminated=ended),
    )


def _restarts(container: RunContainer, before: ResourceRequirements, after: ResourceRequirements) -> bool:
    """Tell whether a changed resource asks for a restart of the container."""
    return any(
        policy.restart_policy == "RestartContainer"
        and (
            before.requests.get(policy.resource_name) != after.requests.get(policy.resource_name)
            or before.limits.get(policy.resource_name) != after.limits.get(policy.resource_name)
        )
        for policy in container.resize_policy
    )


def _spec(pod: RunPod, one: RunContainerStatus) -> RunContainer:
    return next(container for container in pod.spec.containers if container.name == one.name)


def _statuses(pod: RunPod) -> Sequence[RunContainerStatus]:
    return pod.status.container_statuses


def _others(pod: RunPod) -> list[Json]:
    return [wire.to_builtins(one) for one in pod.status.conditions if one.type not in _OWN]
