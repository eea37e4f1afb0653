"""The metrics APIs of a lab behind an API server: in its process, or on a socket behind its aggregator.

`MetricsApp` is plain ASGI. Besides the APIs it has `/values`, through which other programs read and set custom and
external values: GET returns `{"values": [...]}`, PUT of the same form sets each of them. It is a tool for tests: it
asks nobody who they are, so it belongs on loopback.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import Json, Resource
from trimtab.lab.apiserver.certificates import make_certificate
from trimtab.lab.apiserver.request import MAX_BODY, ApiResponse
from trimtab.lab.apiserver.server import Server
from trimtab.lab.data_plane import DataPlane
from trimtab.lab.metrics.apis import (
    CUSTOM,
    EXTERNAL,
    RESOURCE,
    VERSIONS,
    Answer,
    MetricsAnswers,
    failure,
)
from trimtab.lab.metrics.values import MetricValues, SeriesValue
from trimtab.lab.serve import LOOPBACK, tls_context
from trimtab.model.json import wire
from trimtab.serving.server import HttpServer

Message = MutableMapping[str, Any]
NAMESPACE, SERVICE = "kube-system", "lab-metrics"
API_SERVICES: Resource[Json] = Resource(
    "apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False
)
SERVICES: Resource[Json] = Resource("", "v1", "services", "Service", Json)


class _Values(wire.Wire, frozen=True):
    values: tuple[SeriesValue, ...] = ()


class MetricsApp:
    """The ASGI application."""

    def __init__(self, answers: MetricsAnswers, values: MetricValues) -> None:
        self._answers = answers
        self._values = values

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = await _read(receive)
        path = scope["path"]
        query = scope["query_string"].decode("latin-1")
        status, answer = self._answer(scope["method"], path, query, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": wire.encode(answer)})

    def _answer(self, method: str, path: str, query: str, body: bytes | None) -> Answer:
        if body is None:
            return failure(413, "RequestEntityTooLarge", f"the body is larger than {MAX_BODY} bytes")
        if path in ("/healthz", "/readyz", "/livez"):
            return 200, {"status": "ok"}
        if path == "/values":
            return self._exchange(method, body)
        if method not in ("GET", "HEAD"):
            return failure(405, "MethodNotAllowed", "metrics can only be read")
        return self._answers.answer(f"{path}?{query}")

    def _exchange(self, method: str, body: bytes) -> Answer:
        if method == "PUT":
            try:
                given = wire.decode(body, _Values)
            except wire.WireError as problem:
                return failure(400, "BadRequest", f"values: {problem}")
            for sample in given.values:
                self._values.put(sample)
        elif method != "GET":
            return failure(405, "MethodNotAllowed", "values are read with GET and set with PUT")
        return 200, {"values": [wire.to_builtins(one) for one in self._values.all()]}


async def _read(receive: Callable[[], Awaitable[Message]]) -> bytes | None:
    """Return the body, or None when it is too large."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return body


async def serve_in_process(server: Server, client: Client, values: MetricValues) -> None:
    """Serve custom and external metrics of `values` on a lab's API server, which asks no further than this process."""
    answers = MetricsAnswers(server.clock.now, values)

    async def backend(_method: str, path: str, _headers: Mapping[str, str], _body: bytes) -> ApiResponse:
        status, body = answers.answer(path)
        return ApiResponse.of(wire.encode(body), status)

    server.outbound.register(NAMESPACE, SERVICE, backend)
    for group in (CUSTOM, EXTERNAL):
        for version in VERSIONS[group]:
            await _register(client, api_service(group, version, port=443))


class MetricsServer:
    """What a workload side measures, on HTTPS on loopback; use it as an async context manager.

    `register` points an API server's aggregator at it.
    """

    def __init__(self, side: DataPlane, *, groups: tuple[str, ...] = (RESOURCE, CUSTOM, EXTERNAL)) -> None:
        clock, mirrors = side.client.clock, side.mirrors
        answers = MetricsAnswers(
            clock.now, side.values, usage=side.agent.samples, pods=mirrors.pods, nodes=mirrors.nodes
        )
        self.app = MetricsApp(answers, side.values)
        self._client = side.client
        self._groups = groups
        self._http: HttpServer | None = None

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._http is not None, "the metrics server is not started"
        return self._http.port

    async def __aenter__(self) -> "MetricsServer":
        certificate = make_certificate(["localhost", LOOPBACK], self._client.clock.now())
        self._http = HttpServer(self.app, tls_context(certificate))
        await self._http.start(LOOPBACK, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.stop()

    async def register(self) -> None:
        """Make the aggregator ask here for the metrics APIs."""
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]},
        }
        await self._client.patch(SERVICES, SERVICE, NAMESPACE, service, how=PatchType.APPLY)
        for group in self._groups:
            for version in VERSIONS[group]:
                await _register(self._client, api_service(group, version, port=self.port))

    async def unregister(self) -> None:
        """Take the metrics APIs away again."""
        for group in self._groups:
            for version in VERSIONS[group]:
                with suppress(errors.NotFound):
                    await self._client.delete(API_SERVICES, f"{version}.{group}")
        with suppress(errors.NotFound):
            await self._client.delete(SERVICES, SERVICE, NAMESPACE)


async def _register(client: Client, body: Json) -> None:
    await client.patch(API_SERVICES, body["metadata"]["name"], None, body, how=PatchType.APPLY)


def api_service(group: str, version: str, *, port: int) -> Json:
    """Return the registration of a group version."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100 if version == VERSIONS[group][0] else 50,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": port},
            # The certificate is made for one run and seen by nobody else; the way to it is loopback.
            "insecureSkipTLSVerify": True,
        },
    }
