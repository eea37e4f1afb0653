"""Jobs: pods that run to their end, so many times, so many at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import JOBS, JobObject, RunPod, owner_reference
from trimtab.lab.controllers.base.pods import (
    in_deletion_order,
    is_active,
    is_going,
    is_ready,
    new_pod,
)
from trimtab.lab.controllers.base.status_writer import StatusPatcher, condition
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
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


class JobController:
    """Runs each Job to its end."""

    def __init__(
        self, clock: Clock, jobs: WriteThroughCache[JobObject], pods: WriteThroughCache[RunPod]
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._pods = pods
        self._statuses = StatusPatcher(jobs)
        self.queue = WorkQueue("jobs", clock, self.reconcile)
        jobs.subscribe(self._changed)
        pods.subscribe(self._pod_changed)

    def _changed(self, delta: Delta[JobObject]) -> None:
        for job in filter(None, (delta.old, delta.new)):
            self.queue.add((job.metadata.namespace, job.metadata.name))

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        for pod in filter(None, (delta.old, delta.new)):
            for owner in pod.metadata.owner_references:
                if owner.controller and owner.kind == "Job":
                    self.queue.add((pod.metadata.namespace, owner.name))

    async def reconcile(self, key: Key) -> None:
        """Count ended pods, make or delete running ones, and say how far the Job is."""
        namespace, name = key
        job = self._jobs.get(name, namespace)
        if job is None:
            await self._release_orphans(key)
            return
        pods = self._pods.owned(job.metadata.uid)
        if job.metadata.deletion_timestamp is not None or is_finished(job):
            await self._release([pod for pod in pods if pod.is_finished or pod.metadata.deletion_timestamp])
            return
        count = count_pods(job, pods)
        has_failed = count.failed > job.spec.backoff_limit
        is_done = not has_failed and is_complete(job, pods, count)
        moves = next_moves(job, pods, count, is_over=has_failed or is_done)
        for pod in moves.delete:
            await self._pods.delete(pod, self._clock.now())
        for index in moves.create:
            await self._pods.create(_new_worker(job, index), namespace)
        pods = self._pods.owned(job.metadata.uid)
        status = job_status(job, pods, count, self._clock.now(), has_failed=has_failed, is_done=is_done)
        await self._statuses.write(job, status)
        await self._release(count.release)

    async def _release(self, pods: list[RunPod] | tuple[RunPod, ...]) -> None:
        """Take our finalizer off pods that are counted."""
        for pod in pods:
            if FINALIZER not in pod.metadata.finalizers:
                continue
            kept = [one for one in pod.metadata.finalizers if one != FINALIZER]
            try:
                await self._pods.patch(pod, {"metadata": {"finalizers": kept or None}})
            except (errors.NotFound, errors.Conflict):
                continue  # gone already, or another pod of that name: nothing of ours holds it

    async def _release_orphans(self, key: Key) -> None:
        """Let pods go whose Job no longer exists."""
        namespace, name = key
        orphans = [
            pod
            for pod in self._pods.all(namespace)
            if any(owner.kind == "Job" and owner.name == name for owner in pod.metadata.owner_references)
        ]
        await self._release(orphans)


def _new_worker(job: JobObject, index: int | None) -> Json:
    pod = new_pod(job.spec.template, owner_reference(JOBS, job.metadata))
    meta: Json = pod["metadata"]
    meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
    if index is not None:
        meta["generateName"] = f"{job.metadata.name}-{index}-"
        meta["annotations"] = {**meta.get("annotations", {}), INDEX: str(index)}
        meta["labels"] = {**meta.get("labels", {}), INDEX: str(index)}
    return pod
