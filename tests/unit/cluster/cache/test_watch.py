"""How long a watch lasts, and when its end counts as a failure, in virtual time."""

import json

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.watch import Watch, WatchBrokenError, WatchPace
from trimtab.cluster.client import EVERYTHING, Client
from trimtab.cluster.codec.objects import read_head
from trimtab.cluster.resource import PODS


class Silent(FakeApi):
    """Sends a line every `period` seconds for `lasting` seconds, then ends or goes on in silence."""

    def __init__(self, clock, period, lasting, *, ends=True):
        super().__init__()
        self.clock = clock
        self.period, self.lasting, self.ends = period, lasting, ends

    async def _watch(self, request, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        end = self.clock.monotonic() + self.lasting
        while self.period and self.clock.monotonic() < end:
            await self.clock.sleep(self.period)
            metadata = {"name": "a", "resourceVersion": "5"}
            await self._line(send, {"type": "ADDED", "object": {"kind": "Pod", "metadata": metadata}})
        await self.clock.sleep(max(end - self.clock.monotonic(), 0) if self.ends else 10_000)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def run(period, lasting, *, ends=True, takes=False, is_doubtful=False, pace=None):
    """Return the watch after its end, with its duration."""
    clock = VirtualClock()

    async def main():
        api = Silent(clock, period, lasting, ends=ends)
        pace_ = pace or WatchPace(40.0, 40.0)
        watch = Watch(Client(clock, AsgiTransport(api), seed=1), PODS, EVERYTHING, pace_)
        error = None
        try:
            async for _ in watch.events("1", is_doubtful=is_doubtful):
                if takes:
                    watch.progressed()
        except WatchBrokenError as broken:
            error = broken
        asked = int(api.requests[0].query["timeoutSeconds"])
        return watch, clock.monotonic(), asked, error

    return clock.run(main())


def test_the_times_of_a_watch():
    pace = WatchPace()
    assert (pace.shortest, pace.longest, pace.grace) == (35.0, 45.0, 10.0)
    assert (pace.short, pace.proof) == (5.0, 7.0)


def test_a_watch_asks_for_35_to_45_seconds():
    _, _, asked, _ = run(0, 40, pace=WatchPace())
    assert 35 <= asked <= 45


@pytest.mark.parametrize(("lasting", "ran"), [(40, True), (39, True), (38, False)])
def test_a_watch_ran_its_time_up_to_a_second(lasting, ran):
    watch, _, _, error = run(0, lasting)
    assert error is None
    assert watch.ran_its_time == ran
    assert watch.worked


def test_a_watch_that_goes_silent_is_left_ten_seconds_after_its_time():
    watch, ended, _, error = run(0, 0, ends=False)
    assert (ended, str(error)) == (50.0, "watching pods: nothing was heard for 50 s")
    assert not error.list_again
    assert watch.worked


def test_a_watch_that_is_heard_until_its_end_is_not_silent():
    _, ended, _, error = run(1, 45, ends=False)
    assert (ended, error) == (50.0, None)


@pytest.mark.parametrize(
    ("lasting", "takes", "breaks", "worked"),
    [
        pytest.param(4, False, True, False, id="ended soon, with nothing new"),
        pytest.param(4, True, False, False, id="ended soon, with news"),
        pytest.param(5, False, False, True, id="ended after five seconds"),
    ],
)
def test_a_watch_that_ends_soon_without_news_is_a_failure(lasting, takes, breaks, worked):
    watch, _, _, error = run(1, lasting, takes=takes)
    assert (error is not None) == breaks
    assert watch.worked == worked


def test_the_first_watch_after_a_failure_is_short():
    assert run(0, 7, is_doubtful=True)[2] == 7


def events(line, *, code=200):
    clock = VirtualClock()
    api = FakeApi()
    body = line if isinstance(line, bytes) else json.dumps(line).encode()
    api.fault = lambda request: Answer(code, body + b"\n")

    async def main():
        watch = Watch(Client(clock, AsgiTransport(api), seed=1), PODS, EVERYTHING, WatchPace(short=0.0))
        return [event async for event in watch.events("1")]

    return clock.run(main())


def test_an_error_of_a_watch_is_raised_as_such():
    with pytest.raises(errors.Gone):
        events({"type": "ERROR", "object": status(410, "Expired")})


def test_a_line_that_is_no_event_needs_a_list():
    with pytest.raises(WatchBrokenError) as caught:
        events(b"{")
    assert caught.value.list_again


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (b'{"metadata":{"resourceVersion":"7","continue":"c"},', ("7", "c")),
        (b'{"metadata":{"resourceVersion":"7"}', ("7", "")),
        (b'{"metadata":{"resourceVersion', None),
        (b"<html>", None),
    ],
)
def test_the_head_of_a_list_is_read_from_its_beginning(text, want):
    found = read_head(text)
    assert (found and (found.resource_version, found.continue_)) == want
