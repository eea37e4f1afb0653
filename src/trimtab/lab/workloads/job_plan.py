"""What a Job does next, given its pods (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trimtab.cluster.resource import Json
from trimtab.lab.workloads.kinds import JobObject, RunPod
from trimtab.lab.workloads.podstate import in_deletion_order, is_active, is_going, is_ready
from trimtab.lab.workloads.statuses import condition
from trimtab.model.times import format_time

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
MAX_FAILURES_MESSAGE = "Job has reached the specified backoff limit"


@dataclass(frozen=True, slots=True)
class Count:
    """How many pods of a Job ended well and badly, and the uids still to be released."""

    succeeded: int
    failed: int
    release: tuple[RunPod, ...]
    status: Json


def count_pods(job: JobObject, pods: Sequence[RunPod]) -> Count:
    """Count ended pods exactly once, however often they are seen and even if they are deleted in between.

    A pod is counted while its finalizer still holds it: its uid goes into the status first, then the finalizer is
    taken off, then the uid moves into the number.
    """
    by_uid = {pod.metadata.uid: pod for pod in pods}
    before = job.status.uncounted_terminated_pods
    succeeded, well = _tally(by_uid, "Succeeded", job.status.succeeded, before.succeeded)
    failed, badly = _tally(by_uid, "Failed", job.status.failed, before.failed)
    status: Json = {
        "succeeded": succeeded or None,
        "failed": failed or None,
        "uncountedTerminatedPods": {"succeeded": well or None, "failed": badly or None},
    }
    release = tuple(by_uid[uid] for uid in (*well, *badly))
    return Count(succeeded + len(well), failed + len(badly), release, status)


def _tally(
    by_uid: Mapping[str, RunPod], phase: str, number: int, uids: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the number of pods that ended so and were released, and the uids of those still held."""
    held = [uid for uid in uids if uid in by_uid and _is_held(by_uid[uid])]
    new = [uid for uid, pod in by_uid.items() if uid not in uids and _ended(pod) == phase and _is_held(pod)]
    return number + len(uids) - len(held), [*held, *new]


def _ended(pod: RunPod) -> str:
    return pod.status.phase if pod.is_finished else ""


def _is_held(pod: RunPod) -> bool:
    return FINALIZER in pod.metadata.finalizers


@dataclass(frozen=True, slots=True)
class JobMoves:
    """How many pods to make (with their completion indexes) and which to delete."""

    create: tuple[int | None, ...] = ()
    delete: tuple[RunPod, ...] = ()


def next_moves(job: JobObject, pods: Sequence[RunPod], count: Count, *, is_over: bool) -> JobMoves:
    """Return the pods to make and delete: as many at once as asked for, no more than are still needed."""
    active = [pod for pod in pods if is_active(pod)]
    if is_over or job.spec.suspend:
        return JobMoves(delete=tuple(active))
    wanted = _wanted(job, len(active), count)
    if len(active) > wanted:
        return JobMoves(delete=tuple(in_deletion_order(active)[: len(active) - max(wanted, 0)]))
    # A pod that is going is not replaced before it is gone, or Jobs would run more at once than they may.
    missing = max(wanted - len(active) - count_going(pods), 0)
    if job.spec.completion_mode != "Indexed":
        return JobMoves((None,) * missing)
    taken = {index_of(pod) for pod in pods if is_active(pod) or pod.status.phase == "Succeeded"}
    free = [index for index in range(job.spec.completions or 0) if index not in taken]
    return JobMoves(tuple(free[:missing]))


def count_going(pods: Sequence[RunPod]) -> int:
    """Return how many pods are asked to end and have not yet."""
    return sum(is_going(pod) and not pod.is_finished for pod in pods)


def _wanted(job: JobObject, active: int, count: Count) -> int:
    """Return how many pods should run at once now."""
    if job.spec.completions is not None:
        return min(job.spec.parallelism, job.spec.completions - count.succeeded)
    # A work queue without a number: one success means that no more are started.
    return min(job.spec.parallelism, active) if count.succeeded else job.spec.parallelism


def index_of(pod: RunPod) -> int | None:
    """Return the completion index of a pod."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def is_complete(job: JobObject, pods: Sequence[RunPod], count: Count) -> bool:
    """Tell whether the Job has reached its goal."""
    if job.spec.completions is not None:
        return count.succeeded >= job.spec.completions
    return count.succeeded > 0 and not any(is_active(pod) for pod in pods)


def is_finished(job: JobObject) -> bool:
    """Tell whether the Job said that it is over."""
    return any(one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions)


def job_status(
    job: JobObject, pods: Sequence[RunPod], count: Count, now: datetime, *, has_failed: bool, is_done: bool
) -> Json:
    """Return the status; the last word is said only when no pod is left running."""
    active = [pod for pod in pods if is_active(pod)]
    begun = job.status.start_time or (None if job.spec.suspend else now)
    status: Json = {
        **count.status,
        "active": len(active) or None,
        "ready": sum(map(is_ready, active)),
        "terminating": count_going(pods),
        "startTime": format_time(begun) if begun is not None else None,
    }
    conditions = _interim(job, now)
    if is_done or has_failed:
        is_over = not active and not count.release
        conditions += _final(job, now, has_failed=has_failed, is_over=is_over)
        if is_done and is_over:
            status["completionTime"] = format_time(now)
    return status | ({"conditions": conditions} if conditions else {})


def _interim(job: JobObject, now: datetime) -> list[Json]:
    known = any(one.type == "Suspended" for one in job.status.conditions)
    if not job.spec.suspend and not known:
        return []
    reason, message = ("JobSuspended", "Job suspended") if job.spec.suspend else ("JobResumed", "Job resumed")
    return [
        condition(
            job.status.conditions,
            "Suspended",
            holds=job.spec.suspend,
            reason=reason,
            message=message,
            now=now,
        )
    ]


def _final(job: JobObject, now: datetime, *, has_failed: bool, is_over: bool) -> list[Json]:
    kinds = ("FailureTarget", "Failed") if has_failed else ("SuccessCriteriaMet", "Complete")
    reason = "BackoffLimitExceeded" if has_failed else "CompletionsReached"
    message = MAX_FAILURES_MESSAGE if has_failed else "Reached expected number of succeeded pods"
    return [
        condition(job.status.conditions, kind, holds=True, reason=reason, message=message, now=now)
        for kind in kinds[: 2 if is_over else 1]
    ]
