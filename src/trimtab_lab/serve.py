"""A lab on a socket: TLS, uvicorn, and its kubeconfig."""

import base64
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType

import yaml

from trimtab.serving.certificates import CLIENT, KeyPair, issue_with_own_authority
from trimtab.serving.server import ClientLimits, HttpServer
from trimtab.serving.tls import load_pair, server_context, write_private
from trimtab_lab.apiserver.asgi import MAX_HEADERS, ApiServerApp
from trimtab_lab.apiserver.server import Server
from trimtab_lab.storage.codec import JsonObject

LOOPBACK = "127.0.0.1"
NAME = "trimtab-lab"
FRONT_PROXY = "front-proxy-client"
# The application rejects large headers with a Status; only far larger ones end the connection.
# Each watch of each client is a connection, and all of them are local.
LIMITS = ClientLimits(
    head_bytes=4 * MAX_HEADERS, send_seconds=60, body_bytes=128 * 1024 * 1024, connections=4096
)


@dataclass(frozen=True)
class ListenAddress:
    """The address on which a lab listens. Port 0 picks a free port."""

    host: str = LOOPBACK
    port: int = 0


class ServedLab:
    """A running server on HTTPS. Use it as an async context manager."""

    def __init__(self, server: Server, address: ListenAddress = ListenAddress()) -> None:  # noqa: B008 - a frozen value
        if server.identities.is_seeded:
            raise ValueError(
                "a seeded lab has predictable tokens and must not listen on a socket; leave out the seed"
            )
        self._server = server
        self._address = address
        self._http: HttpServer | None = None
        self._hosts: set[str] = set()
        self._pair: KeyPair | None = None

    @property
    def url(self) -> str:
        assert self._http is not None, "the lab is not started"
        return f"https://{self._address.host}:{self._http.port}"

    @property
    def ca_pem(self) -> str:
        """Return the certificate that clients trust."""
        assert self._pair is not None, "the lab is not started"
        return self._pair.authority_pem.decode()

    async def __aenter__(self) -> "ServedLab":
        await self._server.__aenter__()
        names = list(dict.fromkeys([self._address.host, "localhost", LOOPBACK]))
        self._pair = make_server_pair(names, self._server.clock.now())
        self._become_front_proxy()
        app = ApiServerApp(self._server, self._hosts)
        self._http = HttpServer(app, server_tls(self._pair), limits=LIMITS)
        await self._http.start(self._address.host, self._address.port)
        self._hosts.update(f"{name}:{self._http.port}" for name in names)
        return self

    def _become_front_proxy(self) -> None:
        """Make the front-proxy certificate and publish its authority for aggregated servers."""
        pair = make_client_pair(FRONT_PROXY, self._server.clock.now())
        self._server.outbound.client_pair = pair
        self._server.put(front_proxy_config_map(pair, self.ca_pem))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)
        if self._http is not None:
            await self._http.stop()

    def kubeconfig(self, token: str = "") -> JsonObject:
        """Return a kubeconfig for the admin, or for another token's user."""
        assert self._pair is not None, "the lab is not started"
        authority = base64.b64encode(self._pair.authority_pem).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": {"token": token or self._server.tokens.admin}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
            "current-context": NAME,
        }


def front_proxy_config_map(pair: KeyPair, client_ca_pem: str) -> JsonObject:
    """Return the ConfigMap from which aggregated servers learn the authority of the front proxy."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": client_ca_pem,
            "requestheader-client-ca-file": pair.authority_pem.decode(),
            "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


def write_kubeconfig(path: Path, kubeconfig: JsonObject) -> None:
    write_private(path, yaml.safe_dump(kubeconfig, sort_keys=False))


#: A lab runs for hours, so its certificates need not live longer.
LIFETIME = timedelta(days=30)


def make_server_pair(names: list[str], now: datetime) -> KeyPair:
    """Return a new key pair for a server with these names and addresses."""
    return issue_with_own_authority("trimtab-lab", names, now, LIFETIME)


def make_client_pair(name: str, now: datetime) -> KeyPair:
    """Return a new key pair that names a client."""
    return issue_with_own_authority(name, [name], now, LIFETIME, CLIENT)


def server_tls(pair: KeyPair) -> ssl.SSLContext:
    context = server_context()
    load_pair(context, pair.certificate_pem, pair.key_pem)
    return context
