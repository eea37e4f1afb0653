"""Requests to the API server as a metric, read from the client's own counts when somebody looks."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from trimtab.cluster.client import Client


class RequestMetrics(Collector):
    """`trimtab_api_requests_total{verb,code}`; code 0 means that no answer came."""

    def __init__(self, client: Client, registry: CollectorRegistry) -> None:
        self._counts = client.sender.counts
        registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Return what was sent so far."""
        family = CounterMetricFamily(
            "trimtab_api_requests", "Requests to the API server.", labels=["verb", "code"]
        )
        for (verb, code), number in sorted(self._counts.sent.items()):
            family.add_metric([verb, str(code)], number)
        yield family
