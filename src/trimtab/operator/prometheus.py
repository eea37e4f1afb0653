"""Collectors for Prometheus that count in plain Python and build metrics on each scrape."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector

from trimtab.cluster.client import Client


class RequestMetrics(Collector):
    """Collects `trimtab_api_requests_total{verb,code}`. Code 0 means no response."""

    def __init__(self, client: Client, registry: CollectorRegistry) -> None:
        self._counts = client.sender.counts
        registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yield the requests so far."""
        family = CounterMetricFamily(
            "trimtab_api_requests", "Requests to the API server.", labels=["verb", "code"]
        )
        for (verb, code), number in sorted(self._counts.sent.items()):
            family.add_metric([verb, str(code)], number)
        yield family


Labels = tuple[str, ...]


class Durations(Collector):
    """A histogram of seconds by labels, for use from one thread."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        *,
        bounds: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name, self._text, self._labelnames = name, text, tuple(labels)
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

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """Yield the metric without samples."""
        yield HistogramMetricFamily(self._name, self._text, labels=self._labelnames)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the metric with its samples."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labelnames)
        for labels, counts in self._counts.items():
            total, buckets = 0, []
            for bound, count in zip(self._bound_labels, counts, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(labels, buckets, self._sums[labels])
        yield family
