"""A lab on a socket: TLS, uvicorn, and the kubeconfig that leads to it."""

import asyncio
import base64
import os
import socket
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import uvicorn
import yaml

from trimtab.lab.asgi import MAX_HEADERS, App
from trimtab.lab.certificates import Certificate, make_certificate, make_client_certificate
from trimtab.lab.codec import JsonObject
from trimtab.lab.guarded import GuardedProtocol
from trimtab.lab.server import Server

LOOPBACK = "127.0.0.1"
NAME = "trimtab-lab"
FRONT_PROXY = "front-proxy-client"
#: Connections held at once; each costs about 10 KiB.
MAX_CONNECTIONS = 4096
#: Seconds an idle connection is kept.
KEEP_ALIVE = 60
#: Seconds that open requests get to finish when the lab stops.
STOP_SECONDS = 2


@dataclass(frozen=True)
class Address:
    """Where a lab listens: 0 picks a free port."""

    host: str = LOOPBACK
    port: int = 0


class ServedLab:
    """A running server on HTTPS; use it as an async context manager."""

    def __init__(self, server: Server, address: Address = Address()) -> None:  # noqa: B008 - a frozen value
        if server.identities.is_seeded:
            raise ValueError(
                "a seeded lab has predictable tokens and must not listen on a socket; leave out the seed"
            )
        self._server = server
        self._address = address
        self._socket: socket.socket | None = None
        self._uvicorn: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._certificate: Certificate | None = None

    @property
    def url(self) -> str:
        """Return where clients connect."""
        assert self._socket is not None, "the lab is not started"
        host, port = self._socket.getsockname()[:2]
        return f"https://{host}:{port}"

    @property
    def ca_pem(self) -> str:
        """Return the certificate that clients trust."""
        assert self._certificate is not None, "the lab is not started"
        return self._certificate.ca_pem.decode()

    async def __aenter__(self) -> "ServedLab":
        await self._server.__aenter__()
        self._socket = socket.create_server((self._address.host, self._address.port), backlog=512)
        host, port = self._socket.getsockname()[:2]
        names = [host, "localhost", LOOPBACK]
        self._certificate = make_certificate(list(dict.fromkeys(names)), self._server.clock.now())
        self._become_front_proxy()
        hosts = frozenset(f"{name}:{port}" for name in names)
        config = uvicorn.Config(
            App(self._server, hosts),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            date_header=True,
            http=GuardedProtocol,
            ws="none",
            timeout_keep_alive=KEEP_ALIVE,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=STOP_SECONDS,
            h11_max_incomplete_event_size=MAX_HEADERS,
        )
        config.load()
        config.ssl = tls_context(self._certificate)
        self._uvicorn = QuietUvicorn(config)
        self._task = asyncio.create_task(self._uvicorn.serve(sockets=[self._socket]))
        while not self._uvicorn.started:
            if self._task.done():
                await self._task
                raise RuntimeError(f"the lab could not start on {host}:{port}")
            await asyncio.sleep(0.01)
        return self

    def _become_front_proxy(self) -> None:
        """Make the certificate that aggregated servers ask for, and publish who signed it."""
        certificate = make_client_certificate(FRONT_PROXY, self._server.clock.now())
        self._server.outbound.client_certificate = certificate
        self._server.put(front_proxy_config_map(certificate, self.ca_pem))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)
        if self._uvicorn is not None and self._task is not None:
            self._uvicorn.should_exit = True
            await self._task
        if self._socket is not None:
            self._socket.close()

    def kubeconfig(self, token: str = "") -> JsonObject:
        """Return a kubeconfig for the admin, or for another token's user."""
        assert self._certificate is not None, "the lab is not started"
        authority = base64.b64encode(self._certificate.ca_pem).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": {"token": token or self._server.tokens.admin}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
            "current-context": NAME,
        }


class QuietUvicorn(uvicorn.Server):
    """uvicorn without its own signal handling: the program around it decides when to stop."""

    def install_signal_handlers(self) -> None:
        """Leave signals alone."""


def tls_context(certificate: Certificate) -> ssl.SSLContext:
    """Return what a TLS server needs to show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate.load_into(context)
    return context


def front_proxy_config_map(certificate: Certificate, client_ca_pem: str) -> JsonObject:
    """Return the object in which aggregated servers look up whose word about users they may take."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": client_ca_pem,
            "requestheader-client-ca-file": certificate.ca_pem.decode(),
            "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an older one whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mkstemp makes files of mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)


def write_kubeconfig(path: Path, kubeconfig: JsonObject) -> None:
    """Write a kubeconfig, readable by its owner alone."""
    write_private(path, yaml.safe_dump(kubeconfig, sort_keys=False))
