"""Collectors for Prometheus that count in plain Python and build metrics on each scrape."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from trimtab.cluster.cache.shared import InformerFactory
from trimtab.cluster.client import Client


class RequestMetrics(Collector):
    """Collects `trimtab_api_requests_total{verb,code}`. Code 0 means no response."""

    def __init__(self, client: Client, registry: CollectorRegistry) -> None:
        self._counts = client.sender.counts
        registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yield the requests so far."""
        family = request_family()
        for (verb, code), number in sorted(self._counts.sent.items()):
            family.add_metric([verb, str(code)], number)
        yield family


def request_family() -> CounterMetricFamily:
    """Return the metric of requests without samples."""
    return CounterMetricFamily(
        "trimtab_api_requests", "Requests to the API server; code 0 is no response.", labels=["verb", "code"]
    )


class CacheMetrics(Collector):
    """Collects what the caches of a process hold and receive, by resource."""

    def __init__(self, informers: InformerFactory, registry: CollectorRegistry) -> None:
        self._informers = informers
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the numbers so far."""
        objects, received, dropped = cache_families()
        for informer in self._informers:
            name = ".".join(filter(None, (informer.resource.plural, informer.resource.group)))
            objects.add_metric([name], len(informer))
            received.add_metric([name], informer.received())
            dropped.add_metric([name], informer.dropped())
        yield from (objects, received, dropped)


def cache_families() -> tuple[GaugeMetricFamily, CounterMetricFamily, CounterMetricFamily]:
    """Return the metrics of caches without samples: objects, received bytes and dropped objects."""
    labels = ["resource"]
    return (
        GaugeMetricFamily("trimtab_cached_objects", "Objects in a cache.", labels=labels),
        CounterMetricFamily(
            "trimtab_cache_received_bytes", "Bytes of lists and watch events for a cache.", labels=labels
        ),
        CounterMetricFamily(
            "trimtab_cache_dropped_objects",
            "Objects of other shards that were sent for a cache.",
            labels=labels,
        ),
    )


Labels = tuple[str, ...]


class Values(Collector):
    """A gauge by labels, for use from one thread."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._name, self._text, self._labelnames = name, text, tuple(labels)
        self.by_labels: dict[Labels, float] = {}
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric without samples."""
        yield GaugeMetricFamily(self._name, self._text, labels=self._labelnames)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric with its samples."""
        family = GaugeMetricFamily(self._name, self._text, labels=self._labelnames)
        for labels, value in self.by_labels.items():
            family.add_metric(labels, value)
        yield family


class Durations(Collector):
    """A histogram of seconds by labels, for use from one thread, and a counter of its observations."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        *,
        bounds: Sequence[float],
        registry: CollectorRegistry,
        counter: tuple[str, str] | None = None,
    ) -> None:
        """Register the histogram, and the counter with this name and text."""
        self._name, self._text, self._labelnames = name, text, tuple(labels)
        self._counter = counter
        self._bounds = tuple(bounds)
        self._bound_labels = (*(str(float(bound)) for bound in bounds), "+Inf")
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        registry.register(self)

    def observe(self, labels: Labels, seconds: float, times: int = 1) -> None:
        """Count an observation, `times` times."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * len(self._bound_labels)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, seconds)] += times
        self._sums[labels] += seconds * times

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without samples."""
        if self._counter is not None:
            yield CounterMetricFamily(*self._counter, labels=self._labelnames)
        yield HistogramMetricFamily(self._name, self._text, labels=self._labelnames)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with their samples."""
        if self._counter is not None:
            counter = CounterMetricFamily(*self._counter, labels=self._labelnames)
            for labels, counts in self._counts.items():
                counter.add_metric(labels, sum(counts))
            yield counter
        family = HistogramMetricFamily(self._name, self._text, labels=self._labelnames)
        for labels, counts in self._counts.items():
            total, buckets = 0, []
            for bound, count in zip(self._bound_labels, counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(labels, buckets, self._sums[labels])
        yield family


OBJECT_LABELS: Final = frozenset({"namespace", "hpa_name", "vpa_name", "vpa_namespace"})
"""The labels whose values name objects of the cluster."""
_ADDED_UP: Final = ("counter", "histogram")


class WithoutNames(CollectorRegistry):
    """Collects the metrics of another registry without labels that name objects.

    Counters and histograms are added up over the objects. A gauge of an object says nothing without it and is left out.
    A sum keeps the share of objects that are gone, or Prometheus would take it for a counter that began anew.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._named = registry
        self._last: dict[_Series, float] = {}
        self._gone: dict[_Series, float] = {}
        """Sums over objects that are gone, by the labels that remain."""

    def collect(self) -> Iterator[Metric]:
        """Yield each metric once."""
        now: dict[_Series, float] = {}
        nameless: list[Metric] = []
        for metric in self._named.collect():
            if all(OBJECT_LABELS.isdisjoint(sample.labels) for sample in metric.samples):
                nameless.append(metric)
            else:
                now |= _added_up(metric)
                nameless.append(Metric(metric.name, metric.documentation, metric.type))
        for series, value in self._last.items():
            if now.get(series, 0.0) < value:
                kept = series.without_names()
                self._gone[kept] = self._gone.get(kept, 0.0) + value
        self._last = now
        self._fill(nameless)
        yield from nameless

    def _fill(self, metrics: Iterable[Metric]) -> None:
        by_name = {metric.name: metric for metric in metrics}
        totals = dict(self._gone)
        for series, value in self._last.items():
            kept = series.without_names()
            totals[kept] = totals.get(kept, 0.0) + value
        for series, total in totals.items():
            if series.metric in by_name:
                by_name[series.metric].add_sample(series.sample, dict(series.labels), total)


class _Series(NamedTuple):
    metric: str
    sample: str
    labels: tuple[tuple[str, str], ...]

    def without_names(self) -> "_Series":
        kept = tuple(label for label in self.labels if label[0] not in OBJECT_LABELS)
        return self._replace(labels=kept)


def _added_up(metric: Metric) -> dict[_Series, float]:
    """Return the samples of a counter or histogram, without times, which cannot be added up."""
    return {
        _Series(metric.name, sample.name, tuple(sample.labels.items())): sample.value
        for sample in (metric.samples if metric.type in _ADDED_UP else ())
        if not sample.name.endswith("_created")
    }
