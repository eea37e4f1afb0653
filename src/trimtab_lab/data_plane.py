"""The data plane: controllers, nodes, load and metric values, as clients of a cluster.

It runs on the lab's API server and on a real one. Switch its controllers off where the real ones run.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType

from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab_lab.controllers.base.caches import Caches
from trimtab_lab.controllers.leader_labels import LeaderElections
from trimtab_lab.controllers.manager import ControllerManager, workload_queues
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import LoadPlan
from trimtab_lab.metrics.values import MetricValues
from trimtab_lab.nodes.kubelet import Kubelet, NodeConfig
from trimtab_lab.nodes.scheduler import Scheduler

SETTLE_SECONDS = 3600.0
_POLL_SECONDS = 0.05
_IDLE_POLLS = 2


class NotSettledError(Exception):
    """Controllers still had work when the time was up. The message names them."""


@dataclass(frozen=True)
class DataPlaneConfig(NodeConfig):
    """The nodes, the load on them, and whether controllers run."""

    plan: LoadPlan = field(default_factory=LoadPlan)
    has_controllers: bool = True
    pace: WatchPace = field(default_factory=WatchPace)


class DataPlane:
    """Controllers, nodes and load on one cluster. Use it as an async context manager."""

    def __init__(self, client: Client, setting: DataPlaneConfig = DataPlaneConfig()) -> None:  # noqa: B008 - a frozen value
        self.client = client
        self.values = MetricValues()
        self.caches = Caches(client, setting.pace)
        self.load = Load(client.clock.now(), self.values, setting.plan, holder=self._lease_holder)
        scheduler = Scheduler(self.caches)
        self.kubelet = Kubelet(self.caches, self.load, setting)
        self.elections = LeaderElections(self.caches, self.load)
        self._manager = ControllerManager(
            self.caches.to_run(has_controllers=setting.has_controllers),
            [
                *(workload_queues(self.caches) if setting.has_controllers else ()),
                scheduler.queue,
                self.kubelet.queue,
                self.elections.queue,
            ],
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "DataPlane":
        async with AsyncExitStack() as stack:
            await self.kubelet.register()
            await stack.enter_async_context(self._manager)
            samples = asyncio.create_task(self.kubelet.run_samples())
            stack.push_async_callback(_stop, samples)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until no pod starts or stops and no controller has work."""
        deadline = self.client.clock.monotonic() + seconds
        idle_polls = 0
        while idle_polls < _IDLE_POLLS:
            await self.client.clock.sleep(_POLL_SECONDS)
            idle_polls = idle_polls + 1 if self._manager.is_idle else 0
            if self.client.clock.monotonic() > deadline:
                busy = [queue.name for queue in self._manager.queues if not queue.is_idle]
                raise NotSettledError(f"after {seconds:g} s there is still work to do: {', '.join(busy)}")

    def _lease_holder(self, namespace: str, name: str) -> str:
        lease = self.caches.leases.get(name, namespace)
        return lease.spec.holder_identity if lease is not None else ""


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
