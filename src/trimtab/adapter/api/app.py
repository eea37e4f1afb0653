"""The adapter's ASGI application: authenticate, authorize, query a source, respond. It serves reads only."""

import logging
from dataclasses import dataclass

from trimtab.adapter.api import discovery, responses
from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomMetricQuery
from trimtab.adapter.api.routes import is_metrics_path, route, split_path, versions_of
from trimtab.adapter.auth.access import Authenticator, SubjectAccessAuthorizer
from trimtab.adapter.metrics import CONTENT_TYPE, AdapterMetrics
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.router import Router
from trimtab.clock import Clock
from trimtab.cluster.access_reviews import NonResourceAttributes, ReviewFailedError, UserInfo
from trimtab.model.json import wire
from trimtab.model.status import StatusError
from trimtab.serving.asgi import Message, Receive, Send, send_response
from trimtab.serving.server import CERTIFICATES

log = logging.getLogger(__name__)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
_PROBES = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class AdapterResponse:
    """A response to one request."""

    body: bytes
    status: int = 200
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Auth:
    """Authentication and authorization of requests."""

    authenticator: Authenticator
    authorizer: SubjectAccessAuthorizer


class AdapterApp:
    """The API server of the adapter."""

    def __init__(
        self, clock: Clock, auth: Auth, router: Router, objects: ClusterObjects, metrics: AdapterMetrics
    ) -> None:
        self._clock = clock
        self._auth = auth
        self._router = router
        self._objects = objects
        self._metrics = metrics

    async def __call__(self, scope: Message, _receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = self._clock.monotonic()
        try:
            response = await self._respond(scope)
        except StatusError as error:
            response = error_response(error)
        except ReviewFailedError as error:
            response = error_response(StatusError(503, str(error)))
        except Exception:
            # The border: any other error is a 500 for the client and a traceback in the log.
            log.exception("%s request failed", scope["method"])
            response = error_response(StatusError(500, "the adapter failed on this request"))
        self._metrics.record(_api_group(scope["path"]), response.status, self._clock.monotonic() - started)
        await reply(scope, send, response)

    async def _respond(self, scope: Message) -> AdapterResponse:
        raw_path: bytes = scope["raw_path"]
        probe = raw_path.strip(b"/").decode("latin-1")
        if probe in _PROBES:
            return self._probe(probe, is_verbose=b"verbose" in scope["query_string"])
        headers = _headers(scope)
        user = await self._auth.authenticator.authenticate(scope["state"].get(CERTIFICATES, ()), headers)
        if scope["method"] != "GET":
            raise StatusError(405, f"{scope['method']} is not served; metrics are read only")
        parts = split_path(raw_path)
        if is_metrics_path(parts):
            return await self._metric(user, parts, scope["query_string"])
        await self._auth.authorizer.authorize(user, NonResourceAttributes("get", "/" + "/".join(parts)))
        return self._document(parts, accept=",".join(headers.get("accept", ())))

    async def _metric(self, user: UserInfo, parts: tuple[str, ...], query_string: bytes) -> AdapterResponse:
        parsed = route(parts, query_string)
        await self._auth.authorizer.authorize(user, parsed.attributes)
        query = parsed.query
        if isinstance(query, CustomMetricQuery):
            samples = await self._router.custom(query)
            kind = await self._objects.kind_of(query.resource)
            return AdapterResponse(responses.custom_list(query, parsed.version, kind, samples))
        return AdapterResponse(responses.external_list(query.metric, await self._router.external(query)))

    def _document(self, parts: tuple[str, ...], accept: str) -> AdapterResponse:
        match parts:
            case ("apis",) if discovery.is_aggregated(accept):
                return AdapterResponse(
                    discovery.aggregated(self._router.catalogue()), content_type=discovery.AGGREGATED
                )
            case ("apis",):
                return AdapterResponse(discovery.group_list())
            case ("apis", group) if versions_of(group):
                return AdapterResponse(discovery.group(group))
            case ("apis", group, version) if version in versions_of(group):
                return AdapterResponse(discovery.resource_list(group, version, self._router.catalogue()))
            case ("openapi", "v2"):
                return AdapterResponse(discovery.openapi_v2())
            case ("openapi", "v3"):
                return AdapterResponse(discovery.openapi_v3())
            case ("metrics",):
                return AdapterResponse(self._metrics.text(), content_type=CONTENT_TYPE)
        raise StatusError(404, "the server could not find the requested resource")

    def _probe(self, name: str, *, is_verbose: bool) -> AdapterResponse:
        """Serve /livez and /readyz. The adapter is ready once the front-proxy CA is loaded.

        A failing source, rule or watch does not make it unready: that would make the other metrics unavailable too.
        """
        problem = self._auth.authenticator.problem if name == "readyz" else ""
        body = f"{name} check {'failed' if problem else 'passed'}" if problem or is_verbose else "ok"
        if name == "readyz" and (is_verbose or problem):
            trust = Health("front-proxy-trust", State.FAILING if problem else State.OK)
            checks = [trust, *self._objects.health(), *self._router.health()]
            body = "".join(f"{_check_line(health)}\n" for health in checks) + f"{body}\n"
        return AdapterResponse(body.encode(), 503 if problem else 200, TEXT)


def _check_line(health: Health) -> str:
    if health.state is State.OK:
        return f"[+]{health.name} ok"
    # A probe needs no authentication, so its response omits reasons, which may contain addresses.
    return f"[-]{health.name} {health.state.value}: reason withheld, see the log"


def _headers(scope: Message) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return headers


def _api_group(path: str) -> str:
    parts = path.split("/", 3)
    return parts[2] if len(parts) > 2 and parts[2] in discovery.GROUPS else "other"


def error_response(error: StatusError) -> AdapterResponse:
    """Return the Status of an error."""
    return AdapterResponse(wire.encode(error.status()), error.code)


async def reply(scope: Message, send: Send, response: AdapterResponse, *, read_body: bool = False) -> None:
    """Send a response. Close the connection if the request has a body that was not read."""
    headers = [
        (b"content-type", response.content_type.encode()),
        (b"cache-control", b"no-cache, private"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if response.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if not read_body and any(
        name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"]
    ):
        headers.append((b"connection", b"close"))
    await send_response(send, response.status, headers, response.body, is_head=scope["method"] == "HEAD")
