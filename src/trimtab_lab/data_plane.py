"""The data plane: nodes, scheduler, elections, load and metric values, as clients of a cluster.

It runs on the lab's API server and on a real one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab_lab.controllers.controller import stop
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import LoadPlan
from trimtab_lab.metrics.values import MetricValues
from trimtab_lab.nodes.caches import Caches
from trimtab_lab.nodes.elections import LeaderElections
from trimtab_lab.nodes.kubelet import Kubelet, NodeConfig
from trimtab_lab.nodes.scheduler import Scheduler

SETTLE_SECONDS = 3600.0
_POLL_SECONDS = 0.05
_IDLE_POLLS = 2


class NotSettledError(Exception):
    """There was still work when the time was up. The message names who has it."""


@dataclass(frozen=True)
class DataPlaneConfig(NodeConfig):
    """The nodes, and the load on them."""

    plan: LoadPlan = field(default_factory=LoadPlan)
    pace: WatchPace = field(default_factory=WatchPace)


class DataPlane:
    """Nodes and load on one cluster. Use it as an async context manager.

    `controllers` are the queues of a server in this process; `settle` waits for them too.
    """

    def __init__(
        self,
        client: Client,
        setting: DataPlaneConfig = DataPlaneConfig(),  # noqa: B008 - a frozen value
        controllers: Sequence[WorkQueue] = (),
    ) -> None:
        self.client = client
        self.values = MetricValues()
        self.caches = Caches(client, setting.pace)
        self.load = Load(client.clock.now(), self.values, setting.plan, holder=self._lease_holder)
        self.kubelet = Kubelet(self.caches, self.load, setting)
        self.elections = LeaderElections(self.caches, self.load)
        self._queues = [Scheduler(self.caches).queue, self.kubelet.queue, self.elections.queue]
        self._controllers = controllers
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "DataPlane":
        await self.kubelet.register()
        self._tasks = [asyncio.create_task(cache.informer.run()) for cache in self.caches.all]
        # A queue that runs before the first list is complete would act on a part of the objects.
        for cache in self.caches.all:
            await cache.informer.wait_synced()
        self._tasks += [asyncio.create_task(queue.run()) for queue in self._queues]
        self._tasks.append(asyncio.create_task(self.kubelet.run_samples()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop(self._tasks, self._queues)

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until no pod starts or stops and no controller has work."""
        deadline = self.client.clock.monotonic() + seconds
        idle_polls = 0
        while idle_polls < _IDLE_POLLS:
            await self.client.clock.sleep(_POLL_SECONDS)
            busy = [queue.name for queue in (*self._controllers, *self._queues) if not queue.is_idle]
            idle_polls = 0 if busy else idle_polls + 1
            if self.client.clock.monotonic() > deadline:
                raise NotSettledError(f"after {seconds:g} s there is still work to do: {', '.join(busy)}")

    def _lease_holder(self, namespace: str, name: str) -> str:
        lease = self.caches.leases.get(name, namespace)
        return lease.spec.holder_identity if lease is not None else ""
