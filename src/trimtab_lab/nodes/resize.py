"""In-place resize of a running pod (KEP-1287): allocated, deferred or infeasible, then actuated.

The spec has the desired resources, `allocatedResources` what the node has granted, and `resources` what the container
runs with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from trimtab.cluster.resource import Json
from trimtab.model.core.pod import (
    ContainerState,
    ContainerStateRunning,
    PodCondition,
    ResourceRequirements,
)
from trimtab.model.json import wire
from trimtab_lab.controllers.kinds import LabContainer, LabContainerStatus, LabPod
from trimtab_lab.controllers.pods import condition
from trimtab_lab.nodes.pod_lifecycle import (
    DERIVED_CONDITIONS,
    SIGKILL_EXIT_CODE,
    LifecycleStep,
    Timing,
    pod_status,
    terminated_state,
)
from trimtab_lab.nodes.scheduler import Resources, allocated_resources, spec_requests

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
#: Seconds until the kubelet retries a memory limit below the usage.
RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ResizeInputs:
    """The node's allocatable resources, what its other pods have, and the usage of the pod's containers.

    `memory` is in bytes and includes page cache, as in the kubelet's check of memory limits.
    """

    allocatable: Resources
    others: Resources
    memory: Mapping[str, int]


def needs_resize(pod: LabPod) -> bool:
    """Return whether a running pod differs from its spec or still has a condition of a resize."""
    statuses = {status.name: status for status in pod.status.container_statuses}
    differs = any(
        (status := statuses.get(container.name)) is not None
        and status.resources is not None
        and status.resources != container.resources
        for container in pod.spec.containers
    )
    return differs or any(former.type in (PENDING, IN_PROGRESS) for former in pod.status.conditions)


def resize_step(pod: LabPod, inputs: ResizeInputs, timing: Timing, now: datetime) -> LifecycleStep:
    now = now.replace(microsecond=0)
    if _is_done(pod):
        return _step(pod, pod.status.container_statuses, now)
    is_allocated = allocated_resources(pod) == spec_requests(pod)
    progress = pod.status.condition(IN_PROGRESS)
    if is_allocated and progress is not None and pod.status.condition(PENDING) is None:
        since = progress.last_transition_time or now
        wait = (since + timedelta(seconds=timing.resize_seconds) - now).total_seconds()
        return LifecycleStep(wait=wait) if wait > 0 else _actuate(pod, inputs, timing, now)
    rejection = _rejection(pod, inputs)
    if rejection is not None:
        return _reject(pod, rejection, now)
    allocated = [
        replace(status, allocated_resources=_container(pod, status).resources.requests)
        for status in pod.status.container_statuses
    ]
    return _step(pod, allocated, now, _condition(pod, (), IN_PROGRESS, now))


def _step(
    pod: LabPod, containers: Sequence[LabContainerStatus], now: datetime, *conditions: Json
) -> LifecycleStep:
    """Return a step that writes these containers, and these as the only conditions of a resize."""
    own = (PENDING, IN_PROGRESS, *DERIVED_CONDITIONS)
    others = [wire.to_builtins(former) for former in pod.status.conditions if former.type not in own]
    return LifecycleStep(pod_status(pod, containers, now, [*others, *conditions]))


def _is_done(pod: LabPod) -> bool:
    return all(
        status.resources == _container(pod, status).resources
        for status in pod.status.container_statuses
        if status.resources is not None
    )


def _rejection(pod: LabPod, inputs: ResizeInputs) -> tuple[str, str] | None:
    """Return reason and message if the node cannot allocate the resources, now or ever."""
    node, requested = inputs.allocatable, spec_requests(pod)
    for name in node.insufficient(Resources(), requested):
        amounts = f"requested: {requested.amount(name)}, capacity: {node.amount(name)}"
        return "Infeasible", f"Node didn't have enough capacity: {name}, {amounts}"
    for name in node.insufficient(inputs.others, requested):
        used = inputs.others.amount(name)
        amounts = f"requested: {requested.amount(name)}, used: {used}, capacity: {node.amount(name)}"
        return "Deferred", f"Node didn't have enough resource: {name}, {amounts}"
    return None


def _reject(pod: LabPod, rejection: tuple[str, str], now: datetime) -> LifecycleStep:
    reason, message = rejection
    before = pod.status.condition(PENDING)
    if before is not None and (before.reason, before.message) == rejection and _is_current(pod, before):
        return LifecycleStep()
    pending = _condition(pod, pod.status.conditions, PENDING, now, reason, message)
    return _step(pod, pod.status.container_statuses, now, pending)


def _actuate(pod: LabPod, inputs: ResizeInputs, timing: Timing, now: datetime) -> LifecycleStep:
    if errors := [*_pod_limit_errors(pod, inputs.memory), *_container_limit_errors(pod, inputs.memory)]:
        return _fail(pod, errors, now)
    return _step(pod, [_resized(pod, status, timing, now) for status in pod.status.container_statuses], now)


def _pod_limit_errors(pod: LabPod, memory: Mapping[str, int]) -> Iterator[str]:
    """Yield the kubelet's error if the sum of memory limits would fall to the usage or below it."""
    desired = [_memory_limit(container.resources) for container in pod.spec.containers]
    current = [_memory_limit(status.resources) for status in pod.status.container_statuses]
    if None in desired or None in current:
        return
    limit, before = (sum(value or 0 for value in limits) for limits in (desired, current))
    used = sum(memory.values())
    if limit < before and used >= limit:
        yield f"attempting to set pod memory limit ({limit}) below current usage ({used})"


def _container_limit_errors(pod: LabPod, memory: Mapping[str, int]) -> Iterator[str]:
    """Yield an error for each memory limit that would fall to the container's usage or below it."""
    # The kubelet compares the usage of the container and prints that of the pod.
    printed = sum(memory.values())
    for status in pod.status.container_statuses:
        limit = _memory_limit(_container(pod, status).resources)
        before = _memory_limit(status.resources)
        used = memory.get(status.name, 0)
        if limit is not None and (before is None or limit < before) and used >= limit:
            error = f"memory limit ({limit}) below current usage ({printed})"
            yield f'attempting to set container "{status.name}" {error}'


def _memory_limit(resources: ResourceRequirements | None) -> int | None:
    limit = resources.limits.get("memory") if resources is not None else None
    return limit.value() if limit is not None else None


def _fail(pod: LabPod, errors: list[str], now: datetime) -> LifecycleStep:
    before = pod.status.condition(IN_PROGRESS)
    if before is not None and before.reason == "Error" and _is_current(pod, before):
        return LifecycleStep(wait=RETRY_SECONDS)
    joined = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    message = f"cannot decrease memory limits: {joined}"
    failed = _condition(pod, pod.status.conditions, IN_PROGRESS, now, "Error", message)
    step = _step(pod, pod.status.container_statuses, now, failed)
    return LifecycleStep(step.status, wait=RETRY_SECONDS)


def _condition(
    pod: LabPod, before: Iterable[PodCondition], kind: str, now: datetime, reason: str = "", message: str = ""
) -> Json:
    body = condition(before, kind, holds=True, reason=reason, message=message, now=now)
    return {**body, "observedGeneration": pod.metadata.generation} if pod.metadata.generation else body


def _is_current(pod: LabPod, before: PodCondition) -> bool:
    return before.observed_generation in (None, pod.metadata.generation)


def _resized(pod: LabPod, status: LabContainerStatus, timing: Timing, now: datetime) -> LabContainerStatus:
    container = _container(pod, status)
    desired = container.resources
    if status.resources == desired:
        return status
    resized = replace(status, resources=desired, allocated_resources=desired.requests)
    if not _restarts(container, status.resources or ResourceRequirements(), desired):
        return resized
    is_ready = timing.ready_seconds <= 0
    return replace(
        resized,
        ready=is_ready,
        started=is_ready,
        restart_count=status.restart_count + 1,
        state=ContainerState(running=ContainerStateRunning(started_at=now)),
        last_state=terminated_state(status, SIGKILL_EXIT_CODE, "Error", now),
    )


def _restarts(container: LabContainer, before: ResourceRequirements, after: ResourceRequirements) -> bool:
    """Return whether the resize policy of a changed resource demands a restart."""
    return any(
        policy.restart_policy == "RestartContainer"
        and (
            before.requests.get(policy.resource_name) != after.requests.get(policy.resource_name)
            or before.limits.get(policy.resource_name) != after.limits.get(policy.resource_name)
        )
        for policy in container.resize_policy
    )


def _container(pod: LabPod, status: LabContainerStatus) -> LabContainer:
    return next(container for container in pod.spec.containers if container.name == status.name)
