"""The webhook on a socket: TLS whose certificate can be replaced while it serves."""

import ssl
import tempfile
from pathlib import Path

from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import KeyPair
from trimtab.serving.server import ClientLimits, HttpServer

LIMITS = ClientLimits(idle_seconds=75, connections=512)
"""kube-apiserver is the only client; it keeps its connections for longer than a minute."""

STOP_SECONDS = 3.0


class TlsServer:
    """Serves one application; use it as an async context manager."""

    def __init__(self, app: AdmissionApp, host: str, port: int, context: ssl.SSLContext) -> None:
        self._address = host, port
        self._context = context
        self._context.set_alpn_protocols(["http/1.1"])
        self._http = HttpServer(app, self._context, limits=LIMITS)

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return self._http.port

    def use(self, pair: KeyPair) -> None:
        """Present this pair from the next handshake on; connections that are open stay."""
        with tempfile.TemporaryDirectory() as folder:
            # The standard library reads pairs from files only; this one exists for a moment, for our eyes only.
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(pair.certificate_pem + pair.key_pem)
            self._context.load_cert_chain(path)

    async def __aenter__(self) -> "TlsServer":
        await self._http.start(*self._address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.stop(STOP_SECONDS)
