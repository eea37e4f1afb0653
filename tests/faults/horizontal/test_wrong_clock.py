"""A wrong clock of our own, or of a source, stops nothing: a sample is as old as the time since its date last moved."""

from datetime import timedelta

import pytest

from tests.faults.horizontal.scene import becomes, held, load, working
from tests.support.clock import in_virtual_time
from trimtab.model.times import format_time


@pytest.mark.parametrize("seconds", [150, -90, 86_400, -86_400], ids="our clock is {} s fast".format)
@in_virtual_time
async def test_workloads_are_scaled_whatever_the_clocks_of_the_sources_say(stage, seconds):
    await held(stage)
    stage.metrics.now = lambda: format_time(stage.clock.now() - timedelta(seconds=seconds))
    async with working(stage) as actor:
        await stage.pass_time(30)
        load(stage, 1000)
        await becomes(stage, 10)
        await stage.pass_time(60)
        load(stage, 300)
        await becomes(stage, 3)
        assert actor.operator.warnings() == {}


@in_virtual_time
async def test_an_exporter_that_stops_is_refused_whatever_its_date_was(stage):
    """Its date is ahead of ours, and would be for two hours."""
    await held(stage)
    stage.metrics.now = lambda: format_time(stage.clock.now() + timedelta(hours=2))
    async with working(stage):
        await stage.pass_time(60)
        last = format_time(stage.clock.now() + timedelta(hours=2))
        stage.metrics.now = lambda: last
        await stage.pass_time(200)
        load(stage, 1000)
        await stage.pass_time(60)
        assert await stage.replicas("web") == 5
        assert (await stage.conditions("web"))["ScalingActive"][0] == "False"


@in_virtual_time
async def test_the_old_zero_of_a_stopped_exporter_is_refused_by_who_takes_over(stage):
    """Its date never moved while we asked, so only the date says how old it is."""
    await held(stage)
    last = format_time(stage.clock.now() - timedelta(hours=2))
    stage.metrics.now = lambda: last
    load(stage, 0)
    async with working(stage):
        await stage.pass_time(400)
        assert await stage.replicas("web") == 5
        assert (await stage.conditions("web"))["ScalingActive"][0] == "False"
