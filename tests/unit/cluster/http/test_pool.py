"""Which connections a pool keeps and which it closes, in virtual time."""

import asyncio

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.dialer import Address, Dialer
from trimtab.cluster.http.messages import BadAnswerError, DeadlineError, EndedError
from trimtab.cluster.http.pool import ExchangeDeadline, Pool
from trimtab.cluster.transport import Deadlines

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
GET, PATCH = Message(b"GET", "GET"), Message(b"PATCH", "PATCH")
LIMITS = ExchangeDeadline(Deadlines())


class Wire:
    """The socket below a connection: answers each message after `delay`, and remembers how it ended."""

    def __init__(self, loop, connection, delay=0.0, *, closes=True):
        self.sent = []
        self.ended = ""
        self.answer = OK
        self._loop = loop
        self._connection = connection
        self._delay = delay
        self._closes = closes

    def write(self, data):
        self.sent.append(data)
        if self.answer:
            self._loop.call_later(self._delay, self._connection.data_received, self.answer)

    def set_protocol(self, protocol):
        raise NotImplementedError

    def pause_reading(self):
        raise NotImplementedError

    def resume_reading(self):
        raise NotImplementedError

    def is_closing(self):
        return bool(self.ended)

    def close(self):
        self.ended = self.ended or "closed"
        if self._closes:
            self._loop.call_soon(self._connection.connection_lost, None)

    def abort(self):
        self.ended = "aborted"
        self._loop.call_soon(self._connection.connection_lost, None)


class FakeDialer(Dialer):
    """Makes connections on such wires."""

    def __init__(self, **options):
        super().__init__(Address("http", "127.0.0.1", 80))
        self.wires = []
        self.seconds = []
        self.delay = 0.0
        self._options = options

    async def dial(self, context, seconds):
        self.seconds.append(seconds)
        await asyncio.sleep(self.delay)
        loop = asyncio.get_running_loop()
        connection = HttpConnection(loop)
        wire = Wire(loop, connection, **self._options)
        self.wires.append(wire)
        connection.attach(wire)
        return connection


def run(act, **options):
    clock = VirtualClock()

    async def main():
        dialer = FakeDialer(**options)
        pool = Pool(dialer)
        try:
            return await act(pool, dialer, clock)
        finally:
            await pool.close()

    return clock.run(main())


@pytest.mark.parametrize(("pause", "connections"), [(0.5, 1), (5.0, 1), (29.0, 1), (31.0, 2)])
def test_a_connection_is_kept_for_half_a_minute(pause, connections):
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        await clock.sleep(pause)
        await pool.fetch(GET, None, LIMITS)
        return len(dialer.wires)

    assert run(act) == connections


def test_a_connection_in_use_is_not_closed_for_being_old_and_an_idle_one_is():
    async def act(pool, dialer, clock):
        await clock.sleep(1)
        for _ in range(8):
            await pool.fetch(GET, None, LIMITS)
            await clock.sleep(10)
        ends = [wire.ended for wire in dialer.wires]
        await clock.sleep(61)
        return ends, [wire.ended for wire in dialer.wires], pool._sweeper

    assert run(act) == ([""], ["closed"], None)


def test_after_all_were_closed_new_ones_are_closed_as_well():
    async def act(pool, dialer, clock):
        for _ in range(2):
            await pool.fetch(GET, None, LIMITS)
            await clock.sleep(90)
        return [wire.ended for wire in dialer.wires]

    assert run(act) == ["closed", "closed"]


@pytest.mark.parametrize("pause", [0.1, 5.0], ids=["used lately", "idle"])
def test_connections_of_replaced_certificates_are_closed(pause):
    old, new = object(), object()

    async def act(pool, dialer, clock):
        await pool.fetch(GET, old, LIMITS)
        await clock.sleep(pause)
        await pool.fetch(GET, new, LIMITS)
        await clock.sleep(0)
        assert [wire.ended for wire in dialer.wires] == ["closed", ""]
        await pool.fetch(GET, new, LIMITS)
        return len(dialer.wires), len(pool._open)

    assert run(act) == (2, 1)


def test_a_dead_connection_before_a_working_one_is_passed_over():
    async def act(pool, dialer, clock):
        first = await pool.open(GET, None, LIMITS)
        second = await pool.open(GET, None, LIMITS)
        for connection in (first, second):
            async for _ in connection.chunks():
                pass
            pool.put_back(connection)
        second.connection_lost(None)
        await pool.fetch(GET, None, LIMITS)
        return len(dialer.wires)

    assert run(act) == 2


def test_the_end_of_an_idle_connection_is_quiet():
    """The event loop reports what a callback raises, and nobody waits for an idle connection."""

    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        (connection,) = pool._open
        connection.eof_received()
        connection.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
        connection.connection_lost(None)
        assert not connection.is_reusable
        await pool.fetch(GET, None, LIMITS)
        return len(dialer.wires)

    assert run(act) == 2


@pytest.mark.parametrize(("message", "connections"), [(GET, 2), (PATCH, 1)], ids=["a read", "a write"])
def test_only_a_read_is_repeated_when_a_used_connection_ends_without_a_byte(message, connections):
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        wire = dialer.wires[0]
        wire.answer = b""
        asyncio.get_running_loop().call_later(0.1, wire._connection.connection_lost, None)
        if message is GET:
            assert (await pool.fetch(message, None, LIMITS)).status == 200
        else:
            with pytest.raises(EndedError):
                await pool.fetch(message, None, LIMITS)
        return len(dialer.wires)

    assert run(act) == connections


@pytest.mark.parametrize(
    ("delay", "deadlines", "end", "want"),
    [
        pytest.param(14.0, Deadlines(5.0, 10.0, 30.0), 30.0, 200, id="the time to connect is left for it"),
        pytest.param(16.0, Deadlines(5.0, 10.0, 30.0), 30.0, DeadlineError, id="no byte in time"),
        pytest.param(9.0, Deadlines(5.0, 10.0, 8.0), 8.0, DeadlineError, id="the whole has less time"),
    ],
)
def test_an_answer_has_to_begin_in_time(delay, deadlines, end, want):
    async def act(pool, dialer, clock):
        limits = ExchangeDeadline(deadlines, clock.monotonic() + end)
        if want == 200:
            assert (await pool.fetch(GET, None, limits)).status == want
        else:
            with pytest.raises(want) as caught:
                await pool.fetch(GET, None, limits)
            assert not caught.value.had_begun

    run(act, delay=delay)


def test_a_watch_that_began_has_no_deadline():
    async def act(pool, dialer, clock):
        dialer._options["delay"] = 0.0
        connection = await pool.open(GET, None, ExchangeDeadline(Deadlines(), clock.monotonic() + 30))
        await clock.sleep(100)
        chunks = [chunk async for chunk in connection.chunks()]
        pool.put_back(connection)
        return chunks

    assert run(act) == [b"{}"]


@pytest.mark.parametrize(("end", "want"), [(2.0, 2.0), (20.0, 5.0)])
def test_connecting_has_its_own_deadline_and_that_of_the_whole(end, want):
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, ExchangeDeadline(Deadlines(5.0, 10.0, 30.0), clock.monotonic() + end))
        return dialer.seconds

    assert run(act) == [want]


def test_without_time_nothing_is_connected():
    async def act(pool, dialer, clock):
        with pytest.raises(DeadlineError, match="no time left to connect"):
            await pool.fetch(GET, None, ExchangeDeadline(Deadlines(), clock.monotonic()))
        return dialer.seconds

    assert run(act) == []


def test_an_unasked_word_ends_an_idle_connection_only():
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        (connection,) = pool._open
        connection.data_received(OK)
        assert isinstance(connection._ended, BadAnswerError)
        assert dialer.wires[0].ended == "aborted"
        return (await pool.fetch(GET, None, LIMITS)).status

    assert run(act) == 200


@pytest.mark.parametrize(("closes", "end", "seconds"), [(True, "closed", 0.0), (False, "aborted", 1.0)])
def test_closing_waits_a_second_for_a_farewell(closes, end, seconds):
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        began = clock.monotonic()
        await pool.close()
        return [wire.ended for wire in dialer.wires], clock.monotonic() - began

    assert run(act, closes=closes) == ([end], seconds)


def test_closing_leaves_no_timer():
    async def act(pool, dialer, clock):
        await pool.fetch(GET, None, LIMITS)
        sweeper = pool._sweeper
        await pool.close()
        return sweeper.cancelled(), pool._idle

    assert run(act) == (True, [])
