"""The metric queries of HPAs: which they are, and their results.

`MetricQueries` are built from an HPA and its target, and stay valid until either changes. `MetricFetcher` sends
queries to the metrics APIs. `samples_for` selects from the results what one metric of one HPA needs.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.discovery import Discovery
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import (
    Asked,
    FetchFailure,
    MetricSamples,
    PodSamples,
    Series,
    read_external_metric,
    read_object_metric,
    read_pods_metric,
)
from trimtab.metrics.queries import ExternalMetric, MetricsError, ObjectMetric, PodsMetric, PodUsage, Query
from trimtab.metrics.reader import MetricsReader
from trimtab.model.core.meta import Condition
from trimtab.model.hpa.metric_kinds import kind_of, measured_by
from trimtab.model.hpa.types import (
    ExternalMetricSource,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    MetricSpec,
    ObjectMetricSource,
    PodsMetricSource,
)
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.operator.horizontal.sample_moves import SampleMoves, dates_of, oldest_move, with_moves
from trimtab.operator.horizontal.targets import ResolvedTarget
from trimtab.operator.horizontal.usage import (
    ALL_NAMESPACES,
    ClusterUsage,
    ListAllPolicy,
    NamespaceUsage,
    namespace_usage,
)

QuerySet = frozenset[Query]
QueryResult = ClusterUsage | NamespaceUsage | MetricSamples
Samples = Mapping[Query, QueryResult]

_ONLY_USAGE: QuerySet = frozenset({ALL_NAMESPACES})

_NOT_SET = FetchFailure(message="the metric source is not set")

_FAILURES = {
    PodUsage: "unable to fetch metrics from resource metrics API: ",
    ObjectMetric: "unable to fetch metrics from custom metrics API: ",
    PodsMetric: "unable to fetch metrics from custom metrics API: ",
    ExternalMetric: "unable to fetch metrics from external metrics API: ",
}


@dataclass(frozen=True, slots=True)
class MetricQueries:
    """The queries that one decision waits for."""

    spec: HorizontalPodAutoscalerSpec
    conditions: tuple[Condition, ...]
    target: ResolvedTarget
    per_metric: tuple[Query | FetchFailure, ...]
    """The query of each metric of the spec. Empty if the decision needs no metrics."""
    queries: QuerySet
    """The distinct queries, with the usage of the pods of the HPA's namespace."""
    queries_list_all: QuerySet
    """The same, with the usage of all pods instead."""
    usage: PodUsage | None
    """The query for the usage of the pods of the HPA's namespace. None if no metric needs it."""

    def is_for(self, hpa: HorizontalPodAutoscaler, target: ResolvedTarget) -> bool:
        """Return whether the queries are still valid for this HPA and target."""
        return self.target is target and self.spec is hpa.spec and self.conditions is hpa.status.conditions

    @property
    def is_only_usage(self) -> bool:
        """Return whether the usage of pods is the only query."""
        return self.queries_list_all is _ONLY_USAGE


def build_queries(
    hpa: HorizontalPodAutoscaler, target: ResolvedTarget, per_metric: tuple[Query | FetchFailure, ...]
) -> MetricQueries:
    """Build the queries of an HPA and its target."""
    queries = frozenset(query for query in per_metric if not isinstance(query, FetchFailure))
    usage = next((query for query in queries if isinstance(query, PodUsage)), None)
    list_all = queries
    if usage is not None:
        # Nearly all HPAs have this one set. Sharing it makes them quick to group.
        list_all = _ONLY_USAGE if len(queries) == 1 else queries - {usage} | _ONLY_USAGE
    return MetricQueries(hpa.spec, hpa.status.conditions, target, per_metric, queries, list_all, usage)


def usage_namespaces(all_queries: Iterable[MetricQueries]) -> set[str]:
    """Return the namespaces whose pods' usage is queried."""
    return {
        queries.usage.namespace
        for queries in all_queries
        if queries.usage is not None and queries.usage.namespace
    }


class MetricFetcher:
    """Resolves the queries of metrics, and sends queries to the metrics APIs.

    A strict fetcher rejects results about another object than the query's; upstream accepts them.
    """

    def __init__(
        self,
        clock: Clock,
        reader: MetricsReader,
        discovery: Discovery,
        list_all: ListAllPolicy,
        *,
        is_strict: bool,
    ) -> None:
        self.list_all = list_all
        self.moves = SampleMoves(clock)
        self.decoding = reader.decoding
        """The CPU time that lists of usage took to decode and index."""
        self._clock = clock
        self._reader = reader
        self._discovery = discovery
        self._is_strict = is_strict

    async def resolve(self, metric: MetricSpec, namespace: str, pod_selector: str) -> Query | FetchFailure:
        """Return the query of a metric, after looking up the kind of its object."""
        query = query_for(metric, namespace, pod_selector)
        if query is not None or metric.object is None:
            return query or _NOT_SET
        try:
            return await self._resolve_object(metric.object, namespace)
        except (SelectorError, errors.ClusterError) as error:
            return FetchFailure(message=str(error))

    async def _resolve_object(self, source: ObjectMetricSource, namespace: str) -> Query:
        described = source.described_object
        selector = _selector_text(source.metric.selector)
        served = await self._discovery.find_kind(described.api_version or "v1", described.kind)
        resource = f"{served.plural}.{served.group}" if served.group else served.plural
        return ObjectMetric(namespace, resource, described.name, source.metric.name, selector)

    async def fetch(self, queries: Iterable[Query]) -> Samples:
        """Send each query once, all at the same time, in an order that is the same in every process."""
        sent = sorted(queries, key=repr)
        results = await asyncio.gather(*map(self.fetch_one, sent))
        samples = dict(zip(sent, results, strict=True))
        if (listed := samples.get(ALL_NAMESPACES)) is not None:
            if isinstance(listed, FetchFailure):
                self.list_all.note_failure(listed.message)
            else:
                self.list_all.note_success()
        return samples

    def usage_lists(self, all_queries: Iterable[MetricQueries]) -> tuple[PodUsage, ...]:
        """Return the lists with the usage of these pods: one for all namespaces where that is cheaper."""
        namespaces = usage_namespaces(all_queries)
        if self.list_all.is_cheaper(namespaces):
            return (ALL_NAMESPACES,)
        return tuple(PodUsage(namespace) for namespace in sorted(namespaces))

    async def fetch_one(self, query: Query) -> QueryResult:
        """Send one query, and return a `FetchFailure` if the source fails."""
        asked_at = self._clock.monotonic()
        return self._with_moves(query, await self._fetch_one(query), asked_at)

    def _with_moves(self, query: Query, result: QueryResult, asked_at: float) -> QueryResult:
        """Return the result with the times when the dates in it were first seen."""
        if isinstance(query, PodUsage):
            parts = result.namespaces if isinstance(result, ClusterUsage) else {query.namespace or "": result}
            for namespace, usage in parts.items():
                if isinstance(usage, NamespaceUsage):
                    usage.moves = self.moves.note_usage(namespace, usage.items.values(), asked_at)
                    usage.moved_at = oldest_move(usage.moves, self._clock.monotonic())
            return result
        if not isinstance(result, PodSamples | Series) or not (dates := dates_of(result)):
            return result
        return with_moves(result, self.moves.note(query, dates, asked_at), 0.0)

    async def _fetch_one(self, query: Query) -> QueryResult:
        try:
            if isinstance(query, PodUsage):
                usage = await self._reader.pod_usage(query)
                with self.decoding.measure():
                    if query == ALL_NAMESPACES:
                        return ClusterUsage(usage)
                    return namespace_usage(usage, query.namespace if self._is_strict else None)
            expected = _expected(query) if self._is_strict else None
            if isinstance(query, ExternalMetric):
                return read_external_metric(await self._reader.external(query), expected)
            values = await self._reader.custom(query)
            read = read_pods_metric if isinstance(query, PodsMetric) else read_object_metric
            return read(values, expected)
        except (MetricsError, ValueError, OverflowError) as error:
            is_forbidden = isinstance(error, MetricsError) and error.is_forbidden
            return FetchFailure(message=f"{_FAILURES[type(query)]}{error}", is_forbidden=is_forbidden)


def query_for(metric: MetricSpec, namespace: str, pod_selector: str) -> Query | FetchFailure | None:
    """Return the query of a metric, or None if a kind has to be looked up first."""
    kind = kind_of(metric)
    try:
        match None if kind is None else kind.part(metric):
            case None:
                return _NOT_SET
            case ObjectMetricSource():
                return None
            case PodsMetricSource(metric=named):
                return PodsMetric(namespace, named.name, pod_selector, _selector_text(named.selector))
            case ExternalMetricSource(metric=named):
                return ExternalMetric(namespace, named.name, _selector_text(named.selector))
            case _:
                return PodUsage(namespace)
    except SelectorError as error:
        return FetchFailure(message=str(error))


def samples_for(
    metric: MetricSpec, query: Query, samples: Samples, pods: tuple[PodSnapshot, ...], shift: float
) -> MetricSamples:
    """Return the samples of one metric of one HPA."""
    result = usage_in(query, samples) if isinstance(query, PodUsage) else samples[query]
    if not isinstance(result, NamespaceUsage):
        assert not isinstance(result, ClusterUsage | None), f"{query} was not sent"
        moved = {} if isinstance(result, FetchFailure) else {move.timestamp: move for move in result.moves}
        return with_moves(result, moved, shift)
    return with_moves(result.samples(pods, *measured_by(metric)), result.moves, shift)


def usage_in(query: PodUsage, samples: Samples) -> QueryResult | None:
    """Return the usage of one namespace, from the list for all namespaces if that was fetched."""
    listed = samples.get(ALL_NAMESPACES)
    return listed.within(query.namespace) if isinstance(listed, ClusterUsage) else samples.get(query)


def _expected(query: ExternalMetric | ObjectMetric | PodsMetric) -> Asked:
    """Return the object that a result has to be about (fault F40)."""
    if isinstance(query, ObjectMetric):
        name = query.namespace if query.resource == "namespaces" else query.name
        return Asked(metric=query.metric, namespace=query.namespace, object=name)
    return Asked(metric=query.metric, namespace=query.namespace)


def _selector_text(selector: LabelSelector | None) -> str:
    # No selector means every series, although an absent label selector usually selects nothing.
    return "" if selector is None else str(Selector.from_label_selector(selector))
