"""The adapter's own Prometheus metrics."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trimtab.adapter.api.health import State
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.source import Source
from trimtab.plugins.guard import Guards
from trimtab.plugins.metrics import PluginMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class RequestMetrics:
    """Counts the requests to the adapter."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "trimtab_adapter_requests",
            "Requests to the adapter by API group and status.",
            ["group", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "trimtab_adapter_request_seconds",
            "Time that the adapter took to answer.",
            ["group"],
            buckets=_BUCKETS,
            registry=registry,
        )

    def record(self, group: str, code: int, seconds: float) -> None:
        """Record one request."""
        self._requests.labels(group, str(code)).inc()
        self._seconds.labels(group).observe(seconds)


class AdapterMetrics:
    """Counts requests and exports the health of sources and rules."""

    def __init__(self, sources: Sequence[Source], objects: ClusterObjects, guards: Guards) -> None:
        self._registry = CollectorRegistry()
        self.record = RequestMetrics(self._registry).record
        self._registry.register(_HealthCollector(sources, objects))
        PluginMetrics(guards, self._registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _HealthCollector(Collector):
    def __init__(self, sources: Sequence[Source], objects: ClusterObjects) -> None:
        self._sources = sources
        self._objects = objects

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the current states."""
        family = health_family()
        parts = [(source.name, health) for source in self._sources for health in source.health()]
        parts += [("cluster", health) for health in self._objects.health()]
        for name, health in parts:
            for state in State:
                family.add_metric([name, health.name, state.value], float(health.state is state))
        yield family


def health_family() -> GaugeMetricFamily:
    """Return the metric of states without samples."""
    return GaugeMetricFamily(
        "trimtab_adapter_source_health",
        "1 for the state that a source, a rule or a watch of pods (source `cluster`) is in.",
        labels=["source", "what", "state"],
    )
