"""A server on loopback that sends whatever bytes a test wants, and a transport to it."""

import asyncio
import contextlib
import ssl

from trimtab.clock import SystemClock
from trimtab.cluster.config import Connection
from trimtab.cluster.http import HttpTransport


class Listener:
    """Serves each connection with `serve(reader, writer)`, and leaves nothing open behind."""

    def __init__(self, *, tls=None):
        self.connections = 0
        self._tls = tls
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            await self.serve(reader, writer)
        with contextlib.suppress(Exception):
            writer.close()

    async def serve(self, reader, writer):
        raise NotImplementedError


class Server(Listener):
    """A raw HTTP/1.1 server: each test says which bytes come back."""

    def __init__(self, answer, *, tls=None):
        super().__init__(tls=tls)
        self.answer = answer
        self.requests = []

    async def serve(self, reader, writer):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            length = int(fields.get("Content-Length", 0))
            body = await reader.readexactly(length)
            self.requests.append((head.split("\r\n", 1)[0], fields, body))
            await self.answer(self, writer)


def reply(body=b"{}", status="200 OK", headers=""):
    async def answer(_, writer):
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        await writer.drain()

    return answer


@contextlib.asynccontextmanager
async def transport_to(server, **options):
    transport = HttpTransport(SystemClock(), Connection(server.url, **options))
    try:
        yield transport
    finally:
        await transport.close()


def server_tls(authority, *names, client_authority=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    if client_authority:
        client_authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
