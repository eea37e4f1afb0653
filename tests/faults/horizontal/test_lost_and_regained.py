"""A whole operator process that loses its lease and gets it back: what was decided meanwhile is its memory, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from tests.faults.horizontal.scene import becomes, held, load
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.line import Line
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.resources import LEASES
from trimtab.cluster.transport import Request
from trimtab.operator.assembly import Operator

PERIOD, WINDOW = 15.0, 120.0
LEASE = "trimtab-horizontal"


class Process:
    """All of `trimtab run`, and its line to the server."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.line = Line(stage.transport)
        settings = stage.settings(
            sync_period=timedelta(seconds=PERIOD), port=0, leader_elect_resource_namespace=stage.namespace
        )
        client = Client(stage.clock, self.line, seed=len(name))
        self.operator = Operator(stage.clock, client, replace(settings, leader_elect=True))

    def cut_off_from_its_lease(self) -> None:
        self.line.answer = lambda one: TransportError("no route to host") if is_about_leases(one) else None

    def mend(self) -> None:
        self.line.answer = lambda _: None


def is_about_leases(request: Request) -> bool:
    return f"/{LEASES.plural}" in request.path


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[Process]:
    task = asyncio.ensure_future(process.operator.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def holder(stage: Stage) -> str:
    return (await stage.client.get(LEASES, LEASE, stage.namespace)).spec.holder_identity


async def moved(stage: Stage, before: str) -> None:
    """Wait until another one leads."""

    async def has_moved() -> bool:
        return await holder(stage) not in ("", before)

    await stage.wait_for(has_moved, 60)


def test_a_copy_that_lost_and_regained_the_lease_takes_up_stored_memory(lab):
    """Its own memory knows nothing of the peak that the other one saw, and would scale down at once."""

    async def scenario(stage: Stage) -> None:
        await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": int(WINDOW)}})
        async with running(Process(stage, "first")) as first:
            await stage.clock.sleep(2 * PERIOD)
            was = await holder(stage)
            first.cut_off_from_its_lease()
            async with running(Process(stage, "second")):
                await moved(stage, was)
                load(stage, 900)
                await becomes(stage, 9, within=2 * PERIOD)
                await stage.follow("web")
                peak = stage.clock.monotonic()
                load(stage, 500)
                await stage.clock.sleep(PERIOD + 1)
                assert await stage.replicas("web") == 9
                first.mend()
            await stage.clock.sleep(5)
            assert await holder(stage) == was
            while await stage.replicas("web") == 9:
                await stage.clock.sleep(1)
                assert stage.clock.monotonic() - peak < 2 * WINDOW
            # The window is the one that the other copy began: neither cut short nor begun again.
            assert WINDOW - PERIOD <= stage.clock.monotonic() - peak <= WINDOW + 2 * PERIOD
            assert await stage.replicas("web") == 5

    lab(scenario)
