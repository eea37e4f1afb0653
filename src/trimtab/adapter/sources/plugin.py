"""Serves the metrics of a plug-in: with a time limit, a cache, and a thread of its own. `try_plugins` is `trimtab adapter test`."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.adapter.config import AdapterConfiguration, PluginSettings
from trimtab.adapter.files import ConfigurationError, seconds
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample
from trimtab.clock import Clock
from trimtab.model.labels.selector import Selector
from trimtab.model.quantity import Quantity
from trimtab.model.status import StatusError
from trimtab.model.times import format_time
from trimtab.plugins.errors import DeclinedError, plain_errors
from trimtab.plugins.guard import Guard, Guards, PluginFailure
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.metric_source import (
    LabelRequirement,
    MetricRequest,
    MetricSource,
    MetricValue,
    check_series,
)
from trimtab.plugins.registry import Plugin, Plugins
from trimtab.plugins.thread import PluginThread

MAX_CACHED = 1024
"""Queries whose answers are cached; the oldest is forgotten first."""
LONGEST_CACHE_SECONDS = 300.0
_NANOS = 10**9


class PluginSource:
    """Returns the series that a plug-in answers, each with the time of its measurement."""

    def __init__(
        self, clock: Clock, name: str, function: MetricSource, guard: Guard, settings: PluginSettings
    ) -> None:
        """Serve `function`, whose calls `guard` counts."""
        where = f"sources: {name}: plugin"
        self.name = name
        self._clock = clock
        self._metrics = frozenset(settings.metrics)
        self._parameters = settings.parameters
        self._timeout = seconds(settings.timeout, f"{where}: timeout")
        self._cache_seconds = seconds(settings.cache_for, f"{where}: cacheFor") if settings.cache_for else 0.0
        if not self._metrics:
            raise ConfigurationError(f"{where}: metrics: name the metrics that the plug-in answers")
        if self._cache_seconds > LONGEST_CACHE_SECONDS:
            raise ConfigurationError(f"{where}: cacheFor: {settings.cache_for} is longer than 5m")
        self._function = function
        self._guard = guard
        self._thread = PluginThread(f"source {name}")
        self._cache: OrderedDict[ExternalMetricQuery, tuple[float, list[ExternalSample]]] = OrderedDict()
        self._problems: dict[str, str] = {}
        """The last failure of each metric, by namespace and name."""

    def serves(self, query: MetricQuery) -> bool:
        """Return whether the configuration names the metric. Plug-ins answer external metrics only."""
        return isinstance(query, ExternalMetricQuery) and query.metric in self._metrics

    def catalogue(self) -> Catalogue:
        """Return the metrics of the configuration."""
        return Catalogue(external=self._metrics)

    def health(self) -> Iterable[Health]:
        """Return whether the last answer for each metric and namespace was usable."""
        reason = "; ".join(f"{metric}: {problem}" for metric, problem in sorted(self._problems.items()))
        yield Health(f"source {self.name}", State.FAILING if reason else State.OK, reason)

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Raise NotFound, because plug-ins answer external metrics only."""
        raise StatusError(404, f"the server could not find the metric {query.metric} for {query.resource}")

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series that match, at most `cacheFor` old. Tenants do not get the reason of a failure."""
        answer = await self.ask(query)
        if isinstance(answer, PluginFailure):
            raise StatusError(
                503, f"source {self.name} gives no usable answer at the moment; the adapter's log says why"
            )
        return answer

    async def ask(self, query: ExternalMetricQuery) -> list[ExternalSample] | PluginFailure:
        """Return the series that match, or why there is no usable answer."""
        until, cached = self._cache.get(query, (0.0, None))
        if cached is not None and self._clock.monotonic() < until:
            return cached
        user = f"{self.name}: {query.namespace}/{query.metric}"
        answer = await self._guard.call_async(
            lambda: self._thread.call(lambda: self._answer(query, self._clock.now())),
            user=user,
            now=self._clock.monotonic(),
            seconds=self._timeout,
        )
        if isinstance(answer, PluginFailure):
            self._problems[user] = answer.message
            return answer
        self._problems.pop(user, None)
        self._store(query, answer)
        return answer

    async def run(self) -> None:
        """Do nothing: a plug-in is called when a client asks."""

    async def close(self) -> None:
        """Let the plug-in's thread end."""
        self._thread.close()

    def _store(self, query: ExternalMetricQuery, answer: list[ExternalSample]) -> None:
        if self._cache_seconds:
            self._cache[query] = self._clock.monotonic() + self._cache_seconds, answer
            self._cache.move_to_end(query)
            while len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)

    async def _answer(self, query: ExternalMetricQuery, now: datetime) -> list[ExternalSample]:
        """Call the plug-in, check its answer and read its exception, all on the plug-in's thread."""
        requirements = tuple(
            LabelRequirement(key=requirement.key, operator=requirement.operator, values=requirement.values)
            for requirement in query.series.requirements
        )
        request = MetricRequest(
            namespace=query.namespace,
            metric=query.metric,
            selector=requirements,
            parameters=deepcopy(self._parameters),  # the plug-in may change its copy
        )
        with plain_errors():
            series = check_series(await self._function(request), now)
        return [_sample(value, now) for value in series if query.series.matches(value.labels)]


class SourcePlugins:
    """The loaded metric sources, and their guards."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self.guards = Guards(Plugins(plugins.of_kind(PluginKind.METRIC_SOURCE)))

    def source(self, clock: Clock, name: str, settings: PluginSettings) -> PluginSource:
        """Return a source of the configuration, or raise ConfigurationError if its plug-in is not loaded."""
        plugin = self._plugins.find(PluginKind.METRIC_SOURCE, settings.name)
        guard = self.guards.find(PluginKind.METRIC_SOURCE, settings.name)
        if plugin is not None and guard is not None:
            return PluginSource(clock, name, plugin.call, guard, settings)
        error = self._plugins.errors.get(settings.name)
        if error is None:
            raise ConfigurationError(
                f"sources: {name}: plugin: no metric source {settings.name!r} is loaded; "
                f"install its package and start with --plugins={settings.name}"
            )
        # The other sources are served all the same.
        function = partial(_decline, error)
        guard = Guard(Plugin(settings.name, PluginKind.METRIC_SOURCE, function))
        return PluginSource(clock, name, function, guard, settings)


async def _decline(error: str, _request: MetricRequest) -> list[MetricValue]:
    raise DeclinedError(error)


def _sample(value: MetricValue, now: datetime) -> ExternalSample:
    quantity = Quantity(int((Decimal(value.value) * _NANOS).to_integral_value()))
    return ExternalSample(value.labels, quantity, value.time or now)


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
