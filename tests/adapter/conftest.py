"""A running adapter on loopback, in front of a fake cluster, with every certificate a caller may show."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
import yaml
from yarl import URL

from tests.adapter.fake_cluster import FakeCluster
from trimtab.adapter.adapter import Adapter, serve
from trimtab.adapter.config import load_configuration
from trimtab.adapter.files import API_VERSION
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessServer, InProcessTransport
from trimtab.plugins.registry import NO_PLUGINS, Plugins

HPA = {"X-Remote-User": "hpa", "X-Remote-Group": "system:authenticated"}
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"

QUEUES = {
    "custom": [
        {"metric": "queue_length", "resource": "statefulsets.apps", "namespace": "default", "name": "foo",
         "labels": {"queue": queue}, "value": value}
        for queue, value in (("some-jobs", "3"), ("other-jobs", "70"))
    ],
    "external": [{"metric": "sqs_messages", "namespace": "default", "labels": {"queue": "orders"}, "value": "40"}],
}  # fmt: skip


class Front:
    """The front proxy's authority, the certificates it may hand out, and what the cluster publishes of it."""

    def __init__(self) -> None:
        self.authority = trustme.CA()
        self.users = trustme.CA()
        self.proxy = self.authority.issue_cert(common_name="front-proxy-client")

    def config_map(self, authority: trustme.CA | None = None) -> dict[str, str]:
        return {
            "requestheader-client-ca-file": (authority or self.authority).cert_pem.bytes().decode(),
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "client-ca-file": self.users.cert_pem.bytes().decode(),
        }


class Caller:
    """Somebody who calls the adapter, with or without a certificate."""

    def __init__(self, adapter: Adapter, certificate: trustme.LeafCert | None = None) -> None:
        self.adapter = adapter
        self._url = f"https://localhost:{adapter.port}"
        self._tls = ssl.create_default_context(cadata=adapter.tls.pair.authority_pem.decode())
        if certificate is not None:
            certificate.configure_cert(self._tls)
        self._session = aiohttp.ClientSession()

    async def get(self, path: str, headers: Any = (), method: str = "GET") -> tuple[int, Any]:
        url = URL(self._url + path, encoded=True)
        async with self._session.request(method, url, headers=dict(headers), ssl=self._tls) as answer:
            self.headers = answer.headers
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()

    async def close(self) -> None:
        await self._session.close()


@pytest.fixture
def front() -> Front:
    return Front()


@pytest.fixture
async def cluster(front: Front) -> FakeCluster:
    cluster = FakeCluster()
    await cluster.put(
        "configmaps", "extension-apiserver-authentication", "kube-system", data=front.config_map()
    )
    return cluster


def write_configuration(directory: Path, *sources: Any, values: Any = None, **more: Any) -> Path:
    """Write a configuration of the given sources, by default the queues of the testing source."""
    if not sources:
        sources = ({"name": "by-hand", "testing": {"file": "values.yaml", "admin": {}}},)
        write(directory / "values.yaml", "MetricValues", values or QUEUES)
    return write(
        directory / "config.yaml",
        "AdapterConfiguration",
        {"listen": {"port": 0}, "sources": list(sources), **more},
    )


def write(path: Path, kind: str, data: Any) -> Path:
    path.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": kind, **data}))
    return path


async def until(happened: Callable[[], bool]) -> None:
    """Let the event loop run until something has happened."""
    async with asyncio.timeout(20):
        while not happened():  # noqa: ASYNC110 - what happens is not an event of ours
            await asyncio.sleep(0)


def source_of(adapter: Adapter, position: int = 0) -> Any:
    """Return a source as what it is, not as the protocol."""
    return adapter.router.sources[position]


@asynccontextmanager
async def running(
    cluster: InProcessServer,
    configuration: Path,
    client: Client | None = None,
    namespaces: Sequence[str] = (),
    plugins: Plugins = NO_PLUGINS,
) -> AsyncIterator[Adapter]:
    """Run an adapter until the trust is read, and stop it in the end."""
    clock = SystemClock()
    client = client or Client(clock, InProcessTransport(cluster))
    read = load_configuration(configuration)
    async with serve(clock, client, read, configuration.parent, namespaces, plugins) as adapter:
        await until(lambda: adapter.trust.current is not None)
        yield adapter


@pytest.fixture
async def adapter(cluster: FakeCluster, tmp_path: Path) -> AsyncIterator[Adapter]:
    async with running(cluster, write_configuration(tmp_path)) as adapter:
        yield adapter


@pytest.fixture
async def proxy(adapter: Adapter, front: Front) -> AsyncIterator[Caller]:
    """The front proxy itself."""
    caller = Caller(adapter, front.proxy)
    yield caller
    await caller.close()


@pytest.fixture
async def stranger(adapter: Adapter) -> AsyncIterator[Caller]:
    """Somebody without a certificate."""
    caller = Caller(adapter)
    yield caller
    await caller.close()
