"""A meter counts the steps of what it runs, and nothing that runs meanwhile."""

import asyncio

import pytest

from trimtab.clock import CpuMeter


class Cpu:
    """A CPU clock that work moves by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.meter = CpuMeter(lambda: self.seconds)

    def work(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_coroutine_is_measured_without_the_tasks_that_run_while_it_waits():
    cpu = Cpu()

    async def measured() -> str:
        cpu.work(1)
        await asyncio.sleep(0)
        cpu.work(2)
        return "done"

    async def other() -> None:
        cpu.work(100)

    async def main() -> str:
        running = asyncio.ensure_future(other())
        result = await cpu.meter.run(measured())
        await running
        return result

    assert asyncio.run(main()) == "done"
    assert cpu.meter.seconds == 3


def test_an_error_is_raised_and_its_step_is_counted():
    cpu = Cpu()

    async def failing() -> None:
        cpu.work(1)
        await asyncio.sleep(0)
        cpu.work(2)
        raise ValueError("broken")

    async def main() -> None:
        await cpu.meter.run(failing())

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(main())
    assert cpu.meter.seconds == 3


def test_a_cancellation_reaches_the_coroutine():
    cpu = Cpu()
    ended: list[str] = []

    async def waiting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cpu.work(1)
            ended.append("cleaned up")

    async def main() -> None:
        async def run() -> None:
            await cpu.meter.run(waiting())

        task = asyncio.ensure_future(run())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cleaned up"]
    assert cpu.meter.seconds == 1
