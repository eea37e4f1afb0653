"""Tries the plug-ins of a configuration: asks each metric once and shows the values."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.adapter.api.requests import ExternalMetricQuery
from trimtab.adapter.config import AdapterConfiguration
from trimtab.adapter.sources.plugin.source import SourcePlugins
from trimtab.adapter.sources.source import ExternalSample
from trimtab.clock import Clock
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_time
from trimtab.plugins.guard import PluginFailure
from trimtab.plugins.registry import Plugins

SERIES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TriedMetric:
    """What a plug-in answered about one metric."""

    source: str
    metric: str
    values: Sequence[str] = ()
    problem: str = ""


async def try_plugins(
    clock: Clock, configuration: AdapterConfiguration, plugins: Plugins, namespace: str, selector: Selector
) -> list[TriedMetric]:
    """Ask every metric of every plug-in once, or raise ConfigurationError."""
    loaded = SourcePlugins(plugins)
    tried: list[TriedMetric] = []
    for settings in configuration.sources:
        if settings.plugin is None:
            continue
        source = loaded.source(clock, settings.name, settings.plugin)
        try:
            for metric in settings.plugin.metrics:
                answer = await source.ask(ExternalMetricQuery(namespace, metric, selector))
                tried.append(_tried(settings.name, metric, answer))
        finally:
            await source.close()
    return tried


def _tried(source: str, metric: str, answer: list[ExternalSample] | PluginFailure) -> TriedMetric:
    if isinstance(answer, PluginFailure):
        return TriedMetric(source, metric, problem=answer.message)
    lines = [_line(sample) for sample in answer[:SERIES_SHOWN]]
    if len(answer) > SERIES_SHOWN:
        lines.append(f"and {len(answer) - SERIES_SHOWN} more")
    return TriedMetric(source, metric, lines or ["no series: an autoscaler reads that as an error"])


def _line(sample: ExternalSample) -> str:
    labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
    return f"{sample.value} {{{labels}}} at {format_time(sample.timestamp)}"
