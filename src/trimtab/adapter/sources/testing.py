"""The testing source: values set over HTTP or from a file, for tests without Prometheus.

A series is identified by its metric, its object (or namespace) and its labels. Setting it again replaces it. The admin port is on
loopback and needs a token:

PUT    /custom/namespaces/NS/RESOURCE/NAME/METRIC?label=value    body: the value
PUT    /custom/RESOURCE/NAME/METRIC?label=value                  for objects without a namespace
PUT    /external/namespaces/NS/METRIC?label=value
DELETE the same paths                                            delete the series
GET    /values                                                   all series, in the form of the file
POST   /values                                                   set all series of the body
DELETE /values                                                   delete all series
"""

import hmac
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from trimtab.adapter.api.app import AdapterResponse, error_response, reply
from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.adapter.api.routes import split_path
from trimtab.adapter.files import (
    API_VERSION,
    ConfigSection,
    ConfigurationError,
    convert,
    parse_document,
    read_document,
)
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.source import Catalogue, Collapse, CustomSample, ExternalSample, Offer, collapse
from trimtab.clock import Clock
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.series_table import Metric, SeriesTable
from trimtab.model.status import StatusError
from trimtab.serving.asgi import BodyTooLargeError, ClientGoneError, Message, Receive, Send, read_body
from trimtab.serving.tls import WatchedFile

KIND = "MetricValues"
MAX_SERIES = 100_000


class ManualValue(ConfigSection):
    """The value of one series."""

    metric: str
    value: str | int | float
    labels: dict[str, str] = {}
    """Labels that metric selectors match."""
    timestamp: datetime | None = None
    """When it was measured. Default: the time of the query."""
    window_seconds: int | None = None


class CustomValue(ManualValue, kw_only=True):
    """The value of one series of a custom metric."""

    name: str
    resource: str = "pods"
    namespace: str = ""
    object_labels: dict[str, str] | None = None
    """The object's own labels, for queries of `*`. Default: its labels in the cluster."""


class ExternalValue(ManualValue, kw_only=True):
    """The value of one series of an external metric."""

    namespace: str


class MetricValueFile(ConfigSection):
    """The values of a file or of an HTTP body."""

    custom: tuple[CustomValue, ...] = ()
    external: tuple[ExternalValue, ...] = ()


Value = CustomValue | ExternalValue
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """A value that was set, with its quantity parsed."""

    labels: Mapping[str, str]
    value: Quantity
    setting: Value

    def timestamp(self, now: datetime) -> datetime:
        """Return when the value was measured."""
        return self.setting.timestamp or now


class MetricTable(SeriesTable[tuple[str, Labels], MetricPoint]):
    """The series that were set, each by its object and labels."""

    def set(self, value: Value) -> None:
        """Set the value of one series."""
        point = MetricPoint(value.labels, _quantity(value), _in_utc(value))
        metric, series = _identity(value)
        if self.count >= MAX_SERIES and series not in self.of(metric):
            raise ConfigurationError(f"more than {MAX_SERIES} series")
        self.put(metric, series, point)

    def set_all(self, values: MetricValueFile) -> None:
        """Set all values of a file or HTTP body."""
        series: tuple[Value, ...] = (*values.custom, *values.external)
        for value in series:
            self.set(value)

    def asked(self, query: MetricQuery) -> Mapping[tuple[str, Labels], MetricPoint]:
        """Return the series of the metric that a query names."""
        resource = query.resource if isinstance(query, CustomMetricQuery) else ""
        return self.of((query.metric, resource, query.namespace))


def load_table(path: Path) -> MetricTable:
    """Load a values file."""
    table = MetricTable()
    table.set_all(convert(read_document(path, KIND), MetricValueFile, str(path)))
    return table


def as_json(points: Sequence[MetricPoint]) -> dict[str, Any]:
    """Return values in the form of the file."""
    custom = [point.setting for point in points if isinstance(point.setting, CustomValue)]
    external = [point.setting for point in points if isinstance(point.setting, ExternalValue)]
    data: dict[str, Any] = msgspec.to_builtins(
        MetricValueFile(custom=tuple(custom), external=tuple(external))
    )
    return data


def _identity(value: Value) -> tuple[Metric, tuple[str, Labels]]:
    resource, name = (value.resource, value.name) if isinstance(value, CustomValue) else ("", "")
    return (value.metric, resource, value.namespace), (name, tuple(sorted(value.labels.items())))


def _quantity(value: Value) -> Quantity:
    try:
        return Quantity.parse(value.value if isinstance(value.value, str) else repr(value.value))
    except QuantityError as error:
        raise ConfigurationError(f"{value.metric}: value {value.value!r}: {error}") from error


def _in_utc(value: Value) -> Value:
    if value.timestamp is None or value.timestamp.tzinfo is not None:
        return value
    return msgspec.structs.replace(value, timestamp=value.timestamp.replace(tzinfo=UTC))


log = logging.getLogger(__name__)
CHECK_SECONDS = 2.0


class TestingSource:
    """Serves values set by hand. When the file changes, it replaces all values, also those set over HTTP."""

    __test__ = False  # for pytest, which collects classes called Test…

    def __init__(self, clock: Clock, name: str, objects: ClusterObjects, file: Path | None = None) -> None:
        self._clock = clock
        self.name = name
        self._objects = objects
        self._file = WatchedFile(file) if file else None
        self._problem = ""
        self.table = MetricTable()
        self.refresh()

    def serves(self, query: MetricQuery) -> bool:
        """Return whether the metric has a value for such objects."""
        return bool(self.table.asked(query))

    def catalogue(self) -> Catalogue:
        """Return every metric that has a value."""
        custom = {
            Offer(resource, metric, bool(namespace) or resource == "namespaces")
            for metric, resource, namespace in self.table.metrics()
            if resource
        }
        external = {metric for metric, resource, _ in self.table.metrics() if not resource}
        return Catalogue(frozenset(custom), frozenset(external))

    def health(self) -> Iterable[Health]:
        """Return whether the file is valid."""
        yield Health(f"source {self.name}", State.FAILING if self._problem else State.OK, self._problem)

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return the sum of the matching series per object."""
        points, now = self.table.asked(query), self._clock.now()
        names = await self._selected(query, points) if query.selects_objects else {query.name}
        samples = [
            CustomSample(name, point.value, point.timestamp(now), point.setting.window_seconds)
            for (name, _), point in points.items()
            if name in names and query.series.matches(point.labels)
        ]
        return collapse(samples, Collapse.SUM)

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series that match."""
        now = self._clock.now()
        return [
            ExternalSample(point.labels, point.value, point.timestamp(now), point.setting.window_seconds)
            for point in self.table.asked(query).values()
            if query.series.matches(point.labels)
        ]

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Load the file if it changed. An invalid file leaves the values in place."""
        if self._file is None or not self._file.has_changed():
            return
        try:
            self.table = load_table(self._file.path)
            self._problem = ""
        except ConfigurationError as error:
            self._problem = str(error)
            log.warning("source %s keeps its values: %s", self.name, error)

    async def close(self) -> None:
        """Do nothing, since there is no connection."""

    async def _selected(
        self, query: CustomMetricQuery, points: Mapping[tuple[str, Labels], MetricPoint]
    ) -> frozenset[str]:
        """Return the selected objects: by the labels set with their values, else by their labels in the cluster."""
        names = frozenset(name for name, _ in points)
        if query.objects.is_empty:
            return names
        known: dict[str, Mapping[str, str]] = {}
        for (name, _), point in points.items():
            if isinstance(point.setting, CustomValue) and point.setting.object_labels is not None:
                known.setdefault(name, point.setting.object_labels)
        selected = frozenset(name for name, labels in known.items() if query.objects.matches(labels))
        if known.keys() != names:
            from_cluster = await self._objects.names(query.resource, query.namespace, query.objects)
            selected |= (names - known.keys()) & from_cluster
        return selected


MAX_BODY = 3 * 1024 * 1024
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class AdminApp:
    """The ASGI application of the admin port."""

    def __init__(self, source: TestingSource, token: str) -> None:
        self._source = source
        self._token = token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            self._authorize(scope)
            body = await _body(receive)
            parts = split_path(scope["raw_path"])
            response = self._respond(scope["method"], parts, scope["query_string"], body)
        except StatusError as error:
            response = error_response(error)
        except ConfigurationError as error:
            response = error_response(StatusError(422, str(error)))
        await reply(scope, send, response, read_body=True)

    def _authorize(self, scope: Message) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").rpartition(":")[0] or headers.get(b"host", "")
        if host not in _HOSTS:
            # DNS rebinding: a web page whose own name resolves to loopback sends that name.
            raise StatusError(421, f"this port answers to {', '.join(_HOSTS)} only")
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            token.strip().encode(), self._token.encode()
        ):
            raise StatusError(401, "the admin port needs its token: Authorization: Bearer TOKEN")

    def _respond(
        self, method: str, parts: Sequence[str], query_string: bytes, body: bytes
    ) -> AdapterResponse:
        if tuple(parts) == ("values",):
            return self._respond_all(method, body)
        if method not in {"PUT", "DELETE"}:
            raise StatusError(405, f"{method} is not served here; PUT sets a value, DELETE forgets it")
        value = _value(
            parts, query_string, body.decode("utf-8", "replace").strip() if method == "PUT" else "0"
        )
        if method == "PUT":
            self._source.table.set(value)
        elif not self._source.table.remove(*_identity(value)):
            raise StatusError(404, "there is no such series")
        return AdapterResponse(b"{}")

    def _respond_all(self, method: str, body: bytes) -> AdapterResponse:
        if method == "DELETE":
            self._source.table = MetricTable()
        elif method == "POST":
            data = parse_document(body.decode("utf-8", "replace"), "body")
            for key in ("apiVersion", "kind"):
                data.pop(key, None)
            self._source.table.set_all(convert(data, MetricValueFile, "body"))
        elif method != "GET":
            raise StatusError(405, f"{method} /values is not served; use GET, POST or DELETE")
        table = as_json(list(self._source.table))
        return AdapterResponse(wire.encode({"apiVersion": API_VERSION, "kind": KIND, **table}))


def load_token(path: Path) -> str:
    """Return the token of a file. Create the file, readable by its owner only, if it is missing."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(token + "\n", encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    if len(token) < 16:
        raise ConfigurationError(f"{path}: the admin token must have 16 characters at least")
    return token


def _value(parts: Sequence[str], query_string: bytes, text: str) -> Value:
    labels = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
    match list(parts):
        case ["custom", "namespaces", namespace, resource, name, metric]:
            return CustomValue(
                metric=metric, value=text, name=name, resource=resource, namespace=namespace, labels=labels
            )
        case ["custom", resource, name, metric]:
            return CustomValue(metric=metric, value=text, name=name, resource=resource, labels=labels)
        case ["external", "namespaces", namespace, metric]:
            return ExternalValue(metric=metric, value=text, namespace=namespace, labels=labels)
    raise StatusError(
        404, "paths are /values, /custom/[namespaces/NS/]RESOURCE/NAME/METRIC, /external/namespaces/NS/METRIC"
    )


async def _body(receive: Receive) -> bytes:
    try:
        return await read_body(receive, MAX_BODY)
    except ClientGoneError as error:
        raise StatusError(400, "the request was cut") from error
    except BodyTooLargeError as error:
        raise StatusError(413, str(error)) from error
