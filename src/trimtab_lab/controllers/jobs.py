"""The Job controller: pods that run to completion."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trimtab.cluster import errors
from trimtab.cluster.resource import Json
from trimtab.model.times import format_time
from trimtab_lab.controllers.controller import Controller
from trimtab_lab.controllers.kinds import JOBS, PODS, LabJob, LabPod, owner_reference
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import (
    condition,
    in_deletion_order,
    is_active,
    is_ready,
    is_terminating,
    new_pod,
)
from trimtab_lab.storage.store import WatchCacheEvent

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


class JobController(Controller):
    """Runs each Job to completion."""

    def on_other(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue the Job of a terminating pod, which may be gone and whose finalizer holds the pod."""
        if storage == "pods" and change.entry.is_deleting and change.action != "DELETED":
            pod = self.objects.read(PODS, change.entry)
            for owner in pod.metadata.owner_references:
                if owner.kind == "Job":
                    self.enqueue((pod.metadata.namespace, owner.name))

    async def reconcile(self, key: Key) -> None:
        """Count finished pods, create or delete active ones, and write the status."""
        while True:
            job = self.objects.get(JOBS, key)
            if job is None:
                await self._release_orphans(key)
                return
            pods = self.objects.owned(PODS, job.metadata.uid)
            if job.metadata.deletion_timestamp is not None or _is_finished(job):
                await self._remove_finalizer(pod for pod in pods if not is_active(pod))
                return
            counts = count_pods(job, pods)
            has_failed = counts.failed > job.spec.backoff_limit
            is_done = not has_failed and _is_complete(job, pods, counts)
            changes = next_changes(job, pods, counts, is_over=has_failed or is_done)
            # A webhook may take time over each pod, so the rest is decided anew.
            if changes.delete:
                await self.objects.delete(PODS, changes.delete[0])
            elif changes.create:
                await self.objects.create(PODS, _new_pod(job, changes.create[0]), key[0])
            else:
                break
        status = job_status(job, pods, counts, self.clock.now(), has_failed=has_failed, is_done=is_done)
        await self.objects.write_status(JOBS, job, status)
        await self._remove_finalizer(counts.release)

    async def _remove_finalizer(self, pods: Iterable[LabPod]) -> None:
        for pod in pods:
            if not _has_finalizer(pod):
                continue
            kept = [finalizer for finalizer in pod.metadata.finalizers if finalizer != FINALIZER]
            try:
                await self.objects.patch(PODS, pod, {"metadata": {"finalizers": kept or None}})
            except (errors.NotFound, errors.Conflict):
                continue  # the pod is gone, or another pod has its name

    async def _release_orphans(self, key: Key) -> None:
        """Remove the finalizer from pods whose Job no longer exists."""
        namespace, name = key
        await self._remove_finalizer(
            pod
            for pod in self.objects.all(PODS, namespace)
            if any(owner.kind == "Job" and owner.name == name for owner in pod.metadata.owner_references)
        )


def _new_pod(job: LabJob, index: int | None) -> Json:
    pod = new_pod(job.spec.template, owner_reference(JOBS, job.metadata))
    meta: Json = pod["metadata"]
    meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
    if index is not None:
        meta["generateName"] = f"{job.metadata.name}-{index}-"
        meta["annotations"] = {**meta.get("annotations", {}), INDEX: str(index)}
        meta["labels"] = {**meta.get("labels", {}), INDEX: str(index)}
    return pod


def _has_finalizer(pod: LabPod) -> bool:
    return FINALIZER in pod.metadata.finalizers


@dataclass(frozen=True, slots=True)
class JobCounts:
    """The finished pods of a Job, those to take the finalizer off, and the counts for its status."""

    succeeded: int
    failed: int
    release: tuple[LabPod, ...]
    status: Json


def count_pods(job: LabJob, pods: Sequence[LabPod]) -> JobCounts:
    """Count each finished pod exactly once, also when it is deleted in between.

    The uid of a finished pod goes into the status while the finalizer holds the pod. Then the finalizer is removed, and
    then the uid becomes part of the count.
    """
    by_uid = {pod.metadata.uid: pod for pod in pods}
    before = job.status.uncounted_terminated_pods
    succeeded, uncounted_succeeded = _count(by_uid, "Succeeded", job.status.succeeded, before.succeeded)
    failed, uncounted_failed = _count(by_uid, "Failed", job.status.failed, before.failed)
    status: Json = {
        "succeeded": succeeded or None,
        "failed": failed or None,
        "uncountedTerminatedPods": {
            "succeeded": uncounted_succeeded or None,
            "failed": uncounted_failed or None,
        },
    }
    release = tuple(by_uid[uid] for uid in (*uncounted_succeeded, *uncounted_failed))
    return JobCounts(succeeded + len(uncounted_succeeded), failed + len(uncounted_failed), release, status)


def _count(
    by_uid: Mapping[str, LabPod], phase: str, counted: int, uncounted: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the new count of a phase, and the uids of pods that the finalizer still holds."""
    held = [uid for uid in uncounted if uid in by_uid and _has_finalizer(by_uid[uid])]
    new = [
        uid
        for uid, pod in by_uid.items()
        if uid not in uncounted and pod.status.phase == phase and _has_finalizer(pod)
    ]
    return counted + len(uncounted) - len(held), [*held, *new]


@dataclass(frozen=True, slots=True)
class JobChanges:
    """Pods to create, by completion index or None, and pods to delete."""

    create: tuple[int | None, ...] = ()
    delete: tuple[LabPod, ...] = ()


def next_changes(job: LabJob, pods: Sequence[LabPod], counts: JobCounts, *, is_over: bool) -> JobChanges:
    """Return the pods to create and delete, within parallelism and completions."""
    active = [pod for pod in pods if is_active(pod)]
    if is_over or job.spec.suspend:
        return JobChanges(delete=tuple(active))
    desired = _desired_active(job, len(active), counts)
    if len(active) > desired:
        return JobChanges(delete=tuple(in_deletion_order(active)[: len(active) - max(desired, 0)]))
    # A terminating pod is replaced once it is gone. Otherwise a Job would exceed its parallelism.
    missing = max(desired - len(active) - _count_terminating(pods), 0)
    if job.spec.completion_mode != "Indexed":
        return JobChanges((None,) * missing)
    taken = {_completion_index(pod) for pod in pods if is_active(pod) or pod.status.phase == "Succeeded"}
    free = [index for index in range(job.spec.completions or 0) if index not in taken]
    return JobChanges(tuple(free[:missing]))


def _count_terminating(pods: Sequence[LabPod]) -> int:
    return sum(is_terminating(pod) and not pod.is_finished for pod in pods)


def _desired_active(job: LabJob, active: int, counts: JobCounts) -> int:
    if job.spec.completions is not None:
        return min(job.spec.parallelism, job.spec.completions - counts.succeeded)
    # Without completions the Job is a work queue: after the first success no pod is started.
    return min(job.spec.parallelism, active) if counts.succeeded else job.spec.parallelism


def _completion_index(pod: LabPod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _is_complete(job: LabJob, pods: Sequence[LabPod], counts: JobCounts) -> bool:
    if job.spec.completions is not None:
        return counts.succeeded >= job.spec.completions
    return counts.succeeded > 0 and not any(is_active(pod) for pod in pods)


def _is_finished(job: LabJob) -> bool:
    return any(
        former.type in ("Complete", "Failed") and former.status == "True" for former in job.status.conditions
    )


def job_status(
    job: LabJob, pods: Sequence[LabPod], counts: JobCounts, now: datetime, *, has_failed: bool, is_done: bool
) -> Json:
    """Return the status. The final condition is set once no pod is active."""
    active = [pod for pod in pods if is_active(pod)]
    started = job.status.start_time or (None if job.spec.suspend else now)
    status: Json = {
        **counts.status,
        "active": len(active) or None,
        "ready": sum(map(is_ready, active)),
        "terminating": _count_terminating(pods),
        "startTime": format_time(started) if started is not None else None,
    }
    conditions = _suspended_condition(job, now)
    if is_done or has_failed:
        is_over = not active and not counts.release
        conditions += _final_conditions(job, now, has_failed=has_failed, is_over=is_over)
        if is_done and is_over:
            status["completionTime"] = format_time(now)
    return status | ({"conditions": conditions} if conditions else {})


def _suspended_condition(job: LabJob, now: datetime) -> list[Json]:
    before, holds = job.status.conditions, job.spec.suspend
    if not holds and not any(former.type == "Suspended" for former in before):
        return []
    reason, message = ("JobSuspended", "Job suspended") if holds else ("JobResumed", "Job resumed")
    return [condition(before, "Suspended", holds=holds, reason=reason, message=message, now=now)]


def _final_conditions(job: LabJob, now: datetime, *, has_failed: bool, is_over: bool) -> list[Json]:
    if has_failed:
        kinds, reason = ("FailureTarget", "Failed"), "BackoffLimitExceeded"
        message = "Job has reached the specified backoff limit"
    else:
        kinds, reason = ("SuccessCriteriaMet", "Complete"), "CompletionsReached"
        message = "Reached expected number of succeeded pods"
    return [
        condition(job.status.conditions, kind, holds=True, reason=reason, message=message, now=now)
        for kind in kinds[: 2 if is_over else 1]
    ]
