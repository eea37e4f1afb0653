"""F30: a process without descriptors, memory, log or disk says so where it can, and goes on deciding."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.horizontal.scene import EXTERNAL, becomes, held, load, queue
from tests.faults.processes.program import Program, Scarcity, started
from tests.scenarios.horizontal.stage import Stage

MIB = 1024 * 1024
NO_LEASE = "--no-leader-elect"
NOBODY_WRITES_HERE = "/proc/self/fd"


async def still_decides(stage: Stage, replicas: int) -> None:
    load(stage, replicas * 100)
    await becomes(stage, replicas)


@asynccontextmanager
async def callers(program: Program, count: int) -> AsyncIterator[int]:
    """Connections to its port from people who then say nothing; gives how many were taken."""
    opened: list[asyncio.StreamWriter] = []
    try:
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", program.port)
            opened.append(writer)
        yield len(opened)
    finally:
        for writer in opened:
            writer.close()


def test_f30_64_descriptors_and_more_callers_than_that(both, tmp_path: Path):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        few = Scarcity(limits={resource.RLIMIT_NOFILE: 64})
        async with started(stage, tmp_path, NO_LEASE, scarce=few) as program:
            await still_decides(stage, 6)
            async with callers(program, 100):
                await still_decides(stage, 8)
                await still_decides(stage, 7)
            await stage.wait_for(program.is_live)
            assert await program.end() == 0
            assert "Traceback" not in program.said

    both(scenario)


def test_f30_f43_256_mib_of_address_space_and_an_answer_that_does_not_fit(both, tmp_path: Path):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        await held(stage, "huge", metrics=[queue("huge")])
        small = Scarcity(limits={resource.RLIMIT_AS: 256 * MIB})
        async with started(stage, tmp_path, NO_LEASE, scarce=small) as program:
            await still_decides(stage, 6)
            path = f"/apis/{EXTERNAL}/v1beta1/namespaces/{stage.namespace}/queue-huge"
            stage.metrics.raw[path] = {"items": [], "filler": "x" * 40 * MIB}

            async def is_told() -> bool:
                return (await stage.conditions("huge")).get("ScalingActive", ("", ""))[0] == "False"

            await stage.wait_for(is_told)
            await still_decides(stage, 8)
            assert await stage.replicas("huge") == 5
            assert await program.end() == 0

    both(scenario)


@pytest.mark.parametrize(
    "scarce",
    [
        pytest.param(Scarcity(stderr="/dev/full"), id="F30 a log that is full"),
        pytest.param(Scarcity(home=NOBODY_WRITES_HERE), id="F30 a disk that nobody can write to"),
    ],
)
def test_a_process_that_cannot_write_anywhere_goes_on_deciding(both, tmp_path: Path, scarce: Scarcity):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with started(stage, tmp_path, NO_LEASE, scarce=scarce) as program:
            for replicas in (6, 8, 7):
                await still_decides(stage, replicas)
            assert await program.end() == 0

    both(scenario)
