"""Slots of writes: scales first, every slot comes back, and no namespace takes all of them."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trimtab.clock import VirtualClock
from trimtab.operator.horizontal.write_slots import SHARES, WriteSlots


def test_a_scale_that_comes_last_goes_before_every_status_that_waits():
    went: list[str] = []

    async def main() -> None:
        slots = WriteSlots(1)

        async def write(name: str, *, is_scale: bool) -> None:
            async with slots.for_scale("shop") if is_scale else slots.for_status("shop"):
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


def test_a_namespace_whose_writes_hang_keeps_no_other_waiting():
    """All slots were one queue: 16 hanging scales of one tenant stopped the writes of everybody for 10 s."""
    clock = VirtualClock()

    async def main() -> None:
        slots = WriteSlots(16)

        async def hang() -> None:
            async with slots.for_scale("stuck"):
                await asyncio.Event().wait()

        stuck = [asyncio.ensure_future(hang()) for _ in range(200)]
        await clock.sleep(1)
        for number in range(100):
            async with slots.for_scale(f"n{number % 7}"), slots.for_status(f"n{number % 7}"):
                assert clock.monotonic() == 1
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        assert (slots._free, slots._held, slots._grant_next(slots._scales)) == (16, {}, False)

    clock.run(main())


def test_a_namespace_that_has_its_share_is_passed_over():
    """Two writes of `busy` wait before one of `shop`. The slot that comes back is not for `busy`, which hangs."""
    clock = VirtualClock()
    went: list[str] = []

    async def main() -> None:
        slots = WriteSlots(2 * SHARES)
        share = 2

        async def write(namespace: str, seconds: float) -> None:
            async with slots.for_scale(namespace):
                went.append(namespace)
                await clock.sleep(seconds)

        others = [f"n{number}" for number in range(SHARES - 1) for _ in range(share)]
        begun = [("busy", 1000.0), ("busy", 1000.0), *((name, 10.0) for name in others)]
        tasks = [asyncio.ensure_future(write(*each)) for each in begun]
        await clock.sleep(1)
        tasks += [asyncio.ensure_future(write(name, 1.0)) for name in ("busy", "busy", "shop")]
        await clock.sleep(2)
        assert "shop" not in went
        await clock.sleep(8)
        assert went.count("busy") == share
        assert went.count("shop") == 1
        await asyncio.gather(*tasks)
        assert went.count("busy") == 2 * share

    clock.run(main())


WRITERS = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 5), st.integers(1, 5), st.booleans()),
    max_size=30,
)


@given(st.integers(1, 9), WRITERS)
def test_slots_are_given_back_whoever_is_cancelled(most, writers):
    busy: Counter[str] = Counter()
    seen: list[tuple[int, int]] = [(0, 0)]

    async def main() -> None:
        slots = WriteSlots(most)

        async def write(is_scale: bool, namespace: str, wait: int, seconds: int) -> None:
            await asyncio.sleep(wait)
            async with slots.for_scale(namespace) if is_scale else slots.for_status(namespace):
                busy[namespace] += 1
                seen.append((busy.total(), max(busy.values())))
                try:
                    await asyncio.sleep(seconds)
                finally:
                    busy[namespace] -= 1

        tasks = [asyncio.ensure_future(write(*writer[:4])) for writer in writers]
        await asyncio.sleep(3)
        for task, (*_, is_cancelled) in zip(tasks, writers, strict=True):
            if is_cancelled:
                task.cancel()
        async with asyncio.timeout(1000):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots._free, slots._held) == (most, {})

    VirtualClock().run(main())
    assert max(total for total, _ in seen) <= most
    assert max(largest for _, largest in seen) <= max(most // SHARES, 1)
