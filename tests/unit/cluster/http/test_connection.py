"""A connection without a socket: what it accepts before, during and after an exchange."""

import asyncio
import ssl

import pytest

from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.messages import BadAnswerError, DeadlineError, EndedError, FenceClosedError
from trimtab.cluster.http.tls import TlsWire

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
GET = Message(b"GET", "GET")


class Wire:
    """A socket that remembers what is done to it."""

    def __init__(self):
        self.done: list[str] = []

    def set_protocol(self, protocol):
        raise NotImplementedError

    def write(self, data):
        self.done.append("write")

    def is_closing(self):
        return "close" in self.done or "abort" in self.done

    def close(self):
        self.done.append("close")

    def abort(self):
        self.done.append("abort")

    def pause_reading(self):
        self.done.append("pause")

    def resume_reading(self):
        self.done.append("resume")


def connected():
    connection, wire = HttpConnection(asyncio.get_running_loop()), Wire()
    connection.attach(wire)
    return connection, wire


async def test_a_new_connection_can_be_used_once_it_has_a_socket():
    connection = HttpConnection(asyncio.get_running_loop())
    before = connection.is_reusable
    connection.attach(Wire())
    assert (before, connection.is_reusable, connection.is_used) == (False, True, False)


async def test_a_server_that_speaks_first_loses_a_new_connection():
    connection, wire = connected()
    connection.data_received(b"220 mail.example ready\r\n")
    assert wire.done == ["abort"]
    with pytest.raises(BadAnswerError, match="spoke unasked"):
        await connection.start(GET, whole=True)


async def test_a_connection_is_busy_from_the_request_to_the_end_of_the_answer():
    connection, _ = connected()
    answer = connection.start(GET, whole=True)
    assert not connection.is_reusable
    connection.data_received(OK[:20])
    assert not answer.done()
    connection.data_received(OK[20:])
    await answer
    assert (connection.status, connection.headers["content-length"]) == (200, "2")
    assert connection.finish() == b"{}"
    assert connection.is_reusable
    assert connection.is_used


async def test_a_closed_fence_sends_nothing_and_leaves_the_connection():
    connection, wire = connected()
    with pytest.raises(FenceClosedError):
        await connection.start(Message(b"PATCH", "PATCH", may_send=lambda: False), whole=True)
    assert wire.done == []
    assert connection.is_reusable


@pytest.mark.parametrize(("sent", "had_begun"), [(b"", False), (OK[:-1], True)])
async def test_a_deadline_says_whether_the_answer_had_begun(sent, had_begun):
    connection, wire = connected()
    answer = connection.start(GET, whole=True)
    if sent:
        connection.data_received(sent)
    connection.expire()
    with pytest.raises(DeadlineError) as caught:
        await answer
    assert caught.value.had_begun == had_begun
    assert wire.done == ["write", "abort"]


@pytest.mark.parametrize(("sent", "untouched"), [(b"", True), (b"HTTP", False)])
@pytest.mark.parametrize("how", ["eof", "lost"])
async def test_an_end_says_whether_a_byte_of_the_answer_arrived(sent, untouched, how):
    connection, _ = connected()
    answer = connection.start(GET, whole=True)
    if sent:
        connection.data_received(sent)
    if how == "eof":
        connection.eof_received()
    connection.connection_lost(None)
    with pytest.raises(EndedError) as caught:
        await answer
    assert caught.value.untouched == untouched
    assert connection.closed.done()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "the server ended the connection"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (RuntimeError("broken"), "broken"),
        (RuntimeError(), "RuntimeError"),
    ],
)
async def test_the_end_of_a_connection_has_its_reason(error, words):
    connection, _ = connected()
    answer = connection.start(GET, whole=True)
    connection.connection_lost(error)
    with pytest.raises(EndedError) as caught:
        await answer
    assert str(caught.value) == words
    assert caught.value.__cause__ is error


async def test_a_stream_that_nobody_reads_is_paused_and_resumed_once():
    connection, wire = connected()
    answer = connection.start(GET, whole=False)
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    await answer
    chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
    for _ in range(2):
        connection.data_received(chunk)
    assert wire.done == ["write"]
    for _ in range(3):
        connection.data_received(chunk)
    assert wire.done == ["write", "pause"]
    chunks = connection.chunks()
    assert len(await anext(chunks)) == 0x80000
    assert wire.done == ["write", "pause", "resume"]
    await chunks.aclose()


async def test_a_connection_that_the_server_will_close_is_not_used_again():
    connection, wire = connected()
    answer = connection.start(GET, whole=True)
    connection.data_received(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    await answer
    connection.finish()
    assert wire.done == ["write", "close"]
    assert not connection.is_reusable


class Above(asyncio.Protocol):
    def __init__(self):
        self.lost: list[Exception | None] = []

    def connection_lost(self, exc):
        self.lost.append(exc)


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
async def test_the_loss_of_a_socket_under_tls_keeps_its_reason(error):
    above = Above()
    layer = TlsWire(Wire(), above, ssl.create_default_context(), "host.example")
    shaking = asyncio.ensure_future(layer.handshake())
    await asyncio.sleep(0)
    layer.connection_lost(error)
    with pytest.raises(ConnectionResetError) as caught:
        await shaking
    assert above.lost == [error]
    assert str(caught.value) == (str(error) if error else "ended during the TLS handshake")
