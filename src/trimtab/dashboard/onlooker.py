"""Looks at a cluster's HPAs without acting on them, wherever another copy or nobody acts.

It decides as the operator does, from the memory that the operator stored, and keeps the records to itself. Its
decisions are a few seconds younger or older than the operator's, and none of them is ever written. Beside an operator
that may become the leader it works only while that operator does not lead.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.fence import Fence
from trimtab.operator.horizontal.component import HorizontalAutoscaler

log = logging.getLogger(__name__)


class Onlooker:
    """Decides about every HPA once per period, for the page alone, while the fence is closed."""

    def __init__(self, clock: Clock, horizontal: HorizontalAutoscaler, fence: Fence, period: float) -> None:
        self._clock = clock
        self._horizontal = horizontal
        self._fence = fence
        self._period = period

    @property
    def looks(self) -> bool:
        """Return whether what is shown now is decided here and by nobody who acts."""
        return not self._fence.may_write()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self.looks and self._horizontal.is_started:
                try:
                    await self.step()
                except errors.ClusterError as error:
                    log.warning("the cluster cannot be looked at: %s", error)
            await self._clock.sleep(self._period if self._horizontal.is_started else 1.0)

    async def step(self) -> None:
        """Decide about every HPA once; stop as soon as this process leads."""
        # What is remembered belongs to whoever acts, and is taken from the objects as they are stored.
        self._horizontal.autoscalers.start_over()
        async for one, record in self._horizontal.look_on():
            if not self.looks:
                return
            one.is_resumed = False
            if not one.is_gone and record.observation.hpa.metadata.uid == one.uid:
                one.records.append(record)
            # Thousands of them take a while, and the page wants to be answered meanwhile.
            await asyncio.sleep(0)


@asynccontextmanager
async def started(horizontal: HorizontalAutoscaler) -> AsyncIterator[None]:
    """Keep the caches of a component that never acts while the context lasts."""
    starting = asyncio.ensure_future(horizontal.start())
    try:
        yield
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await horizontal.close()
