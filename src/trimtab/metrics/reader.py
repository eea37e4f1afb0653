"""Queries the metrics APIs, bounded in time, size and number.

A query that is already in flight is joined instead of sent again, so that a hanging source costs one request at a time
however many HPAs use it. Each source has its own slots (`bulkheads`), and all of them have connections apart from those
of writes and Leases. Responses above the size limit are rejected while they arrive.

A flight returns its failure as a value. A raised error refers to the frames that it passed, these to the flight and the
body, and the flight to the error: only the garbage collector would free such a body.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from trimtab.clock import Clock, CpuMeter
from trimtab.cluster.client import Client
from trimtab.cluster.codec.lists import ListDecoder, require_items
from trimtab.cluster.errors import ApiError, ClusterError, Forbidden, Unreachable
from trimtab.cluster.lanes import METRICS
from trimtab.cluster.transport import Deadlines, Request
from trimtab.metrics.bulkheads import Bulkhead, SourceBusyError
from trimtab.metrics.queries import (
    CUSTOM_GROUP,
    EXTERNAL_GROUP,
    RESOURCE_GROUP,
    ExternalMetric,
    MetricsError,
    ObjectMetric,
    PodsMetric,
    PodUsage,
    Query,
)
from trimtab.metrics.versions import LAST_SHARE, CustomMetricsVersion, UsageVersion
from trimtab.model.json.wire import WireError, decode
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList, PodMetrics, PodMetricsList

T = TypeVar("T", PodMetricsList, MetricValueList, ExternalMetricValueList)
Answer = PodMetricsList | MetricValueList | ExternalMetricValueList

_NOT_FOUND = 404
_FAILURES = (ClusterError, ValueError, msgspec.MsgspecError, TimeoutError)
"""What a query can fail with after it was sent. An answer that cannot be decoded is a ValueError or of msgspec."""


class _Failure(msgspec.Struct, frozen=True):
    """Why a query has no answer."""

    message: str
    is_forbidden: bool = False


class MetricsReader:
    """A client of the three metrics APIs."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        *,
        deadline: float = 10.0,
        max_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        self.decoding = CpuMeter()
        """The CPU time of decoding."""
        self._client = client.in_lane(METRICS)
        self._max_bytes = max_bytes
        self._deadlines = Deadlines().within(deadline)
        self._deadline = deadline
        self._custom_version = CustomMetricsVersion(clock, self._client)
        self._usage_version = UsageVersion(clock, self._client)
        self._sources = {
            group: Bulkhead[Query](clock, deadline)
            for group in (RESOURCE_GROUP, CUSTOM_GROUP, EXTERNAL_GROUP)
        }
        self._flights: dict[Query, asyncio.Task[Answer | _Failure]] = {}

    def believe_versions_for(self, seconds: float) -> None:
        """Set how long a version of custom metrics is used, and a failed version of usage left out."""
        self._custom_version.believed_for = seconds
        self._usage_version.recheck_after = seconds

    async def pod_usage(self, query: PodUsage) -> PodMetricsList:
        """Return CPU and memory of pods, without items of other namespaces."""
        answer = await self._ask(query, PodMetricsList)
        return answer if query.namespace is None else _within(query.namespace, answer)

    async def custom(self, query: ObjectMetric | PodsMetric) -> MetricValueList:
        """Return the values of a custom metric."""
        return await self._ask(query, MetricValueList)

    async def external(self, query: ExternalMetric) -> ExternalMetricValueList:
        """Return the series of an external metric."""
        return await self._ask(query, ExternalMetricValueList)

    async def _ask(self, query: Query, kind: type[T]) -> T:
        flight = self._flights.get(query)
        if flight is None:
            flight = asyncio.ensure_future(self._fly(query, kind))
            self._flights[query] = flight
            flight.add_done_callback(lambda done: self._landed(query, done))
        # Shielded, so that a cancelled caller does not cancel the query of other callers.
        answer: Any = await asyncio.shield(flight)
        if isinstance(answer, _Failure):
            raise MetricsError(answer.message, is_forbidden=answer.is_forbidden)
        return answer  # type: ignore[no-any-return]  # a query always has an answer of its own kind

    def _landed(self, query: Query, flight: asyncio.Task[Answer | _Failure]) -> None:
        self._flights.pop(query, None)
        if not flight.cancelled():
            flight.exception()  # seen, even if every asker has gone

    async def _fly(self, query: Query, kind: type[T]) -> T | _Failure:
        try:
            return await self._sources[query.group].run(query, await self._fetch_of(query, kind))
        except SourceBusyError:
            return _Failure(
                f"{query.group} was not asked: too many of its queries are slow; see why it takes so long to answer"
            )
        except TimeoutError:
            return _Failure(f"{query.group} did not answer within {self._deadline:g} s")
        except ApiError as error:
            return _Failure(_words_of(query, error), isinstance(error, Forbidden))
        except (ClusterError, WireError, ValueError, msgspec.MsgspecError, MetricsError) as error:
            return _Failure(str(error))

    async def _fetch_of(self, query: Query, kind: type[T]) -> Callable[[], Awaitable[T]]:
        """Return the function that fetches the answer on a slot.

        Versions are looked up before the slots: the API server itself answers, and all queries of a sync share it.
        """
        if query.group == EXTERNAL_GROUP:
            return partial(self._fetch, query, "v1beta1", kind)
        async with asyncio.timeout(self._deadline):
            if query.group == CUSTOM_GROUP:
                return partial(self._fetch, query, await self._custom_version.current(), kind)
            await self._usage_version.refresh()
        return partial(self._fetch_usage, query, kind)

    async def _fetch_usage(self, query: Query, kind: type[T]) -> T:
        """Fetch usage in the current version, or in another one if that fails in any way.

        Versions are different APIServices, which may have different servers. Only an API server that cannot be reached
        says nothing about a version.
        """
        failures: dict[str, Exception] = {}
        versions = self._usage_version
        version = versions.current()
        last = asyncio.get_running_loop().time() + LAST_SHARE * self._deadline
        try:
            while version not in failures:
                seconds = versions.patience(version, self._deadline)
                try:
                    async with asyncio.timeout_at(last) if failures else asyncio.timeout(seconds):
                        answer = await self._fetch(query, version, kind)
                except Unreachable:
                    raise
                except asyncio.CancelledError:
                    versions.note_failed(version)  # its slot ended it, after the deadline or as too slow
                    raise
                except _FAILURES as error:
                    versions.note_failed(version)
                    failures[version] = error
                else:
                    versions.note_answered(version)
                    return answer
                await versions.refresh()
                version = versions.current(failures.keys())
            raise failures[versions.preferred(failures)]
        finally:
            failures.clear()  # an error refers to this frame

    async def _fetch(self, query: Query, version: str, kind: type[T]) -> T:
        request = Request(
            "GET",
            query.path(version),
            query.parameters(),
            deadlines=self._deadlines,
            max_body=self._max_bytes,
        )
        if isinstance(query, PodUsage) and query.namespace is None:
            usage: Any = PodMetricsList(items=tuple(await self._list(query, request)))
            return usage  # type: ignore[no-any-return]  # `kind` is the requested type
        answer = await self._client.sender.send_once(_act(query), request)
        with self.decoding.measure():
            return (
                _decode_usage(answer.body, kind) if isinstance(query, PodUsage) else decode(answer.body, kind)
            )

    async def _list(self, query: Query, request: Request) -> list[PodMetrics]:
        """Decode the list of all pods while it arrives.

        Lists of one namespace are short, and many arrive at once. Each of them is decoded when it is complete, so that
        they are not all in memory together.
        """
        items = ListDecoder(PodMetrics)

        def feed(chunk: bytes) -> None:
            with self.decoding.measure():
                items.feed(chunk)

        request = msgspec.structs.replace(request, into=feed)
        answer = await self._client.sender.send_once(_act(query), request)
        if answer.body:
            feed(answer.body)  # from a transport that returns it whole
        with self.decoding.measure():
            return items.finish(_act(query))

    async def close(self) -> None:
        """Cancel all queries in flight."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)


def _within(namespace: str, answer: PodMetricsList) -> PodMetricsList:
    """Return the items of a namespace. An item without a namespace belongs to it, as in custom metrics."""
    expected = {namespace, ""}
    if all(item.metadata.namespace in expected for item in answer.items):
        return answer
    return PodMetricsList(items=tuple(item for item in answer.items if item.metadata.namespace in expected))


def _decode_usage(body: bytes, kind: type[T]) -> T:
    """Decode the usage of a namespace. Raise WireError if the answer is another object than a list."""
    answer = decode(body, kind)
    if not answer.items:
        require_items(body)
    return answer


def _words_of(query: Query, error: ApiError) -> str:
    """Return the message of an error.

    Where an API is not served, the server says `404 page not found`, and client-go says this instead.
    """
    if error.code == _NOT_FOUND and not error.has_status and isinstance(query, PodUsage | ExternalMetric):
        resource = "pods" if isinstance(query, PodUsage) else query.metric
        return f"the server could not find the requested resource (get {resource}.{query.group})"
    return error.message or str(error)


def _act(query: Query) -> str:
    return f"reading {query.group}"
