"""Starts and stops the controllers of the data plane together."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from trimtab_lab.controllers.base.caches import Caches
from trimtab_lab.controllers.base.work_queue import WorkQueue
from trimtab_lab.controllers.base.write_through_cache import WriteThroughCache
from trimtab_lab.controllers.daemon_sets import DaemonSetController
from trimtab_lab.controllers.deployments import DeploymentController
from trimtab_lab.controllers.jobs import JobController
from trimtab_lab.controllers.replica_sets import ReplicaSetController
from trimtab_lab.controllers.stateful_sets import StatefulSetController


def workload_queues(caches: Caches) -> list[WorkQueue]:
    """Build all workload controllers and return their work queues."""
    return [
        DeploymentController(caches).queue,
        ReplicaSetController(caches, caches.replica_sets).queue,
        ReplicaSetController(caches, caches.replication_controllers).queue,
        StatefulSetController(caches).queue,
        DaemonSetController(caches).queue,
        JobController(caches).queue,
    ]


class ControllerManager:
    """Runs informers and work queues as tasks. Use it as an async context manager."""

    def __init__(self, caches: Iterable[WriteThroughCache[Any]], queues: Iterable[WorkQueue]) -> None:
        self._caches = list(caches)
        self.queues = list(queues)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "ControllerManager":
        self._tasks = [asyncio.create_task(cache.informer.run()) for cache in self._caches]
        # A controller that starts before the first list is complete would act on a part of the objects.
        for cache in self._caches:
            await cache.informer.wait_synced()
        self._tasks += [asyncio.create_task(queue.run()) for queue in self.queues]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for queue in self.queues:
            queue.close()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    @property
    def is_idle(self) -> bool:
        """Return whether every work queue waits for a change or a deadline."""
        return all(queue.is_idle for queue in self.queues)
