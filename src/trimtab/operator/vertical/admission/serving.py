"""The webhook on a socket: TLS whose certificate can be replaced while it serves."""

import logging
import ssl
import tempfile
from pathlib import Path

from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import KeyPair
from trimtab.serving import HttpServer, Limits

log = logging.getLogger(__name__)

LIMITS = Limits(idle_seconds=75, connections=512)
"""kube-apiserver is the only client; it keeps its connections for longer than a minute."""

STOP_SECONDS = 3.0


_VERSIONS = {"": ssl.TLSVersion.TLSv1_2, "tls1_2": ssl.TLSVersion.TLSv1_2, "tls1_3": ssl.TLSVersion.TLSv1_3}
_CIPHERS = {
    f"TLS_ECDHE_{key}_WITH_{iana}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for iana, openssl in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""The ciphers of TLS 1.2 that Go's library takes for safe, as OpenSSL calls them."""


def tls_context(min_version: str = "", ciphers: str = "") -> ssl.SSLContext:
    """Return the server's TLS settings; raise ValueError if the version is none. Unknown ciphers are skipped, as upstream."""
    if min_version not in _VERSIONS:
        raise ValueError(f"--min-tls-version={min_version}: write tls1_2 or tls1_3")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[min_version]
    named = [name.strip() for name in ciphers.replace(",", ":").split(":") if name.strip()]
    unknown = [name for name in named if name not in _CIPHERS]
    if unknown:
        log.warning("--tls-ciphers: %s are not known and skipped", ", ".join(unknown))
    chosen = [_CIPHERS[name] for name in named if name in _CIPHERS]
    if chosen:
        context.set_ciphers(":".join(chosen))
    return context


class TlsServer:
    """Serves one application; use it as an async context manager."""

    def __init__(
        self, app: AdmissionApp, host: str, port: int, context: ssl.SSLContext | None = None
    ) -> None:
        self._address = host, port
        self._context = context or tls_context()
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
