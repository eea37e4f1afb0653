"""Counts of plug-in calls for Prometheus."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from trimtab.plugins.guard import Guards

LABELS = ("plugin", "kind", "version")


class PluginMetrics(Collector):
    """Collects whether plug-ins are loaded, and their calls, seconds and failures, by plug-in."""

    def __init__(self, guards: Guards, registry: CollectorRegistry) -> None:
        """Register the metrics of the plug-ins that a process names. Without any there are none."""
        self._guards = guards
        if guards.all() or guards.not_loadable:
            registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the state and the counts so far."""
        loaded = GaugeMetricFamily(
            "trimtab_plugin_loaded",
            "1 for a plug-in of --plugins that is loaded, 0 for one that could not be; the log says why.",
            labels=LABELS,
        )
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
            loaded.add_metric(labels, 1)
            calls.add_metric(labels, guard.calls)
            seconds.add_metric(labels, guard.seconds)
            for reason, count in sorted(guard.failures.items()):
                failures.add_metric([*labels, reason], count)
        for name in self._guards.not_loadable:
            loaded.add_metric([name, "", ""], 0)
        yield from (loaded, calls, seconds, failures)
