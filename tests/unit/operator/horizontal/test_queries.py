"""Queries of metrics: which a spec leads to, what each answer means, and whose clock dated it."""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import (
    average,
    container_cpu,
    cpu,
    external,
    object_metric,
    pods_metric,
    spec,
    value,
)
from tests.unit.operator.horizontal.fakes import hpa_state, target
from trimtab.clock import VirtualClock
from trimtab.cluster.discovery import Served, UnknownKindError
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.metrics.queries import ExternalMetric, MetricsError, ObjectMetric, PodsMetric, PodUsage, Query
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.json import wire
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList, PodMetricsList
from trimtab.operator.horizontal.queries import (
    MetricFetcher,
    build_queries,
    query_for,
    usage_in,
    usage_namespaces,
)
from trimtab.operator.horizontal.usage import ALL_NAMESPACES, ClusterUsage, NamespaceUsage

EARLY, LATE = "2026-01-15T12:00:00Z", "2026-01-15T12:00:30Z"
LATE_SECONDS = 1768478430.0
BROKEN = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
USAGE, QUEUE = PodUsage("shop"), ExternalMetric("shop", "queue")
QPS, RPS = PodsMetric("shop", "qps", "app=web"), ObjectMetric("shop", "ingresses", "web", "rps")


def usage_list(*dates: str, namespace: str = "shop") -> PodMetricsList:
    items = [
        {"metadata": {"name": f"web-{place}", "namespace": namespace}, "timestamp": date}
        for place, date in enumerate(dates)
    ]
    return wire.convert({"items": items}, PodMetricsList)


def custom_list(*dates: str | None, metric: str = "qps", namespace: str = "shop") -> MetricValueList:
    items = [
        {
            "describedObject": {"name": f"web-{place}" if len(dates) > 1 else "web", "namespace": namespace},
            "metricName": metric,
            "value": "1",
            "timestamp": date,
        }
        for place, date in enumerate(dates)
    ]
    return wire.convert({"items": items}, MetricValueList)


def external_list(*dates: str | None) -> ExternalMetricValueList:
    items = [{"metricName": "queue", "value": "1", "timestamp": date} for date in dates]
    return wire.convert({"items": items}, ExternalMetricValueList)


class World:
    """Sources that answer as they are told."""

    def __init__(self, answer: Any = None, *, is_strict: bool = True, is_cheaper: bool = False) -> None:
        self.answer = answer
        self.decoding: Any = self
        self.asked: list[Query] = []
        self.ends: list[str] = []
        self.kinds: dict[str, str] = {"Ingress": "networking.k8s.io", "Node": ""}
        self._is_cheaper = is_cheaper
        everything: Any = self
        self.fetcher = MetricFetcher(
            VirtualClock(),
            everything,
            everything,
            everything,
            is_strict=is_strict,
        )

    def measure(self) -> Any:
        return nullcontext()

    async def pod_usage(self, query: Query) -> Any:
        self.asked.append(query)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    external = custom = pod_usage

    def is_cheaper(self, _namespaces: Any) -> bool:
        return self._is_cheaper

    def note_success(self) -> None:
        self.ends.append("success")

    def note_failure(self, reason: str) -> None:
        self.ends.append(reason)

    async def find_kind(self, api_version: str, kind: str) -> Served:
        if kind not in self.kinds:
            raise UnknownKindError(f"no {kind} in {api_version}")
        return Served(self.kinds[kind], "v1", f"{kind.lower()}s", kind, True, frozenset())

    def fetch_one(self, query: Query) -> Any:
        return asyncio.run(self.fetcher.fetch_one(query))


@pytest.mark.parametrize(
    ("query", "api"),
    [(USAGE, "resource"), (QPS, "custom"), (RPS, "custom"), (QUEUE, "external")],
)
@pytest.mark.parametrize("failure", [MetricsError("down"), ValueError("down"), OverflowError("down")])
def test_a_source_that_fails_is_named_and_raises_nothing(query, api, failure):
    found = World(failure).fetch_one(query)
    assert found == FetchFailure(message=f"unable to fetch metrics from {api} metrics API: down")


def test_a_strict_fetcher_rejects_answers_about_another_object():
    foreign = custom_list(EARLY, metric="rps", namespace="other")
    assert isinstance(World(foreign).fetch_one(RPS), FetchFailure)
    assert not isinstance(World(foreign, is_strict=False).fetch_one(RPS), FetchFailure)
    assert isinstance(World(external_list(EARLY)).fetch_one(ExternalMetric("shop", "else")), FetchFailure)
    usage = usage_list(EARLY, namespace="other")
    for is_strict, dates in ((True, []), (False, [EARLY])):
        found = World(usage, is_strict=is_strict).fetch_one(USAGE)
        assert isinstance(found, NamespaceUsage)
        assert bool(found.items) is bool(dates)


def test_an_object_metric_of_a_namespace_is_about_that_namespace():
    named = wire.convert(
        {"items": [{"describedObject": {"name": "shop"}, "metricName": "rps", "value": "1"}]}, MetricValueList
    )
    world = World(named)
    assert not isinstance(world.fetch_one(ObjectMetric("shop", "namespaces", "other", "rps")), FetchFailure)


@pytest.mark.parametrize(
    ("metric", "want"),
    [
        pytest.param(cpu(50), USAGE, id="a resource"),
        pytest.param(container_cpu("app"), USAGE, id="a resource of a container"),
        pytest.param(pods_metric("10"), QPS, id="pods"),
        pytest.param(external(average("10")), QUEUE, id="external"),
        pytest.param(object_metric(value("10")), None, id="an object, whose kind is looked up"),
        pytest.param(spec("Pods"), "the metric source is not set", id="pods without a source"),
        pytest.param(spec("External"), "the metric source is not set", id="external without a source"),
        pytest.param(spec("Object"), "the metric source is not set", id="an object without a source"),
        pytest.param(pods_metric("10", selector=BROKEN), "Near", id="a selector of pods that is none"),
        pytest.param(
            external(average("10"), selector=BROKEN), "Near", id="a selector of series that is none"
        ),
    ],
)
def test_each_metric_leads_to_its_query(metric, want):
    found = query_for(metric, "shop", "app=web")
    if isinstance(want, str):
        assert isinstance(found, FetchFailure)
        assert want in found.message
    else:
        assert found == want


@pytest.mark.parametrize(
    ("metric", "want"),
    [
        (object_metric(value("10")), ObjectMetric("shop", "ingresss.networking.k8s.io", "web", "rps")),
        (object_metric(value("10"), kind="Node"), ObjectMetric("shop", "nodes", "web", "rps")),
        (object_metric(value("10"), kind="Moon"), "no Moon"),
        (object_metric(value("10"), selector=BROKEN), "Near"),
        (cpu(50), USAGE),
        (spec("Object"), "the metric source is not set"),
    ],
)
def test_the_kind_of_an_object_is_looked_up(metric, want):
    found = asyncio.run(World().fetcher.resolve(metric, "shop", "app=web"))
    if isinstance(want, str):
        assert isinstance(found, FetchFailure)
        assert want in found.message
    elif isinstance(found, ObjectMetric):
        assert (found.resource, found.metric) == (want.resource, want.metric)
    else:
        assert found == want


def test_a_resource_is_measured_in_its_container_or_in_the_whole_pod():
    assert measured_by(cpu(50)) == ("cpu", "")
    assert measured_by(container_cpu("app")) == ("cpu", "app")
    assert measured_by(spec("Resource")) == ("", "")


def test_usage_is_queried_once_for_all_that_need_it_and_others_keep_their_queries():
    state = hpa_state()
    both = build_queries(state.hpa, target(), (QUEUE, USAGE, FetchFailure(message="none")))
    assert both.queries == {QUEUE, USAGE}
    assert both.queries_list_all == {QUEUE, ALL_NAMESPACES}
    assert (both.usage, both.is_only_usage) == (USAGE, False)
    alone = build_queries(state.hpa, target(), (USAGE, USAGE))
    assert (set(alone.queries), set(alone.queries_list_all)) == ({USAGE}, {ALL_NAMESPACES})
    assert alone.is_only_usage
    none = build_queries(state.hpa, target(), (QUEUE,))
    assert (none.usage, set(none.queries_list_all), none.is_only_usage) == (None, {QUEUE}, False)
    assert usage_namespaces([none, both, alone]) == {"shop"}


@pytest.mark.parametrize("is_cheaper", [True, False])
def test_usage_is_listed_for_all_namespaces_where_that_is_cheaper(is_cheaper):
    world = World(usage_list(EARLY), is_cheaper=is_cheaper)
    queries = [
        build_queries(hpa_state().hpa, target(), (PodUsage(namespace),)) for namespace in ("shop", "mail")
    ]
    samples = asyncio.run(world.fetcher.fetch(world.fetcher.usage_lists(queries)))
    assert world.asked == ([ALL_NAMESPACES] if is_cheaper else [PodUsage("mail"), PodUsage("shop")])
    assert world.ends == (["success"] if is_cheaper else [])
    assert isinstance(usage_in(USAGE, samples), NamespaceUsage)


def test_a_list_for_all_that_fails_is_noted():
    world = World(MetricsError("too large"))
    samples = asyncio.run(world.fetcher.fetch([ALL_NAMESPACES, QUEUE]))
    assert [type(samples[query]) for query in (ALL_NAMESPACES, QUEUE)] == [FetchFailure] * 2
    assert len(world.ends) == 1
    assert "too large" in world.ends[0]
    world.answer = usage_list(EARLY)
    samples = asyncio.run(world.fetcher.fetch([ALL_NAMESPACES]))
    assert isinstance(samples[ALL_NAMESPACES], ClusterUsage)
    assert world.ends[1:] == ["success"]
