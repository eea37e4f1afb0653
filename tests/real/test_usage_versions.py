"""Usage is read through the real aggregator, whichever versions of metrics.k8s.io a metrics server serves."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.real.sharing import until
from tests.scenarios.clocks import ShiftedClock
from tools.peers.cluster import RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.config.kubeconfig import load_kubeconfig
from trimtab.cluster.errors import ClusterError, NotFound
from trimtab.cluster.http.transport import HttpTransport
from trimtab.cluster.transport import Request
from trimtab.metrics.queries import PodUsage
from trimtab.metrics.reader import MetricsReader
from trimtab.metrics.versions import USAGE_SECONDS
from trimtab.model.times import format_time
from trimtab.serving.server import served
from trimtab.serving.tls import load_pair, server_context
from trimtab_lab.metrics.server import API_SERVICES, NAMESPACE, SERVICES, api_service
from trimtab_lab.serve import make_server_pair

pytestmark = pytest.mark.real

GROUP, SERVICE = "metrics.k8s.io", "usage-versions"
PODS = {
    "name": "pods",
    "singularName": "",
    "namespaced": True,
    "kind": "PodMetrics",
    "verbs": ["get", "list"],
}
PATIENCE_SECONDS = 90
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "it is down"}


class MetricsServer:
    """A metrics server of one pod, in the versions that a test sets."""

    def __init__(self) -> None:
        self.versions: tuple[str, ...] = ()
        self.lists: list[str] = []
        self.failing: dict[str, tuple[int, dict[str, Any]] | None] = {}
        """The answer to lists of a version that fails. None is never answered."""

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        status, body = self._answer(scope["path"].strip("/").split("/"))
        if not status:
            await asyncio.Event().wait()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    def _answer(self, parts: list[str]) -> tuple[int, dict[str, Any]]:
        version = parts[2] if len(parts) > 2 else ""
        if version not in self.versions:
            return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
        api_version = f"{GROUP}/{version}"
        if parts[-1] != "pods":
            return 200, {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": api_version,
                "resources": [PODS],
            }
        self.lists.append(version)
        if version in self.failing:
            return self.failing[version] or (0, {})
        item = {
            "metadata": {"name": "web-0", "namespace": "default"},
            "timestamp": format_time(SystemClock().now()),
            "window": "15s",
            "containers": [{"name": "app", "usage": {"cpu": "7m", "memory": "1Mi"}}],
        }
        return 200, {"kind": "PodMetricsList", "apiVersion": api_version, "metadata": {}, "items": [item]}


class Site:
    """The server behind the aggregator, and a reader that runs all the time."""

    def __init__(self, clock: ShiftedClock, client: Client, port: int, server: MetricsServer) -> None:
        self._clock, self.client, self._port, self.server = clock, client, port, server
        self.reader = MetricsReader(clock, client)

    async def register(self, version: str, *, is_preferred: bool = True) -> None:
        body = api_service(GROUP, version, port=self._port, is_preferred=is_preferred)
        body["spec"]["service"]["name"] = SERVICE
        await self.client.patch(API_SERVICES, f"{version}.{GROUP}", None, body, how=PatchType.APPLY)

    async def remove(self, version: str) -> None:
        with suppress(NotFound):
            await self.client.delete(API_SERVICES, f"{version}.{GROUP}")

    async def wait_for(self, *versions: str) -> None:
        """Wait until the aggregator answers in exactly these versions."""
        wanted = ["v1" in versions, "v1beta1" in versions]

        async def is_so() -> bool:
            return [await self._answers("v1"), await self._answers("v1beta1")] == wanted

        await until(is_so, PATIENCE_SECONDS)

    async def lists_version(self, version: str) -> bool:
        """Return whether the aggregator lists a version."""
        group = await self.client.read("asking", f"/apis/{GROUP}", dict)
        return version in [listed["version"] for listed in group["versions"]]

    async def _answers(self, version: str) -> bool:
        try:
            await self.client.sender.send_once("asking", Request("GET", f"/apis/{GROUP}/{version}"))
        except ClusterError:
            return False
        return True

    async def read(self) -> list[str]:
        """Read usage of one namespace and of all, after the list of versions became too old.

        Return the versions in which the server was asked.
        """
        self.server.lists.clear()
        self._clock.advance(USAGE_SECONDS)
        for namespace in ("default", None):
            answer = await self.reader.pod_usage(PodUsage(namespace))
            assert [item.containers[0].usage["cpu"] for item in answer.items] == ["7m"]
        return self.server.lists


@asynccontextmanager
async def site(cluster: RealCluster) -> AsyncIterator[Site]:
    clock = ShiftedClock()
    client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={})))
    server = MetricsServer()
    pair = make_server_pair(["localhost", "127.0.0.1"], SystemClock().now())
    context = server_context()
    load_pair(context, pair.certificate_pem, pair.key_pem)
    async with served(server, "127.0.0.1", 0, tls=context) as port:
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": spec}
        await client.patch(SERVICES, SERVICE, NAMESPACE, service, how=PatchType.APPLY)
        place = Site(clock, client, port, server)
        try:
            yield place
        finally:
            for version in ("v1", "v1beta1"):
                await place.remove(version)
            await client.delete(SERVICES, SERVICE, NAMESPACE)
            await place.reader.close()
            await client.close()


def test_usage_is_read_in_whichever_version_is_served_while_versions_come_and_go(real_cluster: RealCluster):
    async def main() -> None:
        async with site(real_cluster) as place:
            place.server.versions = ("v1beta1",)
            await place.register("v1beta1")
            await place.wait_for("v1beta1")
            assert await place.read() == ["v1beta1", "v1beta1"]

            # v1 is registered before its server is upgraded: the aggregator lists it, and answers 503.
            await place.register("v1", is_preferred=False)
            await until(lambda: place.lists_version("v1"), PATIENCE_SECONDS)
            assert await place.read() == ["v1beta1", "v1beta1"]

            place.server.versions = ("v1", "v1beta1")
            await place.remove("v1")  # so that the aggregator checks it again at once
            await place.register("v1", is_preferred=False)
            await place.wait_for("v1", "v1beta1")
            assert await place.read() == ["v1", "v1"], "although the APIServices prefer v1beta1"

            # The aggregator takes v1 for available, because it checks discovery only.
            for failure in ((500, STATUS), (403, STATUS), (200, {"kind": "APIVersions"}), None):
                place.server.failing = {"v1": failure}
                assert await place.read() == ["v1", "v1beta1", "v1beta1"], failure
            place.server.failing = {}
            assert await place.read() == ["v1", "v1"]

            place.server.versions = ("v1",)
            await place.remove("v1beta1")
            await place.wait_for("v1")
            assert await place.read() == ["v1", "v1"]

            await place.remove("v1")
            place.server.versions = ("v1beta1",)
            await place.register("v1beta1")
            await place.wait_for("v1beta1")
            assert await place.read() == ["v1beta1", "v1beta1"]

    asyncio.run(main())
