"""Answers questions by rules over Prometheus."""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from trimtab.adapter.api.health import Health, RuleHealth, State
from trimtab.adapter.api.requests import CustomQuestion, ExternalQuestion, Question
from trimtab.adapter.errors import AdapterError, ConfigurationError, NotFound, Unavailable
from trimtab.adapter.sources.collapse import collapse
from trimtab.adapter.sources.objects import Objects
from trimtab.adapter.sources.prometheus.rules import (
    CheckedRule,
    RulesFile,
    custom_query,
    external_query,
    read_rules,
)
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer
from trimtab.clock import Clock
from trimtab.metrics.prometheus import Instant, PrometheusClient, PrometheusError, QueryRefusedError
from trimtab.model.quantity import Quantity
from trimtab.serving.tls import WatchedFile

_LARGEST = Decimal(2**63 - 1)
"""What readers of the metrics APIs can hold; more would wrap around in some of them."""

_NANOS = Decimal(10**9)
FUTURE_SECONDS = 60.0


class RefusedValueError(ValueError):
    """A sample is not served; the message says why."""


def quantity_of(text: str) -> Quantity:
    """Return the exact value, down to billionths."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise RefusedValueError(f"{text!r} is not a number") from None
    if not number.is_finite():
        raise RefusedValueError(f"the value is {text}")
    if abs(number) > _LARGEST:
        raise RefusedValueError(f"the value {text} is beyond 2^63")
    return Quantity(int((number * _NANOS).to_integral_value()))


def time_of(unix_seconds: float, now: datetime, max_age: float) -> datetime:
    """Return when a sample was taken; refuse one that is too old, or from the future."""
    age = now.timestamp() - unix_seconds
    if age > max_age:
        raise RefusedValueError(f"the sample is {age:.0f} s old, more than {max_age:g} s")
    if age < -FUTURE_SECONDS:
        raise RefusedValueError(f"the sample is {-age:.0f} s ahead of our clock")
    return datetime.fromtimestamp(unix_seconds, UTC)


log = logging.getLogger(__name__)


class ActiveRule:
    """A rule in service: the series it was found to be about, and how it is doing."""

    def __init__(self, clock: Clock, source: str, checked: CheckedRule) -> None:
        self.checked = checked
        self.health = RuleHealth(clock, f"rule {source}/{checked.name}")
        self.series: dict[str, str] = {}
        """Metric to series, as far as discovered."""

    def series_of(self, metric: str) -> str | None:
        """Return the series behind a metric; a rule for one series needs no discovery."""
        rule = self.checked.rule
        if rule.series:
            return rule.series if (rule.metric or rule.series) == metric else None
        return self.series.get(metric)

    def found(self, names: Sequence[str]) -> None:
        """Take over the names of the series that exist; of two with the same metric the first by name wins."""
        self.series = {
            metric: name for name in sorted(names, reverse=True) if (metric := self.checked.metric_of(name))
        }


class PrometheusSource:
    """Rules over one Prometheus; the rules file is read again when it changes."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        client: PrometheusClient,
        objects: Objects,
        rules_file: Path,
        discovery_seconds: float = 30.0,
    ) -> None:
        self._clock = clock
        self._name = name
        self._client = client
        self._objects = objects
        self._file = WatchedFile(rules_file)
        self._discovery_seconds = discovery_seconds
        self._file_problem = f"{rules_file}: there is no such file"
        self._server = RuleHealth(clock, f"source {name}")
        self._refused: dict[str, str] = {}
        self.rules: list[ActiveRule] = []
        # Rules that cannot be read yet take no other source's metrics away; the file is looked at again and again.
        self.refresh()

    @property
    def name(self) -> str:
        """Return the name that the configuration gives it."""
        return self._name

    def serves(self, question: Question) -> bool:
        """Return whether a rule is about the question's metric."""
        return self._rule_of(question) is not None

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
        """Return the state of the server, of the rules file and of each rule."""
        yield self._server.report()
        if self._file_problem:
            yield Health(f"rules file of {self._name}", State.FAILING, self._file_problem)
        for active in self.rules:
            yield active.health.report()
        for name, reason in self._refused.items():
            yield Health(f"rule {self._name}/{name}", State.DISABLED, reason)

    async def custom(self, question: CustomQuestion) -> Sequence[CustomSample]:
        """Return the value of each object that has one; a pod whose value is refused is left out and counted."""
        active = self._rule_in_service(question)
        label = active.checked.rule.resources[question.resource]
        query = await custom_query(active.checked, self._series(active, question), question, self._objects)
        if query is None:
            return []
        instants = await self._evaluate(active, query)
        samples: list[CustomSample] = []
        refused = ""
        for instant in instants:
            name = instant.labels.get(label)
            if name is None:
                raise self._spoilt(
                    active, f"the answer has no label {label!r}; the query must keep it: <<groupBy>>"
                )
            try:
                samples.append(CustomSample(name, *self._value(active.checked, instant)))
            except RefusedValueError as error:
                refused = f"{name}: {error}"
        if refused and not samples:
            raise self._spoilt(active, refused)
        active.health.worked()
        return collapse(samples, active.checked.rule.collapse)

    async def external(self, question: ExternalQuestion) -> Sequence[ExternalSample]:
        """Return the series; one refused value refuses them all, for a sum with a hole would scale down."""
        active = self._rule_in_service(question)
        query = external_query(active.checked, self._series(active, question), question)
        series: list[ExternalSample] = []
        for instant in await self._evaluate(active, query):
            labels = {name: value for name, value in instant.labels.items() if name != "__name__"}
            try:
                series.append(ExternalSample(labels, *self._value(active.checked, instant)))
            except RefusedValueError as error:
                raise self._spoilt(active, str(error)) from error
        active.health.worked()
        return series

    async def run(self) -> None:
        """Look up which series exist, and follow the rules file, until cancelled."""
        while True:
            self.refresh()
            await self.discover()
            await self._clock.sleep(self._discovery_seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def refresh(self) -> None:
        """Read the rules file if it changed; one that cannot be used leaves the rules as they are."""
        if not self._file.has_changed():
            return
        try:
            self._take(read_rules(self._file.path))
            self._file_problem = ""
        except ConfigurationError as error:
            self._file_problem = str(error)
            log.warning("source %s keeps its rules: %s", self._name, error)

    async def discover(self) -> None:
        """Ask for the names of each rule's series; one rule's failure is its own."""
        since = self._discovery_seconds * 2 + 300.0
        for active in self.rules:
            if active.health.is_paused:
                continue
            try:
                active.found(await self._client.names(active.checked.discovery, since))
                self._server.worked()
            except QueryRefusedError as error:
                active.health.refused(f"looking for its series: {error}")
            except PrometheusError as error:
                # The names found last stay: a metric does not vanish because its server is away.
                self._server.failed(str(error))
                return

    def _take(self, rules: RulesFile) -> None:
        known = {active.checked.name: active for active in self.rules}
        self.rules = []
        for rule in rules.usable:
            old = known.get(rule.name)
            unchanged = old is not None and old.checked == rule
            self.rules.append(old if old and unchanged else ActiveRule(self._clock, self._name, rule))
        self._refused = dict(rules.refused)
        for name, reason in rules.refused.items():
            log.error("rule %s/%s is out of service: %s", self._name, name, reason)

    def _rule_of(self, question: Question) -> ActiveRule | None:
        for active in self.rules:
            rule = active.checked.rule
            if isinstance(question, ExternalQuestion):
                fits = rule.type == "external"
            else:
                fits = rule.type == "custom" and question.resource in rule.resources
            if fits and active.series_of(question.metric) is not None:
                return active
        return None

    def _rule_in_service(self, question: Question) -> ActiveRule:
        active = self._rule_of(question)
        if active is None:
            raise NotFound(f"no rule of {self._name} serves {question}")
        if active.health.is_paused:
            raise Unavailable(
                f"rule {self._name}/{active.checked.name} is out of service: {active.health.reason}"
            )
        return active

    def _series(self, active: ActiveRule, question: Question) -> str:
        series = active.series_of(question.metric)
        assert series is not None, "the rule was chosen because it has one"
        return series

    async def _evaluate(self, active: ActiveRule, query: str) -> list[Instant]:
        try:
            instants = await self._client.instant(query, lookback=active.checked.max_age_seconds)
        except QueryRefusedError as error:
            active.health.refused(str(error))
            raise Unavailable(f"rule {self._name}/{active.checked.name}: {error}") from error
        except PrometheusError as error:
            self._server.failed(str(error))
            raise Unavailable(f"source {self._name}: {error}") from error
        self._server.worked()
        return instants

    def _value(self, checked: CheckedRule, instant: Instant) -> tuple[Quantity, datetime, int | None]:
        measured = time_of(instant.at, self._clock.now(), checked.max_age_seconds)
        return quantity_of(instant.value), measured, checked.window_seconds

    def _spoilt(self, active: ActiveRule, why: str) -> AdapterError:
        active.health.failed(why)
        return Unavailable(f"rule {self._name}/{active.checked.name} gives no usable value: {why}")
