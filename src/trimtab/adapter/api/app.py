"""The ASGI application: who asks, may they, what do they ask, what is the answer. Only reading is served."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimtab.adapter.api import discovery, responses
from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomQuestion
from trimtab.adapter.api.routes import is_metrics_path, route, split_path, versions_of
from trimtab.adapter.auth.authentication import Authenticator
from trimtab.adapter.auth.authorization import SubjectAccessAuthorizer
from trimtab.adapter.errors import AdapterError, NotAllowed, NotFound, Unavailable, status_body
from trimtab.adapter.metrics import CONTENT_TYPE, AdapterMetrics
from trimtab.adapter.sources.objects import Objects
from trimtab.adapter.sources.router import Router
from trimtab.clock import Clock
from trimtab.cluster.access_reviews import NonResourceAttributes, ReviewFailedError, UserInfo
from trimtab.serving.asgi import Message, Receive, Send, send_response
from trimtab.serving.server import CERTIFICATES

log = logging.getLogger(__name__)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
_PROBES = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class AdapterResponse:
    """What is sent back."""

    body: bytes
    status: int = 200
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Gates:
    """Who may pass: tells who asks, whether they may, and why nobody can be told yet."""

    authenticator: Authenticator
    authorizer: SubjectAccessAuthorizer
    problem: Callable[[], str]


class AdapterApp:
    """The API server."""

    def __init__(
        self, clock: Clock, gates: Gates, router: Router, objects: Objects, telemetry: AdapterMetrics
    ) -> None:
        self._clock = clock
        self._gates = gates
        self._router = router
        self._objects = objects
        self._telemetry = telemetry

    async def __call__(self, scope: Message, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = self._clock.monotonic()
        try:
            answer = await self._answer(scope)
        except AdapterError as error:
            answer = AdapterResponse(error.status(), error.code)
        except ReviewFailedError as error:
            answer = AdapterResponse(Unavailable(str(error)).status(), Unavailable.code)
        except Exception:
            # The border: whatever is wrong inside is a 500 outside, and a log line.
            log.exception("answering %s", scope["method"])
            answer = AdapterResponse(
                status_body(500, "InternalError", "the adapter failed on this request"), 500
            )
        self._telemetry.count(_group_of(scope["path"]), answer.status, self._clock.monotonic() - started)
        await reply(scope, send, answer)

    async def _answer(self, scope: Message) -> AdapterResponse:
        raw_path: bytes = scope["raw_path"]
        probe = raw_path.strip(b"/").decode("latin-1")
        if probe in _PROBES:
            return self._probe(probe, is_verbose=b"verbose" in scope["query_string"])
        headers = _headers(scope)
        user = await self._gates.authenticator.authenticate(scope["state"].get(CERTIFICATES, ()), headers)
        if scope["method"] != "GET":
            raise NotAllowed(f"{scope['method']} is not served; metrics are read only")
        parts = split_path(raw_path)
        if is_metrics_path(parts):
            return await self._metric(user, parts, scope["query_string"])
        await self._gates.authorizer.authorize(user, NonResourceAttributes("get", "/" + "/".join(parts)))
        return self._document(parts, accept=",".join(headers.get("accept", ())))

    async def _metric(self, user: UserInfo, parts: tuple[str, ...], query: bytes) -> AdapterResponse:
        found = route(parts, query)
        await self._gates.authorizer.authorize(user, found.attributes)
        question = found.question
        if isinstance(question, CustomQuestion):
            samples = await self._router.custom(question)
            kind = await self._objects.kind_of(question.resource)
            return AdapterResponse(responses.custom_list(question, found.version, kind, samples))
        return AdapterResponse(
            responses.external_list(question.metric, await self._router.external(question))
        )

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
                return AdapterResponse(self._telemetry.text(), content_type=CONTENT_TYPE)
        raise NotFound("the server could not find the requested resource")

    def _probe(self, name: str, *, is_verbose: bool) -> AdapterResponse:
        """Answer a probe: alive is who answers; ready is who can tell the front proxy from others.

        A source, rule or watch that fails does not make the adapter unready: that would take the other metrics away too.
        """
        problem = self._gates.problem() if name == "readyz" else ""
        states = [Health("front-proxy-trust", State.FAILING if problem else State.OK)]
        states += self._objects.health()
        states += [health for source in self._router.sources for health in source.health()]
        lines = _lines(states) if name == "readyz" and (is_verbose or problem) else []
        verdict = f"{name} check failed" if problem else "ok" if not is_verbose else f"{name} check passed"
        body = "".join(f"{line}\n" for line in [*lines, verdict]) if lines else verdict
        return AdapterResponse(body.encode(), 503 if problem else 200, TEXT)


def _lines(states: Iterable[Health]) -> Iterable[str]:
    """Return a line per check; reasons may name addresses and go to the log, not to whoever asks without a name."""
    for health in states:
        mark = "+" if health.state is State.OK else "-"
        why = "" if health.state is State.OK else ": reason withheld, see the log"
        yield f"[{mark}]{health.name} {health.state.value}{why}"


def _headers(scope: Message) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return headers


def _group_of(path: str) -> str:
    """Return the group as a label: one of a few words, whatever the path is."""
    parts = path.split("/", 3)
    return parts[2] if len(parts) > 2 and parts[2] in discovery.GROUPS else "other"


async def reply(scope: Message, send: Send, answer: AdapterResponse, *, read_body: bool = False) -> None:
    """Send an answer; a body that was not read takes the connection with it."""
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"cache-control", b"no-cache, private"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if not read_body and any(
        name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"]
    ):
        headers.append((b"connection", b"close"))
    await send_response(send, answer.status, headers, answer.body, is_head=scope["method"] == "HEAD")
