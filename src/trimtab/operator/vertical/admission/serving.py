"""Serves the webhook over TLS, with a certificate that can be replaced at any time."""

import ssl
import tempfile
from pathlib import Path

from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import KeyPair
from trimtab.serving.server import ClientLimits, HttpServer

LIMITS = ClientLimits(idle_seconds=75, connections=512)
"""Limits for kube-apiserver, the only client, which keeps connections for more than a minute."""

STOP_SECONDS = 3.0


class TlsServer:
    """An async context manager that serves one application."""

    def __init__(self, app: AdmissionApp, host: str, port: int, context: ssl.SSLContext) -> None:
        self._address = host, port
        self._context = context
        self._context.set_alpn_protocols(["http/1.1"])
        self._http = HttpServer(app, self._context, limits=LIMITS)

    @property
    def port(self) -> int:
        """Return the port that the server listens on."""
        return self._http.port

    def use(self, pair: KeyPair) -> None:
        """Present this pair from the next handshake on. Open connections stay."""
        with tempfile.TemporaryDirectory() as folder:
            # The standard library reads pairs from files only. This file exists for a moment, readable by its owner.
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(pair.certificate_pem + pair.key_pem)
            self._context.load_cert_chain(path)

    async def __aenter__(self) -> "TlsServer":
        await self._http.start(*self._address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.stop(STOP_SECONDS)
