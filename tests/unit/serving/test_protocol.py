"""The deadlines of a connection's phases, in virtual time: no byte that arrives extends one of them."""

import asyncio
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from trimtab.clock import VirtualClock
from trimtab.serving.connections import ClientLimits, Connections
from trimtab.serving.protocol import BoundedProtocol

LIMITS = ClientLimits(head_bytes=1000, head_lines=20, body_bytes=10_000)
POST = b"POST /review HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
CHUNKED = b"POST /review HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """A connection in memory. `reads` says whether the client reads what it is sent."""

    def __init__(self, reads: bool = True) -> None:
        super().__init__()
        self.sent = b""
        self.reads = reads
        self.protocol: Any = None
        self.ended_at: float | None = None

    def write(self, data: Any) -> None:
        self.sent += data
        if not self.reads and len(self.sent) > 100 and self.ended_at is None:
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return 0 if self.reads else len(self.sent)

    def is_closing(self) -> bool:
        return self.ended_at is not None

    def close(self) -> None:
        if self.reads:
            self.abort()

    def abort(self) -> None:
        if self.ended_at is None:
            self.ended_at = asyncio.get_running_loop().time()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class Client:
    """A client of a server in memory."""

    def __init__(
        self,
        app: Any,
        limits: ClientLimits = LIMITS,
        *,
        reads: bool = True,
        address: str = "client",
        connections: Connections | None = None,
    ) -> None:
        self.connections = Connections(limits) if connections is None else connections
        connection = self.connections.open(address, 0.0)
        assert connection is not None
        self.connection = connection
        config = Config(app, http="httptools", ws="none", lifespan="off", interface="asgi3", log_config=None)
        self.protocol = BoundedProtocol(config, ServerState(), self.connections, connection)
        self.wire = Wire(reads)
        self.wire.protocol = self.protocol
        self.protocol.connection_made(self.wire)

    async def send(self, data: bytes) -> None:
        """Send bytes, and let the server act on them."""
        if not self.wire.is_closing():
            self.protocol.data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await respond(send, b"%d" % size)


async def early(scope: Any, receive: Any, send: Any) -> None:
    """Answer before the body has arrived."""
    await respond(send, b"no")


async def large(scope: Any, receive: Any, send: Any) -> None:
    """Answer with more than a client takes that does not read."""
    await respond(send, b"x" * 5000)


async def respond(send: Any, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(
    ("sent", "drip", "app", "ends_at"),
    [
        pytest.param((), b"", echo, 10, id="a client that sends nothing"),
        pytest.param((b"GET / HTTP/1.1\r\n",), b"x", echo, 10, id="a head that drips"),
        pytest.param((POST,), b"", echo, 10, id="a body that never comes"),
        pytest.param((POST,), b"x", echo, 10, id="a body that drips"),
        pytest.param((CHUNKED,), b"1\r\nx\r\n", echo, 10, id="a body without end"),
        pytest.param((POST,), b"x", early, 10, id="a body that drips after the answer"),
        pytest.param((CHUNKED, b"0\r\n"), b"a: b\r\n", early, 10, id="trailers that drip"),
        pytest.param((GET,), b"", echo, 60, id="a client that stays after its answer"),
        pytest.param((GET,), b"\r\n", echo, 60, id="empty lines between requests"),
        pytest.param((GET, b"GET /"), b"x", echo, 10, id="a second request whose path drips"),
    ],
)
def test_each_phase_ends_in_time_whatever_arrives(sent, drip, app, ends_at):
    """A body had no deadline at all, and an empty line turned off the deadline of an idle connection."""

    async def run() -> None:
        client = Client(app)
        for data in sent:
            await client.send(data)
        for _ in range(200):
            if drip:
                await client.send(drip)
            await asyncio.sleep(1)
        assert client.wire.ended_at == ends_at
        assert len(client.connections) == 0

    VirtualClock().run(run())


def test_a_body_that_is_too_slow_is_told_so():
    async def run() -> None:
        client = Client(echo)
        await client.send(POST)
        await asyncio.sleep(11)
        assert client.wire.sent.startswith(b"HTTP/1.1 408 Request Timeout\r\n")

    VirtualClock().run(run())


def test_an_application_that_takes_its_time_is_not_the_clients_fault():
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(300)
        await echo(scope, receive, send)

    async def run() -> None:
        client = Client(slow, ClientLimits())
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 70000\r\n\r\n" + b"x" * 69_000)
        assert client.protocol.flow.read_paused
        await asyncio.sleep(299)
        assert not client.wire.is_closing()
        await asyncio.sleep(2)
        await client.send(b"x" * 1000)
        assert client.wire.sent.endswith(b"70000")

    VirtualClock().run(run())


def test_a_client_that_does_not_read_its_answer_is_dropped():
    async def run() -> None:
        client = Client(large, reads=False)
        await client.send(GET)
        await asyncio.sleep(200)
        assert client.wire.ended_at == 30
        assert client.protocol._send_timer is None

    VirtualClock().run(run())


def test_a_client_that_does_not_read_a_refusal_is_dropped_too():
    async def run() -> None:
        client = Client(echo, reads=False)
        await client.send(b"nonsense\r\n\r\n")
        await asyncio.sleep(200)
        assert client.wire.ended_at is not None

    VirtualClock().run(run())


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /" + b"x" * 2000, id="a long path"),
        pytest.param(b"GET / HTTP/1.1\r\na: " + b"x" * 2000, id="a long header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 30, id="many short headers"),
        pytest.param(CHUNKED + b"0\r\n" + b"a:\r\n" * 30, id="many trailers"),
    ],
)
def test_a_head_beyond_its_limits_is_refused(head):
    async def run() -> None:
        client = Client(echo)
        await client.send(head)
        assert client.wire.sent.startswith(b"HTTP/1.1 431")
        assert client.wire.is_closing()

    VirtualClock().run(run())


def test_a_header_that_never_ends_is_refused():
    async def run() -> None:
        client = Client(echo)
        await client.send(b"GET / HTTP/1.1\r\na: ")
        for _ in range(20):
            await client.send(b"x" * 100)
        assert client.wire.sent.startswith(b"HTTP/1.1 431")

    VirtualClock().run(run())


def test_requests_in_advance_end_the_connection_and_are_not_kept():
    """A read of 256 KiB could contain 10,000 requests, each with a task's worth of memory."""

    async def run() -> None:
        client = Client(echo)
        await client.send(GET * 1000)
        assert client.wire.is_closing()
        assert not client.protocol.pipeline

    VirtualClock().run(run())


def test_bodies_are_counted_until_their_answer():
    async def run() -> None:
        client = Client(echo)
        await client.send(POST + b"x" * 999)
        assert client.connection.body_bytes == 999
        assert client.connection.waiting_since is not None
        await client.send(b"x")
        assert client.wire.sent.endswith(b"1000")
        assert client.connection.body_bytes == 0
        await client.send(GET)
        assert client.wire.sent.endswith(b"0")

    VirtualClock().run(run())


def test_a_body_beyond_the_bytes_of_all_requests_ends_its_connection():
    async def run() -> None:
        client = Client(echo)
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999\r\n\r\n" + b"x" * 10_001)
        assert client.wire.is_closing()
        assert len(client.connections) == 0

    VirtualClock().run(run())


MALFORMED = [
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]
UPGRADE = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"


def test_malformed_requests_log_one_line_per_minute_with_an_address(caplog):
    """Each of them logged a warning of its own, which did not say where it came from."""
    clock = VirtualClock()
    shared = Connections(LIMITS)

    async def attack(address: str) -> None:
        for request in MALFORMED * 5:
            client = Client(echo, connections=shared, address=address)
            await client.send(request)
            assert client.wire.sent.startswith(b"HTTP/1.1 400 ")
            assert client.wire.is_closing()

    async def main() -> None:
        await attack("10.0.0.1")
        await attack("10.0.0.2")
        assert [record.facts for record in caplog.records] == [{"from": "10.0.0.1", "malformed": 1}]
        await clock.sleep(60)
        await attack("10.0.0.2")
        assert [record.facts for record in caplog.records[1:]] == [{"from": "10.0.0.2", "malformed": 31}]
        assert shared.malformed == 45

    clock.run(main())


def test_a_request_to_upgrade_is_answered_as_any_other_and_logs_nothing(caplog):
    clock = VirtualClock()

    async def main() -> None:
        client = Client(echo)
        await client.send(UPGRADE)
        assert client.wire.sent.startswith(b"HTTP/1.1 200 ")
        assert caplog.records == []

    clock.run(main())
