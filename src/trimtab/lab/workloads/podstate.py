"""What controllers ask of a pod: is it ready, since when, does it count, who goes first."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trimtab.lab.workloads.kinds import RunPod
from trimtab.model.times import ZERO_TIME

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_ready(pod: RunPod) -> bool:
    """Tell whether the pod is ready to serve."""
    condition = pod.status.condition("Ready")
    return condition is not None and condition.status == "True"


def is_going(pod: RunPod) -> bool:
    """Tell whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: RunPod) -> bool:
    """Tell whether the pod counts as a replica: neither ended nor being deleted."""
    return not pod.is_finished and not is_going(pod)


def ready_since(pod: RunPod) -> datetime:
    """Return when the pod became ready; the zero time if it does not say."""
    condition = pod.status.condition("Ready")
    moment = condition.last_transition_time if condition is not None else None
    return moment or ZERO_TIME


def until_available(pod: RunPod, min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until the pod counts as available: 0 if it does, None while it is not ready."""
    if not is_ready(pod):
        return None
    left = ready_since(pod) + timedelta(seconds=min_ready_seconds) - now
    return max(left.total_seconds(), 0.0) if min_ready_seconds else 0.0


def count_available(pods: Iterable[RunPod], min_ready_seconds: int, now: datetime) -> int:
    """Count the pods that have been ready for long enough."""
    return sum(until_available(pod, min_ready_seconds, now) == 0.0 for pod in pods)


def next_available(pods: Iterable[RunPod], min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until one more pod becomes available by itself."""
    waits = [wait for pod in pods if (wait := until_available(pod, min_ready_seconds, now))]
    return min(waits, default=None)


def in_deletion_order(pods: Sequence[RunPod], related: Iterable[RunPod] = ()) -> list[RunPod]:
    """Order pods by who goes first: those whose loss is felt least.

    Unplaced before placed, pending before running, unready before ready, cheap before dear, the crowded node before
    the others, the shorter ready before the longer, the restarted before the steady, the new before the old.
    """
    crowd: dict[str, int] = {}
    for pod in related or pods:
        if is_active(pod) and pod.spec.node_name:
            crowd[pod.spec.node_name] = crowd.get(pod.spec.node_name, 0) + 1
    return sorted(pods, key=lambda pod: _rank(pod, crowd.get(pod.spec.node_name, 0)))


def _rank(pod: RunPod, crowd: int) -> tuple[bool, int, bool, int, int, float, int, float, str]:
    created = pod.metadata.creation_timestamp or ZERO_TIME
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        _cost(pod),
        -crowd,
        -(ready_since(pod) - ZERO_TIME).total_seconds(),
        -restarts,
        -(created - ZERO_TIME).total_seconds(),
        pod.metadata.uid,
    )


def _cost(pod: RunPod) -> int:
    """Return the pod's deletion cost; one that is no number counts as none, as upstream decided."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
