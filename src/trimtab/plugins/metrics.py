"""Counts of plug-in calls for Prometheus."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from trimtab.plugins.guard import Guards

LABELS = ("plugin", "kind", "version")


class PluginMetrics(Collector):
    """Collects calls, seconds and failures by plug-in."""

    def __init__(self, guards: Guards, registry: CollectorRegistry) -> None:
        self._guards = guards
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the counts so far."""
        calls = CounterMetricFamily("trimtab_plugin_calls", "Calls of plug-ins.", labels=LABELS)
        seconds = CounterMetricFamily(
            "trimtab_plugin_seconds", "Wall time in calls of plug-ins.", labels=LABELS
        )
        failures = CounterMetricFamily(
            "trimtab_plugin_failures",
            "Calls of plug-ins without a usable answer, and calls left out in a pause.",
            labels=(*LABELS, "reason"),
        )
        for guard in self._guards.all():
            labels = [guard.plugin.name, guard.plugin.kind.label, guard.plugin.version]
            calls.add_metric(labels, guard.calls)
            seconds.add_metric(labels, guard.seconds)
            for reason, count in sorted(guard.failures.items()):
                failures.add_metric([*labels, reason], count)
        yield from (calls, seconds, failures)
