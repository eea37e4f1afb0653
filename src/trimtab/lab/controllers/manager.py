"""All controllers together, on one set of mirrors."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab.cluster.resource import LEASES
from trimtab.lab.controllers.base import kinds
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import WriteThroughCache
from trimtab.lab.controllers.daemon_sets import DaemonSetController
from trimtab.lab.controllers.deployments import DeploymentController
from trimtab.lab.controllers.jobs import JobController
from trimtab.lab.controllers.replica_sets import ReplicaController
from trimtab.lab.controllers.stateful_sets import StatefulSetController


class Mirrors:
    """The mirrors that controllers and agents share, one per resource."""

    def __init__(self, client: Client, pace: WatchPace | None = None) -> None:
        self.client = client
        self.pods = WriteThroughCache(client, kinds.PODS, pace)
        self.nodes = WriteThroughCache(client, kinds.NODES, pace)
        self.deployments = WriteThroughCache(client, kinds.DEPLOYMENTS, pace)
        self.replica_sets = WriteThroughCache(client, kinds.REPLICA_SETS, pace)
        self.replication_controllers = WriteThroughCache(client, kinds.REPLICATION_CONTROLLERS, pace)
        self.stateful_sets = WriteThroughCache(client, kinds.STATEFUL_SETS, pace)
        self.daemon_sets = WriteThroughCache(client, kinds.DAEMON_SETS, pace)
        self.revisions = WriteThroughCache(client, kinds.REVISIONS, pace)
        self.jobs = WriteThroughCache(client, kinds.JOBS, pace)
        self.leases = WriteThroughCache(client, LEASES, pace)

    def running(self, *, has_controllers: bool) -> list[WriteThroughCache[Any]]:
        """Return the mirrors to run: agents need three of them, controllers all."""
        agents: list[WriteThroughCache[Any]] = [self.pods, self.nodes, self.leases]
        if not has_controllers:
            return agents
        return [
            *agents,
            self.deployments,
            self.replica_sets,
            self.replication_controllers,
            self.stateful_sets,
            self.daemon_sets,
            self.revisions,
            self.jobs,
        ]


def controller_queues(mirrors: Mirrors) -> list[WorkQueue]:
    """Make every controller and return their loops."""
    clock, pods = mirrors.client.clock, mirrors.pods
    return [
        DeploymentController(clock, mirrors.deployments, mirrors.replica_sets, pods).queue,
        ReplicaController(clock, mirrors.replica_sets, pods).queue,
        ReplicaController(clock, mirrors.replication_controllers, pods).queue,
        StatefulSetController(clock, mirrors.stateful_sets, mirrors.revisions, pods).queue,
        DaemonSetController(clock, mirrors.daemon_sets, mirrors.revisions, pods, mirrors.nodes).queue,
        JobController(clock, mirrors.jobs, pods).queue,
    ]


class Loops:
    """Tasks that run together and stop together; use it as an async context manager."""

    def __init__(self, mirrors: Iterable[WriteThroughCache[Any]], queues: Iterable[WorkQueue]) -> None:
        self._mirrors = list(mirrors)
        self.queues = list(queues)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Loops":
        self._tasks = [asyncio.create_task(one.informer.run()) for one in self._mirrors]
        # A controller that starts before the first list is complete would take half of it for the whole.
        for one in self._mirrors:
            await one.informer.wait_synced()
        self._tasks += [asyncio.create_task(one.run()) for one in self.queues]
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
        """Tell whether no loop has anything to do until something changes."""
        return all(queue.is_idle for queue in self.queues)
