"""Whole operator processes that share one Lease: each with its own line to the server and its own wall clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from tests.scenarios.horizontal.stage import Stage
from tests.support.transport import Line
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.resource import LEASES
from trimtab.cluster.transport import Request
from trimtab.operator.operator import Operator

PERIOD = 15.0
LEASE = "trimtab-horizontal-0"


class WallClock:
    """The clock of one machine: its date may be wrong or be set, its intervals are right."""

    def __init__(self, inner: Clock, ahead: float = 0.0) -> None:
        self._inner, self.ahead = inner, ahead
        self.monotonic, self.sleep = inner.monotonic, inner.sleep

    def now(self) -> datetime:
        return self._inner.now() + timedelta(seconds=self.ahead)


class Copy:
    """All of `trimtab run`, and its line to the server."""

    def __init__(self, stage: Stage, name: str, *, ahead: float = 0.0, **settings: Any) -> None:
        self.line = Line(stage.transport)
        self.clock = WallClock(stage.clock, ahead)
        usual: dict[str, Any] = {"leader_elect_resource_namespace": stage.namespace, "port": 0}
        chosen = stage.settings(sync_period=timedelta(seconds=PERIOD), **usual | settings)
        client = Client(self.clock, self.line, seed=len(name))
        self.operator = Operator(self.clock, client, chosen.replace(leader_elect=True))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self.operator.run())

    async def stop(self) -> None:
        """End in order, which releases the Lease."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def kill(self) -> None:
        """End at once: nothing that it still sends arrives."""
        self.line.crashed.set()
        await self.stop()

    def cut_off_from_its_lease(self) -> None:
        self.line.answer = lambda one: TransportError("no route to host") if is_about_leases(one) else None

    def mend(self) -> None:
        self.line.answer = lambda _: None


def is_about_leases(request: Request) -> bool:
    return f"/{LEASES.plural}" in request.path


@asynccontextmanager
async def running(copy: Copy) -> AsyncIterator[Copy]:
    copy.start()
    try:
        yield copy
    finally:
        await copy.stop()


async def holder(stage: Stage) -> str:
    try:
        return (await stage.client.get(LEASES, LEASE, stage.namespace)).spec.holder_identity
    except errors.NotFound:
        return ""


async def leads(stage: Stage) -> str:
    """Wait until a copy leads, and return which."""

    async def is_led() -> bool:
        return await holder(stage) != ""

    await stage.wait_for(is_led, 60)
    return await holder(stage)


async def moved(stage: Stage, before: str) -> None:
    """Wait until another copy leads."""

    async def has_moved() -> bool:
        return await holder(stage) not in ("", before)

    await stage.wait_for(has_moved, 60)
