"""Serves metrics by rules over a Prometheus. `try_rules` is `trimtab adapter test`."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from trimtab.adapter.api.health import Health, RuleHealth, State
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.adapter.files import ConfigurationError
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.prometheus.promql import is_simple_name
from trimtab.adapter.sources.prometheus.rules import (
    CheckedRule,
    RulesFile,
    custom_promql,
    discovery_in,
    example_queries,
    external_promql,
    load_rules,
)
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer, collapse
from trimtab.clock import Clock
from trimtab.metrics.prometheus import (
    Instant,
    PrometheusClient,
    PrometheusError,
    QueryFailedOnSeriesError,
    QueryRefusedError,
)
from trimtab.model.quantity import Quantity
from trimtab.model.status import StatusError
from trimtab.serving.tls import WatchedFile

log = logging.getLogger(__name__)

FUTURE_SECONDS = 60.0
"""How far a sample may be ahead of our clock."""

_LARGEST = Decimal(2**63 - 1)
"""Clients of the metrics APIs use int64; larger values overflow in some of them."""

_NANOS = Decimal(10**9)
_QUERY_REJECTED = ": this query is out of service: Prometheus rejects it"


class RejectedSampleError(ValueError):
    """A sample is not served. The message is the reason."""


def parse_value(text: str) -> Quantity:
    """Parse a sample's value, exact to 1e-9. Raise RejectedSampleError for NaN, infinity and more than 2^63."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise RejectedSampleError(f"{text!r} is not a number") from None
    if not number.is_finite():
        raise RejectedSampleError(f"the value is {text}")
    if abs(number) > _LARGEST:
        raise RejectedSampleError(f"the value {text} is beyond 2^63")
    return Quantity(int((number * _NANOS).to_integral_value()))


def sample_time(unix_seconds: float, now: datetime, max_age: float) -> datetime:
    """Return the time of a sample. Raise RejectedSampleError if it is too old or in the future."""
    age = now.timestamp() - unix_seconds
    if age > max_age:
        raise RejectedSampleError(f"the sample is {age:.0f} s old, more than {max_age:g} s")
    if age < -FUTURE_SECONDS:
        raise RejectedSampleError(f"the sample is {-age:.0f} s ahead of our clock")
    return datetime.fromtimestamp(unix_seconds, UTC)


class ActiveRule:
    """A rule with its discovered series and its health."""

    def __init__(self, clock: Clock, source: str, checked: CheckedRule) -> None:
        self.checked = checked
        self.health = RuleHealth(clock, f"rule {source}/{checked.name}")
        self.series: dict[str, tuple[str, ...]] = {}
        """Discovered series by metric. Of several, the first that a namespace has is its own."""
        self.is_proven = False
        """Whether Prometheus could parse the rule's query."""

    def series_of(self, metric: str) -> tuple[str, ...]:
        """Return the series of a metric. A rule for one series needs no discovery."""
        rule = self.checked.rule
        if rule.series:
            return (rule.series,) if (rule.metric or rule.series) == metric else ()
        return self.series.get(metric, ())

    def set_series(self, names: Sequence[str]) -> None:
        """Set the existing series, in the order of their names.

        Names that need quotes come last: `http.requests` would take the place of `http_requests`.
        """
        self.series = {}
        for name in sorted(names, key=lambda name: (not is_simple_name(name), name)):
            if metric := self.checked.metric_of(name):
                self.series[metric] = (*self.series.get(metric, ()), name)


class PrometheusSource:
    """Serves the rules of a file, which is loaded again when it changes."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        client: PrometheusClient,
        objects: ClusterObjects,
        rules_file: Path,
        discovery_seconds: float = 30.0,
    ) -> None:
        self._clock = clock
        self.name = name
        self._client = client
        self._objects = objects
        self._file = WatchedFile(rules_file)
        self._discovery_seconds = discovery_seconds
        self._file_problem = f"{rules_file}: there is no such file"
        self._server = RuleHealth(clock, f"source {name}")
        self._refused: dict[str, str] = {}
        self.rules: list[ActiveRule] = []
        # An unreadable file must not make other sources' metrics unavailable, so it is read again later.
        self.refresh()

    def serves(self, query: MetricQuery) -> bool:
        """Return whether a rule serves the metric."""
        return self._find_rule(query) is not None

    def catalogue(self) -> Catalogue:
        """Return the metrics whose series exist."""
        custom: set[Offer] = set()
        external: set[str] = set()
        for active in self.rules:
            rule = active.checked.rule
            if rule.type == "external":
                external |= set(active.series)
            else:
                custom |= {Offer(resource, metric) for resource in rule.resources for metric in active.series}
        return Catalogue(frozenset(custom), frozenset(external))

    def health(self) -> Iterable[Health]:
        """Yield the health of the server, of the rules file and of each rule."""
        yield self._server.report()
        if self._file_problem:
            yield Health(f"rules file of {self.name}", State.FAILING, self._file_problem)
        for active in self.rules:
            yield active.health.report()
        for name, reason in self._refused.items():
            yield Health(f"rule {self.name}/{name}", State.DISABLED, reason)

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return the value of each object, without objects whose sample is refused."""
        active = self._enabled_rule(query)
        series = await self._series_for(active, query)
        label = active.checked.rule.resources[query.resource]
        promql = await custom_promql(active.checked, series, query, self._objects)
        if promql is None:
            return []
        samples: list[CustomSample] = []
        rejected = ""
        for instant in await self._evaluate(active, query, promql):
            name = instant.labels.get(label)
            if name is None:
                raise self._failed(
                    active, f"the answer has no label {label!r}; the query must keep it: <<groupBy>>"
                )
            try:
                samples.append(CustomSample(name, *self._value(active.checked, instant)))
            except RejectedSampleError as error:
                rejected = f"{name}: {error}"
        if rejected and not samples:
            raise self._failed(active, rejected)
        active.health.record_success()
        return collapse(samples, active.checked.rule.collapse)

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series. One refused sample fails the query, because an incomplete sum would scale down."""
        active = self._enabled_rule(query)
        series = await self._series_for(active, query)
        promql = external_promql(active.checked, series, query)
        samples: list[ExternalSample] = []
        for instant in await self._evaluate(active, query, promql):
            labels = {name: value for name, value in instant.labels.items() if name != "__name__"}
            try:
                samples.append(ExternalSample(labels, *self._value(active.checked, instant)))
            except RejectedSampleError as error:
                raise self._failed(active, str(error)) from error
        active.health.record_success()
        return samples

    async def run(self) -> None:
        """Reload the rules file and discover series until cancelled."""
        while True:
            self.refresh()
            await self.discover()
            await self._clock.sleep(self._discovery_seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def refresh(self) -> None:
        """Load the rules file if it changed. An invalid file leaves the rules in place."""
        if not self._file.has_changed():
            return
        try:
            self._apply(load_rules(self._file.path))
            self._file_problem = ""
        except ConfigurationError as error:
            self._file_problem = str(error)
            log.warning("source %s keeps its rules: %s", self.name, error)

    async def discover(self) -> None:
        """Discover the series of each rule. A rejected query disables only its rule."""
        since = self._discovery_seconds * 2 + 300.0
        for active in self.rules:
            if active.health.is_paused:
                continue
            try:
                await self._prove(active)
                active.set_series(await self._client.names(active.checked.discovery, since))
                self._server.record_success()
                if active.health.was_disabled:
                    active.health.record_success()
            except QueryRefusedError as error:
                active.health.disable(f"discovering its series: {error}")
            except PrometheusError as error:
                # The last names stay: a metric does not vanish while its server is down.
                self._server.record_failure(str(error))
                return

    async def _prove(self, active: ActiveRule) -> None:
        """Evaluate the rule's query once without series. Only then a rejection is the rule's own fault."""
        if active.is_proven:
            return
        with suppress(QueryFailedOnSeriesError):
            await self._client.instant(active.checked.probe, lookback=active.checked.max_age_seconds)
        active.is_proven = True

    def _apply(self, rules: RulesFile) -> None:
        known = {active.checked.name: active for active in self.rules}
        self.rules = []
        for rule in rules.usable:
            active = known.get(rule.name)
            if active is None or active.checked != rule:
                active = ActiveRule(self._clock, self.name, rule)
            self.rules.append(active)
        self._refused = dict(rules.refused)
        for name, reason in rules.refused.items():
            log.error("rule %s/%s is disabled: %s", self.name, name, reason)

    async def _series_for(self, active: ActiveRule, query: MetricQuery) -> str:
        """Return the series to query: of several, the first that the asked namespace has.

        Pods choose the names of their series, so another namespace's series must not hide this one's.
        """
        series = active.series_of(query.metric)
        selector = discovery_in(active.checked, query)
        if len(series) == 1 or not selector:
            return series[0]
        try:
            present = set(await self._client.names(selector, active.checked.max_age_seconds))
        except PrometheusError as error:
            raise self._unread(error) from error
        return next((name for name in series if name in present), series[0])

    def _find_rule(self, query: MetricQuery) -> ActiveRule | None:
        for active in self.rules:
            rule = active.checked.rule
            if isinstance(query, ExternalMetricQuery):
                matches = rule.type == "external"
            else:
                matches = rule.type == "custom" and query.resource in rule.resources
            if matches and active.series_of(query.metric):
                return active
        return None

    def _enabled_rule(self, query: MetricQuery) -> ActiveRule:
        active = self._find_rule(query)
        if active is None:
            raise StatusError(404, f"no rule of {self.name} serves {query}")
        if active.health.is_paused:
            raise self._rejected(active, " is out of service: Prometheus rejects its query")
        if active.health.queries.reason(query):
            raise self._rejected(active, _QUERY_REJECTED)
        return active

    async def _evaluate(self, active: ActiveRule, query: MetricQuery, promql: str) -> list[Instant]:
        try:
            instants = await self._client.instant(promql, lookback=active.checked.max_age_seconds)
        except QueryRefusedError as error:
            active.health.queries.pause(query, str(error))
            raise self._rejected(active, _QUERY_REJECTED) from error
        except PrometheusError as error:
            raise self._unread(error) from error
        self._server.record_success()
        active.health.queries.resume(query)
        return instants

    def _rejected(self, active: ActiveRule, what: str) -> StatusError:
        """Return the error for a query that Prometheus rejects.

        Its text is for tenants. Prometheus' own contains queries, labels and series of others, and goes to the log.
        """
        return StatusError(503, f"rule {self.name}/{active.checked.name}{what}; the adapter's log says why")

    def _unread(self, error: PrometheusError) -> StatusError:
        """Record that Prometheus gave no answer, and return the error for tenants, without its address."""
        self._server.record_failure(str(error))
        return StatusError(
            503,
            f"source {self.name}: Prometheus gives no usable answer at the moment; the adapter's log says why",
        )

    def _value(self, checked: CheckedRule, instant: Instant) -> tuple[Quantity, datetime, int | None]:
        measured = sample_time(instant.at, self._clock.now(), checked.max_age_seconds)
        return parse_value(instant.value), measured, checked.window_seconds

    def _failed(self, active: ActiveRule, reason: str) -> StatusError:
        active.health.record_failure(reason)
        return StatusError(503, f"rule {self.name}/{active.checked.name} gives no usable value: {reason}")


SERIES_SHOWN = 20
_SINCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class RuleQuery:
    """One query of a rule, with its values if a server was queried."""

    rule: str
    description: str
    promql: str
    values: Sequence[str] = ()
    problem: str = ""


async def try_rules(rules: RulesFile, client: PrometheusClient | None, namespace: str) -> list[RuleQuery]:
    """Return the queries of every usable rule for all objects of a namespace."""
    queries: list[RuleQuery] = []
    for checked in rules.usable:
        try:
            names = await _series_names(checked, client)
        except PrometheusError as error:
            queries.append(
                RuleQuery(checked.name, "looking for its series", checked.discovery, (), str(error))
            )
            continue
        if not names:
            queries.append(RuleQuery(checked.name, f"no series now for {checked.discovery}", ""))
        for series in names:
            for description, promql in example_queries(checked, namespace, series):
                queries.append(await _evaluate(RuleQuery(checked.name, description, promql), checked, client))
    return queries


async def _series_names(checked: CheckedRule, client: PrometheusClient | None) -> list[str]:
    if checked.rule.series:
        return [checked.rule.series]
    if client is None:
        # A placeholder, since no server can list the series that match the pattern.
        return ["SERIES"]
    names = await client.names(checked.discovery, _SINCE_SECONDS)
    return [name for name in names if checked.metric_of(name)][:SERIES_SHOWN]


async def _evaluate(query: RuleQuery, checked: CheckedRule, client: PrometheusClient | None) -> RuleQuery:
    if client is None:
        return query
    try:
        instants = await client.instant(query.promql, lookback=checked.max_age_seconds)
    except PrometheusError as error:
        return replace(query, problem=str(error))
    lines = [_line(instant) for instant in instants[:SERIES_SHOWN]]
    if len(instants) > SERIES_SHOWN:
        lines.append(f"... and {len(instants) - SERIES_SHOWN} more")
    return replace(query, values=lines or ["no values now"])


def _line(instant: Instant) -> str:
    labels = ",".join(
        f"{name}={value}" for name, value in sorted(instant.labels.items()) if name != "__name__"
    )
    try:
        return f"{{{labels}}} {parse_value(instant.value)}"
    except RejectedSampleError as error:
        return f"{{{labels}}} refused: {error}"
