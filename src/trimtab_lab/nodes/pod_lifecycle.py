"""The next step in the life of a pod on its node (start, become ready, exit, restart, terminate), and the status to write.

The state is read from the pod alone, so a kubelet that restarts continues where it stopped.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from trimtab.cluster.resource import Json
from trimtab.model.core.pod import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
)
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity
from trimtab_lab.controllers.kinds import LabContainer, LabContainerStatus, LabPod
from trimtab_lab.controllers.pods import condition

#: Conditions that follow from container states. All others are kept.
DERIVED_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")


def pod_status(
    pod: LabPod, containers: Sequence[LabContainerStatus], now: datetime, others: Iterable[Json] | None = None
) -> Json:
    """Return the status for these container states.

    `others` replaces the conditions that do not follow from them, such as those of a resize.
    """
    phase = pod_phase(containers)
    if others is None:
        others = [
            wire.to_builtins(former)
            for former in pod.status.conditions
            if former.type not in DERIVED_CONDITIONS
        ]
    status: Json = {
        "phase": phase,
        "startTime": wire.to_builtins(pod.status.start_time or now),
        "hostIP": "127.0.0.1",
        "conditions": [*_conditions(pod, containers, phase, now), *others],
        "containerStatuses": [_container_status(status) for status in containers],
    }
    if phase != "Pending":
        address = pod_address(pod.metadata.uid)
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    return status


def pod_phase(containers: Sequence[LabContainerStatus]) -> str:
    terminated = [status.state.terminated for status in containers if status.state.terminated is not None]
    if containers and len(terminated) == len(containers):
        return "Succeeded" if all(state.exit_code == 0 for state in terminated) else "Failed"
    is_new = any(
        status.state.running is None
        and status.state.terminated is None
        and status.last_state.terminated is None
        for status in containers
    )
    return "Pending" if is_new or not containers else "Running"


def pod_address(uid: str) -> str:
    """Return a made-up address that depends only on the uid."""
    number = int(uid.replace("-", "")[:6] or "0", 16) if uid else 0
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _container_status(status: LabContainerStatus) -> Json:
    body: Json = wire.to_builtins(status)
    return {"ready": False, "restartCount": 0, "image": "", "imageID": "", **body}


def _conditions(
    pod: LabPod, containers: Sequence[LabContainerStatus], phase: str, now: datetime
) -> list[Json]:
    before = pod.status.conditions
    unready = [status.name for status in containers if not status.ready]
    if phase in ("Succeeded", "Failed"):
        reason, message = "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    elif unready:
        reason, message = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    else:
        reason = message = ""
    return [
        condition(before, "PodReadyToStartContainers", holds=phase == "Running", now=now),
        condition(before, "Initialized", holds=True, now=now),
        condition(before, "Ready", holds=not unready, reason=reason, message=message, now=now),
        condition(before, "ContainersReady", holds=not unready, reason=reason, message=message, now=now),
        condition(before, "PodScheduled", holds=True, now=now),
    ]


PREFIX = "lab.trimtab.dev/"
SIGKILL_EXIT_CODE = 137
#: A container that ran for this long restarts without back-off, as in the kubelet.
BACKOFF_RESET_AFTER = timedelta(minutes=10)
FIRST_BACKOFF, LONGEST_BACKOFF = 10.0, 300.0


class Timing(Wire, frozen=True):
    """How long pods take to start, become ready, stop, run and resize, in seconds."""

    start_seconds: float = 2.0
    ready_seconds: float = 0.0
    stop_seconds: float = 1.0
    run_seconds: float = 30.0
    resize_seconds: float = 1.0

    def for_pod(self, pod: LabPod) -> "Timing":
        """Return the times of one pod. Annotations such as `lab.trimtab.dev/start-seconds` set them."""
        given = {
            name: seconds
            for name in ("start", "ready", "stop", "run", "resize")
            if (seconds := _number(pod, f"{name}-seconds")) is not None
        }
        return replace(self, **{f"{name}_seconds": seconds for name, seconds in given.items()})


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """The status to write, whether the pod is gone, and the seconds until the next step."""

    status: Json | None = None
    is_gone: bool = False
    wait: float | None = None


NOTHING = LifecycleStep()


def next_step(pod: LabPod, timing: Timing, now: datetime, killed: Collection[str] = ()) -> LifecycleStep:
    """Return the next step of a pod. The containers in `killed` exceeded their memory limit."""
    now = now.replace(microsecond=0)
    if pod.metadata.deletion_timestamp is not None:
        return _terminate(pod, timing, now)
    if pod.is_finished:
        return NOTHING
    if pod.status.start_time is None or not pod.status.container_statuses:
        return LifecycleStep(pod_status(pod, [_created(container) for container in pod.spec.containers], now))
    over_limit = [status for status in _statuses(pod) if status.name in killed and status.state.running]
    return _oom_kill(pod, over_limit, timing, now) if over_limit else _run(pod, timing, now)


def _oom_kill(
    pod: LabPod, over_limit: list[LabContainerStatus], timing: Timing, now: datetime
) -> LifecycleStep:
    after = [
        _terminated(status, SIGKILL_EXIT_CODE, "OOMKilled", now) if status in over_limit else status
        for status in _statuses(pod)
    ]
    return LifecycleStep(pod_status(pod, [_restart(pod, status, timing, now) for status in after], now))


def _run(pod: LabPod, timing: Timing, now: datetime) -> LifecycleStep:
    """Start waiting containers, make running ones ready, and complete those of Jobs, in this order."""
    if any(_is_waiting(status) for status in _statuses(pod)):
        return _start(pod, timing, now)
    if not all(status.ready for status in _statuses(pod) if status.state.running):
        return _become_ready(pod, timing, now)
    if pod.spec.restart_policy != "Always":
        return _complete(pod, timing, now)
    return NOTHING


def _terminate(pod: LabPod, timing: Timing, now: datetime) -> LifecycleStep:
    """Remove a pod once its containers have stopped, at the latest after its grace period."""
    assert pod.metadata.deletion_timestamp is not None
    grace = float(pod.metadata.deletion_grace_period_seconds or 0)
    requested = pod.metadata.deletion_timestamp - timedelta(seconds=grace)
    wait = (requested + timedelta(seconds=min(timing.stop_seconds, grace)) - now).total_seconds()
    if wait > 0:
        return LifecycleStep(wait=wait)
    if not pod.metadata.finalizers or pod.is_finished:
        return LifecycleStep(is_gone=True)
    # The owner of the finalizer needs the final phase.
    code = SIGKILL_EXIT_CODE if pod.spec.restart_policy == "Always" else 143
    ended = [
        _terminated(status, code, "Error", now) if status.state.running else status
        for status in _statuses(pod)
    ]
    return LifecycleStep({**pod_status(pod, ended, now), "phase": "Failed"})


def _start(pod: LabPod, timing: Timing, now: datetime) -> LifecycleStep:
    due = max(_start_time(pod, status, timing) for status in _statuses(pod) if _is_waiting(status))
    if due > now:
        return LifecycleStep(wait=(due - now).total_seconds())
    started = [
        _running(pod, status, timing, now) if _is_waiting(status) else status for status in _statuses(pod)
    ]
    return LifecycleStep(pod_status(pod, started, now))


def _start_time(pod: LabPod, status: LabContainerStatus, timing: Timing) -> datetime:
    ended = status.last_state.terminated
    if ended is None or ended.finished_at is None:
        assert pod.status.start_time is not None
        return pod.status.start_time + timedelta(seconds=timing.start_seconds)
    return ended.finished_at + timedelta(seconds=backoff(status.restart_count))


def backoff(restarts: int) -> float:
    """Return the back-off before a restart, in seconds."""
    return min(FIRST_BACKOFF * 2.0 ** max(restarts - 1, 0), LONGEST_BACKOFF)


def _become_ready(pod: LabPod, timing: Timing, now: datetime) -> LifecycleStep:
    waits: list[float] = []
    after: list[LabContainerStatus] = []
    for status in _statuses(pod):
        running = status.state.running
        if running is None or status.ready or running.started_at is None:
            after.append(status)
            continue
        wait = (running.started_at + timedelta(seconds=timing.ready_seconds) - now).total_seconds()
        waits += [wait] if wait > 0 else []
        after.append(status if wait > 0 else replace(status, ready=True, started=True))
    if after == list(_statuses(pod)):
        return LifecycleStep(wait=min(waits, default=None))
    return LifecycleStep(pod_status(pod, after, now))


def _complete(pod: LabPod, timing: Timing, now: datetime) -> LifecycleStep:
    running = [state for status in _statuses(pod) if (state := status.state.running) is not None]
    started = [state.started_at for state in running if state.started_at is not None]
    if not started:
        return NOTHING
    wait = (max(started) + timedelta(seconds=timing.run_seconds) - now).total_seconds()
    if wait > 0:
        return LifecycleStep(wait=wait)
    code = int(_number(pod, "exit-code") or 0)
    ended = [
        _terminated(status, code, "Error" if code else "Completed", now) if status.state.running else status
        for status in _statuses(pod)
    ]
    return LifecycleStep(pod_status(pod, [_restart(pod, status, timing, now) for status in ended], now))


def _restart(pod: LabPod, status: LabContainerStatus, timing: Timing, now: datetime) -> LabContainerStatus:
    """Return a terminated container, restarted if the pod's restart policy says so."""
    ended = status.state.terminated
    policy = pod.spec.restart_policy
    if ended is None or policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0):
        return status
    lasted = now - ended.started_at if ended.started_at is not None else timedelta()
    waiting = replace(
        status,
        state=ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
        last_state=ContainerState(terminated=ended),
    )
    if status.restart_count == 0 or lasted >= BACKOFF_RESET_AFTER:
        return _running(pod, waiting, timing, now)
    return waiting


def _created(container: LabContainer) -> LabContainerStatus:
    return LabContainerStatus(
        name=container.name,
        image=container.image,
        state=ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating")),
    )


def _running(pod: LabPod, status: LabContainerStatus, timing: Timing, now: datetime) -> LabContainerStatus:
    container = next(c for c in pod.spec.containers if c.name == status.name)
    is_ready = timing.ready_seconds <= 0
    return replace(
        status,
        image_id=f"lab://{status.image}",
        container_id=f"lab://{pod.metadata.uid}/{status.name}",
        ready=is_ready,
        started=is_ready,
        restart_count=status.restart_count + (status.last_state.terminated is not None),
        state=ContainerState(running=ContainerStateRunning(started_at=now)),
        resources=status.resources or container.resources,
        allocated_resources=status.allocated_resources or container.resources.requests,
    )


def _terminated(status: LabContainerStatus, code: int, reason: str, now: datetime) -> LabContainerStatus:
    return replace(status, ready=False, started=False, state=terminated_state(status, code, reason, now))


def terminated_state(status: LabContainerStatus, code: int, reason: str, now: datetime) -> ContainerState:
    started = status.state.running.started_at if status.state.running is not None else None
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=code, reason=reason, started_at=started, finished_at=now
        )
    )


def _is_waiting(status: LabContainerStatus) -> bool:
    return status.state.running is None and status.state.terminated is None


def _statuses(pod: LabPod) -> tuple[LabContainerStatus, ...]:
    return pod.status.container_statuses


def page_cache(pod: LabPod) -> int:
    """Return the bytes of page cache per container, from the annotation `page-cache`."""
    text = pod.metadata.annotations.get(PREFIX + "page-cache")
    try:
        return 0 if text is None else Quantity.parse(text).value()
    except ValueError:
        return 0


def _number(pod: LabPod, name: str) -> float | None:
    text = pod.metadata.annotations.get(PREFIX + name)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
