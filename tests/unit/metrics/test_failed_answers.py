"""A failed metrics answer leaves nothing behind, counted on real sockets with the garbage collector off."""

import asyncio
import contextlib
import gc
import tracemalloc
from itertools import cycle

import pytest
import trustme

from tests.unit.cluster.raw_server import server_tls
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import Connection, TlsSettings
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.http.connection import HttpConnection
from trimtab.metrics.queries import ExternalMetric, MetricsError, PodUsage
from trimtab.metrics.reader import MetricsReader

TIMES = 1000
KIB = 1024
LIMIT = 64 * KIB
"""The largest answer that the reader accepts: 16 MiB by default, scaled down here."""

PER_CONNECTION = 4 * KIB
"""What asyncio itself leaves of a closed connection on both ends, until the collector comes. No body fits in."""

QUERIES = (ExternalMetric("shop", "queue"), PodUsage())
"""One is decoded when it is complete, the other while it arrives."""


def chunked(size):
    chunk = b"%x\r\n%s\r\n" % (16 * KIB, b" " * 16 * KIB)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * (size // (16 * KIB))


def sized(body, *, announced=None, status=b"200 OK"):
    length = b"Content-Length: %d\r\n\r\n" % (announced or len(body))
    return b"HTTP/1.1 " + status + b"\r\n" + length + body


WHOLE = {
    "no JSON": sized(b"x" * (LIMIT - KIB)),
    "another type": sized(b'{"items":{"a":"' + b"x" * (LIMIT - KIB) + b'"}}'),
    "an error with a long text": sized(b"y" * (LIMIT - KIB), status=b"500 Internal Server Error"),
}
BROKEN = {
    "too big, in chunks": chunked(2 * LIMIT),
    "too big, announced": sized(b" " * 2 * LIMIT),
    "cut off": sized(b" " * 32 * KIB, announced=LIMIT),
    "cut off in a chunk": chunked(32 * KIB),
    "no HTTP": b"\0" * 32 * KIB,
}


class BadServer(asyncio.Protocol):
    """Answers every request with the next bad answer, and keeps nothing itself."""

    def __init__(self, answers):
        self._answers = answers

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        answer, is_last = next(self._answers)
        self._transport.write(answer)
        if is_last:
            self._transport.close()

    def connection_lost(self, exc):
        del self._transport


@contextlib.asynccontextmanager
async def reader_of(answers, tls=None, trust=None):
    """A reader of metrics whose server gives these answers in turn."""
    turn = cycle([(answer, answer in BROKEN.values()) for answer in answers])
    server = await asyncio.get_running_loop().create_server(lambda: BadServer(turn), "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    clock = SystemClock()
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    transport = HttpTransport(clock, Connection(url, tls=trust or TlsSettings()))
    try:
        yield MetricsReader(clock, Client(clock, transport), max_bytes=LIMIT)
    finally:
        await transport.close()
        server.close()


async def ask(reader, times):
    for number in range(times):
        query = QUERIES[number % len(QUERIES)]
        with pytest.raises(MetricsError):
            await (reader.pod_usage(query) if isinstance(query, PodUsage) else reader.external(query))


async def kept(reader, times):
    """Return the bytes that the process grows by over so many failures, and the connections that it keeps."""
    await ask(reader, 32)  # fills caches, and loads what the first failures import
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await ask(reader, times)
        grown = tracemalloc.get_traced_memory()[0] - before
        return grown, sum(type(kept_object) is HttpConnection for kept_object in gc.get_objects())
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_a_thousand_failed_answers_leave_nothing_behind():
    """Cycles through tracebacks kept each body: 39 to 2,430 MiB after 147 answers of one HPA."""
    async with reader_of([*WHOLE.values(), *BROKEN.values()]) as reader:
        grown, connections = await kept(reader, TIMES)
    assert grown < TIMES * PER_CONNECTION, f"{grown} bytes kept of {TIMES} answers"
    assert connections <= 2


@pytest.mark.parametrize("data", [*WHOLE.values(), *BROKEN.values()], ids=[*WHOLE, *BROKEN])
async def test_each_failed_body_is_freed_at_once(data):
    async with reader_of([data]) as reader:
        grown, connections = await kept(reader, 20)
    assert grown < 20 * PER_CONNECTION
    assert connections <= 2


async def test_connections_of_failed_answers_under_tls_are_freed_at_once():
    authority = trustme.CA()
    trust = TlsSettings(ca_data=authority.cert_pem.bytes())
    async with reader_of(BROKEN.values(), server_tls(authority, "127.0.0.1"), trust) as reader:
        _, connections = await kept(reader, 50)
    assert connections <= 2
