"""What happens to a pod next on its node: start, become ready, end, be killed, start again, go (pure).

Everything is read from the pod itself, so an agent that starts over carries on where the last one stopped.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import RunContainer, RunContainerStatus, RunPod
from trimtab.lab.nodes.pod_status import pod_status
from trimtab.model.core.pod import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
)
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

PREFIX = "lab.trimtab.dev/"
KILLED = 137
#: A container that ran for this long starts again without delay, as under a kubelet.
FORGIVEN_AFTER = timedelta(minutes=10)
FIRST_BACKOFF, LONGEST_BACKOFF = 10.0, 300.0


class Timing(Wire, frozen=True):
    """How long things take on a node, in seconds; a pod's `lab.trimtab.dev/…` annotations win."""

    start_seconds: float = 2.0
    ready_seconds: float = 0.0
    stop_seconds: float = 1.0
    run_seconds: float = 30.0
    resize_seconds: float = 1.0

    def of(self, pod: RunPod) -> "Timing":
        """Return the times of one pod: annotations such as `lab.trimtab.dev/start-seconds` change them."""
        given = {
            name: seconds
            for name in ("start", "ready", "stop", "run", "resize")
            if (seconds := _number(pod, f"{name}-seconds")) is not None
        }
        return replace(self, **{f"{name}_seconds": seconds for name, seconds in given.items()})


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """What to do now: write a status, let the pod go, or nothing; and when to look again."""

    status: Json | None = None
    is_gone: bool = False
    wait: float | None = None


NOTHING = LifecycleStep()


def next_step(pod: RunPod, timing: Timing, now: datetime, killed: Collection[str] = ()) -> LifecycleStep:
    """Return what happens to a pod of this node; `killed` are containers that used too much memory."""
    now = now.replace(microsecond=0)
    if pod.metadata.deletion_timestamp is not None:
        return _terminate(pod, timing, now)
    if pod.is_finished:
        return NOTHING
    if pod.status.start_time is None or not pod.status.container_statuses:
        return LifecycleStep(pod_status(pod, [_created(one) for one in pod.spec.containers], now))
    doomed = [one for one in _containers(pod) if one.name in killed and one.state.running]
    return _kill(pod, doomed, timing, now) if doomed else _go_on(pod, timing, now)


def _kill(pod: RunPod, doomed: list[RunContainerStatus], timing: Timing, now: datetime) -> LifecycleStep:
    ended = [_ended(one, KILLED, "OOMKilled", now) if one in doomed else one for one in _containers(pod)]
    return LifecycleStep(pod_status(pod, [_again(pod, one, timing, now) for one in ended], now))


def _go_on(pod: RunPod, timing: Timing, now: datetime) -> LifecycleStep:
    """Start what waits, make ready what runs, and end what has done its work, in this order."""
    if any(_is_waiting(one) for one in _containers(pod)):
        return _start(pod, timing, now)
    if not all(one.ready for one in _containers(pod) if one.state.running):
        return _become_ready(pod, timing, now)
    if pod.spec.restart_policy != "Always":
        return _run_to_the_end(pod, timing, now)
    return NOTHING


def _terminate(pod: RunPod, timing: Timing, now: datetime) -> LifecycleStep:
    """Let a pod go once its containers had time to stop, at most the grace it was given."""
    assert pod.metadata.deletion_timestamp is not None
    grace = float(pod.metadata.deletion_grace_period_seconds or 0)
    asked = pod.metadata.deletion_timestamp - timedelta(seconds=grace)
    wait = (asked + timedelta(seconds=min(timing.stop_seconds, grace)) - now).total_seconds()
    if wait > 0:
        return LifecycleStep(wait=wait)
    if not pod.metadata.finalizers or pod.is_finished:
        return LifecycleStep(is_gone=True)
    # Whoever holds the pod wants to know how it ended.
    code = KILLED if pod.spec.restart_policy == "Always" else 143
    ended = [_ended(one, code, "Error", now) if one.state.running else one for one in _containers(pod)]
    return LifecycleStep({**pod_status(pod, ended, now), "phase": "Failed"})


def _start(pod: RunPod, timing: Timing, now: datetime) -> LifecycleStep:
    due = max(_may_start(pod, one, timing) for one in _containers(pod) if _is_waiting(one))
    if due > now:
        return LifecycleStep(wait=(due - now).total_seconds())
    started = [_running(pod, one, timing, now) if _is_waiting(one) else one for one in _containers(pod)]
    return LifecycleStep(pod_status(pod, started, now))


def _may_start(pod: RunPod, one: RunContainerStatus, timing: Timing) -> datetime:
    ended = one.last_state.terminated
    if ended is None or ended.finished_at is None:
        assert pod.status.start_time is not None
        return pod.status.start_time + timedelta(seconds=timing.start_seconds)
    return ended.finished_at + timedelta(seconds=backoff(one.restart_count))


def backoff(restarts: int) -> float:
    """Return the seconds before a container that ended again and again is started again."""
    return min(FIRST_BACKOFF * 2.0 ** max(restarts - 1, 0), LONGEST_BACKOFF)


def _become_ready(pod: RunPod, timing: Timing, now: datetime) -> LifecycleStep:
    waits: list[float] = []
    after: list[RunContainerStatus] = []
    for one in _containers(pod):
        running = one.state.running
        if running is None or one.ready or running.started_at is None:
            after.append(one)
            continue
        wait = (running.started_at + timedelta(seconds=timing.ready_seconds) - now).total_seconds()
        waits += [wait] if wait > 0 else []
        after.append(one if wait > 0 else replace(one, ready=True, started=True))
    if after == list(_containers(pod)):
        return LifecycleStep(wait=min(waits, default=None))
    return LifecycleStep(pod_status(pod, after, now))


def _run_to_the_end(pod: RunPod, timing: Timing, now: datetime) -> LifecycleStep:
    running = [one for one in _containers(pod) if one.state.running is not None]
    begun = [
        one.state.running.started_at for one in running if one.state.running and one.state.running.started_at
    ]
    if not begun:
        return NOTHING
    wait = (max(begun) + timedelta(seconds=timing.run_seconds) - now).total_seconds()
    if wait > 0:
        return LifecycleStep(wait=wait)
    code = int(_number(pod, "exit-code") or 0)
    ended = [
        _ended(one, code, "Error" if code else "Completed", now) if one in running else one
        for one in _containers(pod)
    ]
    return LifecycleStep(pod_status(pod, [_again(pod, one, timing, now) for one in ended], now))


def _again(pod: RunPod, one: RunContainerStatus, timing: Timing, now: datetime) -> RunContainerStatus:
    """Return a container that just ended, started again if its pod wants that."""
    ended = one.state.terminated
    policy = pod.spec.restart_policy
    if ended is None or policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0):
        return one
    lasted = now - ended.started_at if ended.started_at is not None else timedelta()
    waiting = replace(
        one,
        state=ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
        last_state=ContainerState(terminated=ended),
    )
    if one.restart_count == 0 or lasted >= FORGIVEN_AFTER:
        return _running(pod, waiting, timing, now)
    return waiting


def _created(container: RunContainer) -> RunContainerStatus:
    return RunContainerStatus(
        name=container.name,
        image=container.image,
        state=ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating")),
    )


def _running(pod: RunPod, one: RunContainerStatus, timing: Timing, now: datetime) -> RunContainerStatus:
    container = next(c for c in pod.spec.containers if c.name == one.name)
    is_ready = timing.ready_seconds <= 0
    return replace(
        one,
        image_id=f"lab://{one.image}",
        container_id=f"lab://{pod.metadata.uid}/{one.name}",
        ready=is_ready,
        started=is_ready,
        restart_count=one.restart_count + (one.last_state.terminated is not None),
        state=ContainerState(running=ContainerStateRunning(started_at=now)),
        resources=one.resources or container.resources,
        allocated_resources=one.allocated_resources or container.resources.requests,
    )


def _ended(one: RunContainerStatus, code: int, reason: str, now: datetime) -> RunContainerStatus:
    begun = one.state.running.started_at if one.state.running is not None else None
    ended = ContainerStateTerminated(exit_code=code, reason=reason, started_at=begun, finished_at=now)
    return replace(one, ready=False, started=False, state=ContainerState(terminated=ended))


def _is_waiting(one: RunContainerStatus) -> bool:
    return one.state.running is None and one.state.terminated is None


def _containers(pod: RunPod) -> tuple[RunContainerStatus, ...]:
    return pod.status.container_statuses


def page_cache(pod: RunPod) -> int:
    """Return the bytes of page cache that each container holds beyond its working set, by `page-cache`."""
    text = pod.metadata.annotations.get(PREFIX + "page-cache")
    try:
        return 0 if text is None else Quantity.parse(text).value()
    except ValueError:
        return 0


def _number(pod: RunPod, name: str) -> float | None:
    text = pod.metadata.annotations.get(PREFIX + name)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
