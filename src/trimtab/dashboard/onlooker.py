"""Looks at a cluster's HPAs without acting on them: a dashboard with read rights only, in a process of its own.

It decides as the operator does, from the memory that the operator stored, and keeps the records to itself. Its
decisions are a few seconds younger or older than the operator's, and none of them is ever written.
"""

import asyncio
import logging

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.operator.horizontal.autoscalers import Autoscaler
from trimtab.operator.horizontal.component import HorizontalAutoscaler

log = logging.getLogger(__name__)


class Onlooker:
    """Decides about every HPA once per period, for the page alone; give the component a fence that is closed."""

    name = "dashboard"

    def __init__(self, clock: Clock, horizontal: HorizontalAutoscaler, period: float) -> None:
        self._clock = clock
        self._horizontal = horizontal
        self._period = period

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        return self._horizontal.health()

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            await self._horizontal.start()
            while True:
                await self.step()
                await self._clock.sleep(self._period)
        finally:
            await self._horizontal.close()

    async def step(self) -> None:
        """Decide about every HPA once."""
        autoscalers = self._horizontal.autoscalers
        # What is remembered belongs to whoever acts: each look begins with what they stored.
        autoscalers.start_over()
        for one in sorted(autoscalers, key=lambda one: one.key):
            if not one.is_gone:
                await self._look(one)
            # Thousands of them take a while, and the page wants to be answered meanwhile.
            await asyncio.sleep(0)

    async def _look(self, one: Autoscaler) -> None:
        try:
            record = await self._horizontal.glance(one.hpa.metadata.namespace, one.hpa.metadata.name)
        except (errors.ClusterError, ValueError) as error:
            log.warning("%s cannot be looked at: %s", one.key, error)
            return
        if record is not None and record.observation.hpa.metadata.uid == one.uid:
            one.records.append(record)
