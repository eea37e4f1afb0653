"""A wrong clock of our own stops nothing and is reported; a wrong clock of one source still stops that source."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime

import pytest

from tests.faults.horizontal.scene import becomes, held, load, working
from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from trimtab.cluster.transport import Request, Response, ResponseStream, Transport
from trimtab.decide.horizontal.explain import explain
from trimtab.decide.horizontal.records.record import dumps, loads, replay
from trimtab.model.times import format_time
from trimtab.operator.health import HealthApp


class Dated:
    """A transport whose server has a clock of its own."""

    def __init__(self, inner: Transport, stage: Stage, offset: float) -> None:
        self._inner = inner
        self._stage = stage
        self.offset = timedelta(seconds=offset)

    async def request(self, request: Request) -> Response:
        answer = await self._inner.request(request)
        date = format_datetime(self._stage.clock.now() + self.offset, usegmt=True)
        return Response(answer.status, {**answer.headers, "date": date}, answer.body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()


def shift(stage: Stage, *, server: float, sources: float) -> Dated:
    """Set the clocks of the API server and of the metrics sources, relative to ours."""
    dated = Dated(stage.transport, stage, server)
    stage.transport = dated  # type: ignore[assignment]  # any transport will do
    stage.metrics.now = lambda: format_time(stage.clock.now() + timedelta(seconds=sources))
    return dated


@pytest.mark.parametrize("seconds", [150, -90, 86_400], ids="our clock is {} s fast".format)
@in_virtual_time
async def test_with_a_wrong_clock_of_our_own_workloads_are_scaled_and_it_is_reported(stage, caplog, seconds):
    await held(stage)
    dated = shift(stage, server=-seconds, sources=-seconds - 10)
    caplog.set_level(logging.INFO)
    async with working(stage) as actor:
        await stage.pass_time(30)
        load(stage, 1000)
        await becomes(stage, 10)
        await stage.pass_time(60)
        load(stage, 300)
        await becomes(stage, 3)
        assert (await stage.conditions("web"))["OperatorClockWrong"] == ("True", "ClockDiffers")
        assert actor.count("trimtab_clock_offset_seconds") == -seconds
        status, _, body = HealthApp([actor.operator], actor.registry)._readiness(names=True, verbose=True)
        assert status == 200
        assert b"the clock of Trimtab is about" in body
        hpa_state = actor.operator.hpas.named(stage.namespace, "web")
        assert hpa_state is not None
        record = hpa_state.records[-1]
        assert "clock: the clock of Trimtab" in str(explain(record))
        assert dumps(replay(loads(dumps(record)))) == dumps(record)
        lines = [line for line in caplog.messages if line == "clock is wrong"]
        assert len(lines) == 1, "once, not in every sync"
        # The clock is set.
        stage.metrics.now = lambda: format_time(stage.clock.now())
        dated.offset = timedelta(0)
        await stage.pass_time(60)
        load(stage, 700)
        await becomes(stage, 7)
        assert "OperatorClockWrong" not in await stage.conditions("web")


@in_virtual_time
async def test_a_source_whose_clock_alone_is_wrong_is_still_refused(stage):
    await held(stage)
    shift(stage, server=0, sources=-600)
    async with working(stage) as actor:
        await stage.pass_time(30)
        load(stage, 1000)
        await stage.pass_time(120)
        assert await stage.replicas("web") == 5
        assert (await stage.conditions("web"))["ScalingActive"][0] == "False"
        assert actor.operator.warnings() == {}


@in_virtual_time
async def test_upstreams_rules_look_at_no_clock(stage):
    await held(stage)
    shift(stage, server=-150, sources=-160)
    async with working(stage, compat="kubernetes-1.36"):
        await stage.pass_time(30)
        load(stage, 1000)
        await becomes(stage, 10)
        assert "OperatorClockWrong" not in await stage.conditions("web")


def test_the_dates_of_an_api_server_show_that_our_clock_is_wrong(both):
    """On the real server the dates are its own, and our clock is set."""

    async def scenario(stage: Stage) -> None:
        await held(stage)
        if isinstance(stage.clock, ShiftedClock):
            stage.clock.advance(150)
            stage.metrics.now = lambda: format_time(stage.clock.now() - timedelta(seconds=160))
        else:
            shift(stage, server=-150, sources=-160)
        async with working(stage, period=1) as actor:
            load(stage, 1000)
            await becomes(stage, 10)
            assert "clock" in actor.operator.warnings()

    both(scenario)
