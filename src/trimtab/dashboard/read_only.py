"""Looks at a cluster's HPAs without acting on them, wherever another copy or nobody acts.

It decides as the operator does, from the memory that the operator stored, and keeps the records to itself. Its
decisions are a few seconds younger or older than the operator's, and none of them is ever written. Beside an operator
that may become the leader it works only while that operator does not lead.
"""

import asyncio
import logging
from collections.abc import Iterator

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import ClosedFence, Fence
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.inputs.hpa_state import HpaState
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)


class ReadOnlyDecider:
    """Decides about every HPA once per period, for the page alone, while the fence is closed."""

    def __init__(self, clock: Clock, horizontal: HpaController, fence: Fence, period: float) -> None:
        self._clock = clock
        self.horizontal = horizontal
        self._fence = fence
        self.period = period

    @property
    def looks(self) -> bool:
        """Return whether what is shown now is decided here and by nobody who acts."""
        return not self._fence.may_write()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self.looks and self.horizontal.is_started:
                try:
                    await self.step()
                except errors.ClusterError as error:
                    log.warning("the cluster cannot be looked at: %s", error)
            await self._clock.sleep(self.period if self.horizontal.is_started else 1.0)

    async def step(self) -> None:
        """Decide about every HPA once; stop as soon as this process leads."""
        async for one, record in self.horizontal.dry_run_all():
            if not self.looks:
                return
            if not one.is_deleted and record.observation.hpa.metadata.uid == one.uid:
                one.records.append(record)
            # Thousands of them take a while, and the page wants to be answered meanwhile.
            await asyncio.sleep(0)


class LookingCopy:
    """A component that never acts, made anew whenever the settings of the operator that acts change.

    Which kinds and namespaces are watched is settled when a component starts, so a running one cannot take them up.
    """

    def __init__(self, clock: Clock, client: Client, settings: Settings) -> None:
        self._clock = clock
        self._client = client
        self._settings = settings
        self.component = self._made(settings)
        self._starting: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[HpaState]:
        yield from self.component.hpas

    def start(self) -> None:
        """Begin to watch; the first lists come in meanwhile."""
        self._starting = asyncio.ensure_future(self.component.start())

    async def adopt(self, settings: Settings) -> HpaController:
        """Return the component that goes by these settings; raise ValueError if they are wrong."""
        if settings is not self._settings and settings != self._settings:
            fresh = self._made(settings)
            was_started = self._starting is not None
            await self.close()
            self.component, self._settings = fresh, settings
            if was_started:
                self.start()
        return self.component

    async def close(self) -> None:
        """Stop watching."""
        if self._starting is None:
            return
        self._starting.cancel()
        await asyncio.gather(self._starting, return_exceptions=True)
        self._starting = None
        await self.component.close()
        await self.component.runtime.close()

    def _made(self, settings: Settings) -> HpaController:
        runtime = Runtime(self._clock, self._client, settings, fence=ClosedFence())
        return HpaController(runtime, config=decision_config(settings))
