"""An HTTP server for one ASGI application on uvicorn's protocol: started, stopped and owned by its caller.

uvicorn's own server takes over signals and the event loop; this one is a component, so that the adapter runs alone,
inside `trimtab run` and in tests alike.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from trimtab.adapter.protocol import IDLE_SECONDS, BoundedProtocol

HANDSHAKE_SECONDS = 10.0
GRACE_SECONDS = 5.0
_BACKLOG = 512


class HttpServer:
    """Listens from `start` to `stop`."""

    def __init__(self, app: Callable[..., Any], tls: ssl.SSLContext | None = None) -> None:
        self._config = Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
        )
        self._state = ServerState()
        self._addresses: Counter[str] = Counter()
        self._tls = tls
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        assert self._server is not None, "only known after start"
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, address: str, port: int) -> None:
        """Listen."""
        self._config.load()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: BoundedProtocol(self._config, self._state, self._addresses),
            address,
            port,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            backlog=_BACKLOG,
        )

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Take no more connections, let running requests end within `grace` seconds, close the rest."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=grace)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        # Transports report their end on the loop's next turns; leave nothing open behind.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
