"""The webhook on a socket: uvicorn with TLS whose certificate can be replaced while it serves."""

import asyncio
import socket
import ssl
import tempfile
from pathlib import Path

import uvicorn

from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import KeyPair

MOST_CONNECTIONS = 512
KEEP_ALIVE_SECONDS = 75
STOP_SECONDS = 3


class TlsServer:
    """Serves one application; use it as an async context manager."""

    def __init__(self, app: AdmissionApp, host: str, port: int) -> None:
        self._app = app
        self._address = host, port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._socket is not None, "the server is not started"
        return int(self._socket.getsockname()[1])

    def use(self, pair: KeyPair) -> None:
        """Present this pair from the next handshake on; connections that are open stay."""
        with tempfile.TemporaryDirectory() as folder:
            # The standard library reads pairs from files only; this one exists for a moment, for our eyes only.
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(pair.certificate_pem + pair.key_pem)
            self._context.load_cert_chain(path)

    async def __aenter__(self) -> "TlsServer":
        self._socket = socket.create_server(self._address, backlog=256)
        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            http="httptools",
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        config.load()
        config.ssl = self._context
        self._server = _WithoutSignals(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise RuntimeError(f"the webhook could not start on {self._address[0]}:{self.port}")
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        if self._socket is not None:
            self._socket.close()


class _WithoutSignals(uvicorn.Server):
    """uvicorn that leaves signals to the process around it."""

    def install_signal_handlers(self) -> None:
        """Leave signals alone."""
