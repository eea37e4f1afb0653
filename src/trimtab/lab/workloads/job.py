"""Jobs: pods that run to their end, so many times, so many at once."""

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.workloads.job_plan import (
    FINALIZER,
    INDEX,
    count_pods,
    is_complete,
    is_finished,
    job_status,
    next_moves,
)
from trimtab.lab.workloads.kinds import JOBS, JobObject, RunPod, owner_reference
from trimtab.lab.workloads.mirror import Key, Mirror
from trimtab.lab.workloads.queue import WorkQueue
from trimtab.lab.workloads.statuses import StatusWriter
from trimtab.lab.workloads.templates import new_pod


class JobController:
    """Runs each Job to its end."""

    def __init__(self, clock: Clock, jobs: Mirror[JobObject], pods: Mirror[RunPod]) -> None:
        self._clock = clock
        self._jobs = jobs
        self._pods = pods
        self._statuses = StatusWriter(jobs)
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
