"""Scales go before statuses, never more at a time than there are slots, and none is lost to a cancelled writer."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from trimtab.clock import VirtualClock
from trimtab.operator.horizontal.writer import WriteSlots


def test_a_scale_that_comes_last_goes_before_every_status_that_waits():
    went: list[str] = []

    async def main() -> None:
        slots = WriteSlots(1)

        async def write(name: str, *, is_scale: bool) -> None:
            async with slots.for_scale() if is_scale else slots.for_status():
                went.append(name)
                await asyncio.sleep(1)

        writes = [
            write("first", is_scale=False),
            write("status", is_scale=False),
            write("scale", is_scale=True),
        ]
        await asyncio.gather(*writes)

    VirtualClock().run(main())
    assert went == ["first", "scale", "status"]


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 5), st.booleans()), max_size=20),
)
def test_slots_are_given_back_whoever_is_cancelled(most, writers):
    busy: list[int] = [0, 0]

    async def main() -> None:
        slots = WriteSlots(most)

        async def write(is_scale: bool, wait: int, seconds: int) -> None:
            await asyncio.sleep(wait)
            async with slots.for_scale() if is_scale else slots.for_status():
                busy[0] += 1
                busy[1] = max(busy)
                try:
                    await asyncio.sleep(seconds)
                finally:
                    busy[0] -= 1

        tasks = [asyncio.ensure_future(write(*one[:3])) for one in writers]
        await asyncio.sleep(3)
        for task, (*_, is_cancelled) in zip(tasks, writers, strict=True):
            if is_cancelled:
                task.cancel()
        async with asyncio.timeout(1000):
            await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(most):  # every slot is free again
            async with asyncio.timeout(1):
                await slots._take(slots._scales)

    VirtualClock().run(main())
    assert busy[0] == 0
    assert busy[1] <= most
