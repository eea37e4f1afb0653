"""A client of Prometheus: instant queries, range queries and names of series.

Time and size of a response are bounded. A failed or partial response raises an error. `bad_data` and `execution` errors
mean that the query is wrong. All other errors are temporary.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.errors import ClusterError
from trimtab.cluster.transport import Deadlines, Request, Response, Transport
from trimtab.metrics.queries import MetricsError
from trimtab.model.json.wire import Wire, WireError, decode

MAX_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a response."""

HISTORY_MAX_BYTES = 256 * 1024 * 1024
"""Maximum bytes of a range response: 8 days of a namespace's containers, per minute."""

QUERIES_IN_FLIGHT = 32
"""Maximum queries in flight. Prometheus evaluates 20 at a time by default. Further queries wait."""

_REFUSALS = frozenset({401, 403})
"""What a proxy with a login in front of Prometheus answers in its own words."""

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}

T = TypeVar("T")


class PrometheusError(MetricsError):
    """Prometheus gave no usable answer."""


class NoPrometheusError(PrometheusError):
    """No server answers at the address, or one that is no Prometheus."""


class QueryRefusedError(PrometheusError):
    """Prometheus rejected the query, so that a retry is useless."""


class QueryFailedOnSeriesError(QueryRefusedError):
    """Prometheus parsed the query and failed on the series that it selects, as on duplicates in a join."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A series at one time. The value stays text, so that no precision is lost."""

    labels: Mapping[str, str]
    at: float
    value: str


@dataclass(frozen=True, slots=True)
class PrometheusSeries:
    """A series over a range, as pairs of Unix time and value."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, str], ...]


class _Answer(Wire):
    status: str = ""
    error_type: str = ""
    error: str = ""


class _Sample(Wire):
    metric: dict[str, str] = {}
    value: tuple[float, str] = (0.0, "")
    values: tuple[tuple[float, str], ...] = ()


class _Data(Wire):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")  # its shape depends on the type


class _DataAnswer(_Answer):
    data: _Data = _Data()


class _NamesAnswer(_Answer):
    data: tuple[str, ...] = ()


REACH = Deadlines()
"""How long a server that can be reached may take for an answer of a few bytes."""


class PrometheusClient:
    """A client of Prometheus, or of a server with its API."""

    def __init__(self, clock: Clock, transport: Transport, *, deadline: float = 10.0) -> None:
        self._clock = clock
        self._transport = transport
        self._turns = asyncio.Semaphore(QUERIES_IN_FLIGHT)
        self._deadlines = Deadlines(min(Deadlines().connect, deadline), deadline, deadline)
        self._deadline = deadline

    async def instant(self, query: str, *, lookback: float | None = None) -> list[Instant]:
        """Evaluate a query now. Samples older than `lookback` seconds do not count."""
        form = [("query", query), ("timeout", f"{self._deadline:g}s")]
        form += [("lookback_delta", f"{lookback:g}s")] if lookback else []
        answer = await self._ask("/api/v1/query", form, _DataAnswer)
        return [Instant(sample.metric, *sample.value) for sample in _samples(answer.data, "vector")]

    async def history(
        self, query: str, start: datetime, end: datetime, step: float
    ) -> list[PrometheusSeries]:
        """Evaluate a query at every `step` seconds from `start` to `end`."""
        form = [
            ("query", query),
            ("start", f"{start.timestamp():.3f}"),
            ("end", f"{end.timestamp():.3f}"),
            ("step", f"{step:g}"),
        ]
        answer = await self._ask("/api/v1/query_range", form, _DataAnswer, HISTORY_MAX_BYTES)
        return [PrometheusSeries(series.metric, series.values) for series in _samples(answer.data, "matrix")]

    async def names(self, selector: str, since: float) -> list[str]:
        """Return the names of the series that match and had a sample in the last `since` seconds."""
        now = self._clock.now().timestamp()
        query = [("match[]", selector), ("start", f"{now - since:.3f}"), ("end", f"{now:.3f}")]
        request = Request("GET", "/api/v1/label/__name__/values", query, {}, None, self._deadlines, MAX_BYTES)
        return list((await self._send(request, _NamesAnswer)).data)

    async def reach(self) -> None:
        """Raise NoPrometheusError if no Prometheus answers. Queries over a long time may take much longer."""
        query = [("query", "1")]
        request = Request("GET", "/api/v1/query", query, {}, None, REACH.within(self._deadline), MAX_BYTES)
        try:
            answer = await self._transport.request(request)
        except ClusterError as error:
            raise NoPrometheusError(str(error).removeprefix(f"{request}: ")) from error
        if answer.status not in _REFUSALS and not _is_prometheus(answer):
            raise NoPrometheusError(f"another program answers {answer.status}")

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _ask(
        self, path: str, form: Sequence[tuple[str, str]], into: type[T], limit: int = MAX_BYTES
    ) -> T:
        # A form and not a query: the names of a thousand pods do not fit into an address.
        request = Request("POST", path, (), _FORM, urlencode(form).encode(), self._deadlines, limit)
        return await self._send(request, into)

    async def _send(self, request: Request, into: type[T]) -> T:
        try:
            async with self._turns:
                answer = await self._transport.request(request)
        except ClusterError as error:
            raise PrometheusError(str(error)) from error
        if answer.status != 200:
            raise _failure(answer)
        try:
            decoded = decode(answer.body, into)
        except WireError as error:
            raise PrometheusError(f"{request}: not an answer of Prometheus: {error}") from error
        if not isinstance(decoded, _Answer) or decoded.status != "success":
            raise PrometheusError(f'{request}: not an answer of Prometheus: no status "success"')
        return decoded


def _is_prometheus(answer: Response) -> bool:
    try:
        return bool(decode(answer.body, _Answer).status)
    except WireError:
        return False


def _samples(data: _Data, wanted: str) -> tuple[_Sample, ...]:
    if data.result_type != wanted:
        raise QueryRefusedError(
            f"the query gives a {data.result_type or 'nothing'} where a {wanted} is needed"
        )
    try:
        return decode(bytes(data.result), tuple[_Sample, ...])
    except WireError as error:
        raise PrometheusError(f"not an answer of Prometheus: {error}") from error


def _failure(answer: Response) -> PrometheusError:
    """Return the error for a status other than 200. Redirects are errors, and never followed."""
    try:
        decoded = decode(answer.body, _Answer)
    except WireError:
        decoded = _Answer()
    text = decoded.error or answer.body[:200].decode("utf-8", "replace").strip() or "no reason given"
    message = f"Prometheus answered {answer.status}: {' '.join(text.split())}"
    if answer.status in {400, 422} and decoded.error_type == "execution":
        return QueryFailedOnSeriesError(message)
    if answer.status in {400, 422} and decoded.error_type == "bad_data":
        return QueryRefusedError(message)
    return PrometheusError(message)
