"""Serves the metrics APIs inside a lab's API server, or on a socket for other clusters.

`MetricsApp` is plain ASGI. Besides the APIs it serves `/values`, through which other programs read and set custom and
external values: GET returns `{"values": [...]}`, PUT of the same form sets them. It authenticates no clients, so it listens on
loopback only.
"""

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import Json, Resource
from trimtab.model.json import wire
from trimtab.model.status import StatusError, bad_request, too_large_body
from trimtab.serving.asgi import (
    BodyTooLargeError,
    ClientGoneError,
    Message,
    Receive,
    Send,
    read_body,
    send_response,
)
from trimtab.serving.server import HttpServer
from trimtab_lab.apiserver.request import MAX_BODY, ApiResponse
from trimtab_lab.apiserver.server import Server
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.data_plane import DataPlane
from trimtab_lab.metrics.apis import CUSTOM, EXTERNAL, RESOURCE, VERSIONS, MetricsApis
from trimtab_lab.metrics.values import MetricValues, SeriesValue
from trimtab_lab.nodes.caches import WriteThroughCache
from trimtab_lab.serve import LOOPBACK, make_server_pair, server_tls

NAMESPACE, SERVICE = "kube-system", "lab-metrics"
API_SERVICES: Resource[Json] = Resource(
    "apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False
)
SERVICES: Resource[Json] = Resource("", "v1", "services", "Service", Json)


class _Values(wire.Wire, frozen=True):
    values: tuple[SeriesValue, ...] = ()


class MetricsApp:
    """The ASGI application."""

    def __init__(self, apis: MetricsApis, values: MetricValues) -> None:
        self._apis = apis
        self._values = values

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            response = self._respond(scope, await read_body(receive, MAX_BODY))
        except ClientGoneError:
            return
        except BodyTooLargeError:
            response = ApiResponse.failure(too_large_body(f"the body is larger than {MAX_BODY} bytes"))
        except StatusError as problem:
            response = ApiResponse.failure(problem)
        headers = [(b"content-type", b"application/json")]
        is_head = scope["method"] == "HEAD"
        await send_response(send, response.status, headers, response.body, is_head=is_head)

    def _respond(self, scope: Message, body: bytes) -> ApiResponse:
        method, path = scope["method"], scope["path"]
        if path in ("/healthz", "/readyz", "/livez"):
            return ApiResponse.of({"status": "ok"})
        if path == "/values":
            return self._exchange_values(method, body)
        if method not in ("GET", "HEAD"):
            raise StatusError(405, "metrics can only be read")
        return self._apis.get(path, scope["query_string"].decode("latin-1"))

    def _exchange_values(self, method: str, body: bytes) -> ApiResponse:
        if method == "PUT":
            try:
                values = wire.decode(body, _Values).values
            except wire.WireError as problem:
                raise bad_request(f"values: {problem}") from problem
            for value in values:
                self._values.put(value)
        elif method != "GET":
            raise StatusError(405, "values are read with GET and set with PUT")
        return ApiResponse.of({"values": [wire.to_builtins(value) for value in self._values.all()]})


async def serve_in_process(
    server: Server, client: Client, values: MetricValues, pods: WriteThroughCache[LabPod]
) -> None:
    """Serve custom and external metrics through the aggregator of a lab's API server.

    The server itself serves metrics.k8s.io. Its APIServices name no service, as those of other built-in groups do.
    """
    apis = MetricsApis(server.clock.now, values, pods=pods)

    async def backend(_method: str, target: str, _headers: Mapping[str, str], _body: bytes) -> ApiResponse:
        path, _, query = target.partition("?")
        return apis.get(path, query)

    server.outbound.register(NAMESPACE, SERVICE, backend)
    for group in (CUSTOM, EXTERNAL):
        await _register(client, {group: VERSIONS[group]}, 443)
    await _register(client, {RESOURCE: VERSIONS[RESOURCE]}, None)


class MetricsServer:
    """The metrics APIs of a data plane, on HTTPS on loopback. Use it as an async context manager.

    `register` makes an API server's aggregator proxy the APIs to it.
    """

    def __init__(self, data_plane: DataPlane, *, versions: Mapping[str, tuple[str, ...]] = VERSIONS) -> None:
        self._client, caches, values = data_plane.client, data_plane.caches, data_plane.values
        apis = MetricsApis(
            self._client.clock.now,
            values,
            source=data_plane.kubelet.samples,
            pods=caches.pods,
            nodes=caches.nodes,
            versions=versions,
        )
        self.app = MetricsApp(apis, values)
        self._versions = versions
        self._http: HttpServer | None = None

    @property
    def port(self) -> int:
        assert self._http is not None, "the metrics server is not started"
        return self._http.port

    async def __aenter__(self) -> "MetricsServer":
        pair = make_server_pair(["localhost", LOOPBACK], self._client.clock.now())
        self._http = HttpServer(self.app, server_tls(pair))
        await self._http.start(LOOPBACK, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.stop()

    async def register(self) -> None:
        """Register the metrics APIs with the aggregator."""
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]},
        }
        await self._client.patch(SERVICES, SERVICE, NAMESPACE, service, how=PatchType.APPLY)
        await _register(self._client, self._versions, self.port)

    async def unregister(self) -> None:
        """Remove the metrics APIs from the aggregator."""
        for group, versions in self._versions.items():
            for version in versions:
                with suppress(errors.NotFound):
                    await self._client.delete(API_SERVICES, f"{version}.{group}")
        with suppress(errors.NotFound):
            await self._client.delete(SERVICES, SERVICE, NAMESPACE)


async def _register(client: Client, served: Mapping[str, tuple[str, ...]], port: int | None) -> None:
    for group, versions in served.items():
        for version in versions:
            body = api_service(group, version, port=port, is_preferred=version == versions[0])
            await client.patch(API_SERVICES, body["metadata"]["name"], None, body, how=PatchType.APPLY)


def api_service(group: str, version: str, *, port: int | None, is_preferred: bool = True) -> Json:
    """Return the APIService of a group version. Without a port the API server itself serves it."""
    spec: Json = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": 100 if is_preferred else 50,
    }
    if port is not None:
        spec["service"] = {"namespace": NAMESPACE, "name": SERVICE, "port": port}
        # The certificate is made for one run, and the connection stays on loopback.
        spec["insecureSkipTLSVerify"] = True
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": spec,
    }
