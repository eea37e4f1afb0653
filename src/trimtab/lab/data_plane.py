"""Everything that makes a cluster live, as a client of it: controllers, nodes, load, metric values.

It runs on the lab's API server and on a real one; where the real controllers run, leave ours out.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType

from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab.lab.controllers.leader_labels import Elections
from trimtab.lab.controllers.manager import Loops, Mirrors, controller_queues
from trimtab.lab.load.load import Load
from trimtab.lab.load.plan import LoadPlan
from trimtab.lab.metrics.values import MetricValues
from trimtab.lab.nodes.agent import SAMPLE_SECONDS, NodeAgent, NodeSetting
from trimtab.lab.nodes.node_pool import NodePool
from trimtab.lab.nodes.pod_lifecycle import Timing

SETTLE_SECONDS = 3600.0
_LOOK_SECONDS = 0.05
_QUIET_LOOKS = 2


class NotSettledError(Exception):
    """Something was still moving when the time was up; the message says what."""


@dataclass(frozen=True)
class DataPlaneConfig:
    """How the workload side is set up."""

    pools: Sequence[NodePool] = (NodePool(),)
    timing: Timing = field(default_factory=Timing)
    plan: LoadPlan = field(default_factory=LoadPlan)
    sample_seconds: float = SAMPLE_SECONDS
    has_controllers: bool = True
    pace: WatchPace = field(default_factory=WatchPace)


class DataPlane:
    """Controllers, nodes and load on one cluster; use it as an async context manager."""

    def __init__(self, client: Client, setting: DataPlaneConfig = DataPlaneConfig()) -> None:  # noqa: B008 - a frozen value
        self.client = client
        self.values = MetricValues()
        self.mirrors = Mirrors(client, setting.pace)
        self.load = Load(client.clock.now(), self.values, setting.plan, holder=self._lease_holder)
        self.agent = NodeAgent(
            client.clock,
            self.mirrors.pods,
            self.mirrors.nodes,
            self.load,
            NodeSetting(setting.pools, setting.timing, setting.sample_seconds),
        )
        self.elections = Elections(client.clock, self.mirrors.pods, self.mirrors.leases, self.load)
        queues = [
            *(controller_queues(self.mirrors) if setting.has_controllers else ()),
            *self.agent.queues,
            self.elections.queue,
        ]
        self._loops = Loops(self.mirrors.running(has_controllers=setting.has_controllers), queues)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "DataPlane":
        async with AsyncExitStack() as stack:
            await self.agent.register()
            await stack.enter_async_context(self._loops)
            samples = asyncio.create_task(self.agent.run_samples())
            stack.push_async_callback(_stop, samples)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until nothing moves: no pod is starting or going, no controller has work."""
        deadline = self.client.clock.monotonic() + seconds
        quiet = 0
        while quiet < _QUIET_LOOKS:
            await self.client.clock.sleep(_LOOK_SECONDS)
            quiet = quiet + 1 if self._loops.is_idle else 0
            if self.client.clock.monotonic() > deadline:
                busy = [queue.name for queue in self._loops.queues if not queue.is_idle]
                raise NotSettledError(f"after {seconds:g} s there is still work to do: {', '.join(busy)}")

    def _lease_holder(self, namespace: str, name: str) -> str:
        lease = self.mirrors.leases.get(name, namespace)
        return lease.spec.holder_identity if lease is not None else ""


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
