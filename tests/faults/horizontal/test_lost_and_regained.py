"""A whole operator process that loses its lease and gets it back: what was decided meanwhile is its memory, too."""

from tests.faults.horizontal.copies import PERIOD, Copy, holder, moved, running
from tests.faults.horizontal.scene import becomes, held, load
from tests.support.clock import in_virtual_time

WINDOW = 120.0


@in_virtual_time
async def test_a_copy_that_lost_and_regained_the_lease_takes_up_stored_memory(stage):
    """Its own memory knows nothing of the peak that the other one saw, and would scale down at once."""
    await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": int(WINDOW)}})
    async with running(Copy(stage, "first")) as first:
        await stage.clock.sleep(2 * PERIOD)
        was = await holder(stage)
        first.cut_off_from_its_lease()
        async with running(Copy(stage, "the second")):
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
