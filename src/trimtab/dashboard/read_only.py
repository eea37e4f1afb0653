"""Decides about HPAs for the page alone, while another replica or none acts on them.

It decides as the operator does, from the memory that the operator stored, and writes nothing. Its decisions are a few
seconds younger or older than the operator's. Next to an operator that may become the leader, it works only while that
operator does not lead.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import ClosedFence, Fence
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)


async def _always() -> bool:
    return True


class ReadOnlyDecider:
    """Decides about every HPA once per period while the fence is closed."""

    def __init__(
        self,
        clock: Clock,
        horizontal: HpaController,
        fence: Fence,
        period: float,
        is_connected: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self._clock = clock
        self._is_connected = is_connected
        self.horizontal = horizontal
        self._fence = fence
        self.period = period

    @property
    def is_active(self) -> bool:
        """Return whether the decisions on the page are made here and not written."""
        return not self._fence.may_write()

    async def run(self) -> None:
        """Decide once per period until cancelled.

        Without a cluster the last decisions stay. New ones would only say that no metric can be read.
        """
        while True:
            if self.is_active and self.horizontal.is_started and await self._is_connected():
                try:
                    await self.step()
                except errors.ClusterError as error:
                    log.warning("deciding for the dashboard failed: %s", error)
            await self._clock.sleep(self.period if self.horizontal.is_started else 1.0)

    async def step(self) -> None:
        """Decide about every HPA once. Stop as soon as this process leads.

        All metrics are fetched before the first decision. A cluster that is gone by then leaves the last decisions.
        """
        is_fetched = False
        async for hpa_state, record in self.horizontal.dry_run_all():
            is_fetched = is_fetched or await self._is_connected()
            if not is_fetched or not self.is_active:
                return
            if not hpa_state.is_deleted and record.observation.hpa.metadata.uid == hpa_state.uid:
                hpa_state.records.append(record)
            # Thousands of HPAs take a while; serve requests in between.
            await asyncio.sleep(0)


class ReadOnlyController:
    """An HPA controller that never acts, recreated when the operator's settings change.

    A controller chooses its kinds and namespaces when it starts, so a running one cannot change them.
    """

    def __init__(self, clock: Clock, client: Client, settings: Settings) -> None:
        self._clock = clock
        self._client = client
        self._settings = settings
        self.controller = self._build(settings)
        self._starting: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[HpaState]:
        yield from self.controller.hpas

    def start(self) -> None:
        """Start the informers in the background."""
        self._starting = asyncio.ensure_future(self.controller.start())

    async def apply_settings(self, settings: Settings) -> HpaController:
        """Return the controller for these settings. Raise ValueError if they are invalid."""
        if settings is not self._settings and settings != self._settings:
            controller = self._build(settings)
            was_started = self._starting is not None
            await self.close()
            self.controller, self._settings = controller, settings
            if was_started:
                self.start()
        return self.controller

    async def close(self) -> None:
        """Stop watching."""
        if self._starting is None:
            return
        self._starting.cancel()
        await asyncio.gather(self._starting, return_exceptions=True)
        self._starting = None
        await self.controller.close()
        await self.controller.runtime.close()

    def _build(self, settings: Settings) -> HpaController:
        runtime = Runtime(self._clock, self._client, settings, fence=ClosedFence())
        return HpaController(runtime, config=decision_config(settings))
