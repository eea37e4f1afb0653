"""Serves an ASGI application on a port, beside whatever else the event loop does.

One way of serving for the lab, the adapter, the webhooks, the dashboard and the health port: uvicorn on a socket of
our own, HTTP/1.1, TLS if a context is given. The program around it decides when to stop; uvicorn never sees a signal.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

_STOP_SECONDS = 2
"""Seconds that open requests get to finish."""

_KEEP_ALIVE_SECONDS = 60
_MOST_CONNECTIONS = 4096


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


@asynccontextmanager
async def served(app: Any, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve `app` while the context lasts and yield the port; 0 picks a free one. OSError if it is taken."""
    listening = socket.create_server((host, port), backlog=512)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        http="httptools",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    config.load()
    config.ssl = tls
    server = _Quiet(config)
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listening.close()
