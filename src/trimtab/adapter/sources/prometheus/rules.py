"""The rules file: which series of Prometheus become which metrics, and by which query.

Each rule is read on its own: one that cannot be used is out of service with its reason, the others work.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trimtab.adapter.api.requests import ANY, NAMESPACES, CustomQuestion, ExternalQuestion
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import ConfigSection, convert, read_document, seconds
from trimtab.adapter.sources.collapse import Collapse
from trimtab.adapter.sources.objects import Objects
from trimtab.adapter.sources.prometheus import promql

KIND = "MetricRules"
CUSTOM_QUERY = "sum by (<<groupBy>>) (<<series>>{<<matchers>>})"
EXTERNAL_QUERY = "<<series>>{<<matchers>>}"
_SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z", re.ASCII)
_REFERENCE = re.compile(r"\$\{(\w+)\}|\$(\d)")


class PrometheusRule(ConfigSection):
    """One rule of the file."""

    name: str
    type: Literal["custom", "external"] = "custom"
    series: str = ""
    """The name of the series; or else `seriesPattern`."""
    series_pattern: str = ""
    """A regular expression over whole names of series; those that exist are looked up."""
    metric: str = ""
    """The name to serve it under; `${1}` is the pattern's first group. Default: the series' own name."""
    matchers: dict[str, str] = {}
    """Labels that the series must have, whatever is asked."""
    resources: dict[str, str] = {}
    """For custom metrics: resource, as statefulsets.apps, to the label that holds the object's name."""
    namespace_label: str = "namespace"
    """The label that holds the namespace; empty serves an external metric to every namespace."""
    query: str = ""
    group_by: tuple[str, ...] = ()
    """For external metrics: the labels in place of <<groupBy>>."""
    window: str = ""
    """The window of a rate in the query, told to whoever asks."""
    max_age: str = "2m"
    """A sample older than this is not served."""
    collapse: Collapse = Collapse.SUM
    """What several series of one object become."""


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule that can be used."""

    rule: PrometheusRule
    pattern: re.Pattern[str] | None
    max_age_seconds: float
    window_seconds: int | None

    @property
    def name(self) -> str:
        """Return the rule's name."""
        return self.rule.name

    @property
    def discovery(self) -> str:
        """Return the selector of the series that the rule is about."""
        own = (
            f"__name__=~{promql.quoted(self.rule.series_pattern)}"
            if self.pattern
            else promql.equals("__name__", self.rule.series)
        )
        return f"{{{promql.join(own, promql.from_labels(self.rule.matchers))}}}"

    def metric_of(self, series: str) -> str | None:
        """Return the metric that a series is served as; None if the rule is not about it."""
        if self.pattern is None:
            return (self.rule.metric or series) if series == self.rule.series else None
        match = self.pattern.fullmatch(series)
        if match is None:
            return None
        return (
            _REFERENCE.sub(lambda found: _group(match, found), self.rule.metric)
            if self.rule.metric
            else series
        )

    def query(self, series: str, matchers: str, group_by: str) -> str:
        """Return the PromQL for one question."""
        template = self.rule.query or (CUSTOM_QUERY if self.rule.type == "custom" else EXTERNAL_QUERY)
        everything = promql.join(promql.from_labels(self.rule.matchers), matchers)
        return promql.fill(template, series, everything, group_by)


@dataclass(frozen=True, slots=True)
class RulesFile:
    """A rules file: what can be used, and why the rest cannot."""

    usable: Sequence[CheckedRule]
    refused: Mapping[str, str]


def read_rules(path: Path) -> RulesFile:
    """Read a rules file; only the file as a whole can fail, a single rule is refused by itself."""
    data = read_document(path, KIND)
    rules = data.pop("rules", None)
    if data or not isinstance(rules, list):
        what = f"unknown field {next(iter(data))!r}" if data else "rules: must be a list"
        raise ConfigurationError(f"{path}: {what}")
    usable: dict[str, CheckedRule] = {}
    refused: dict[str, str] = {}
    for position, one in enumerate(rules):
        name = _name_of(one, position)
        try:
            checked = check(convert(one, PrometheusRule, f"rules[{position}]"))
        except (ConfigurationError, promql.TemplateError) as error:
            refused[name if name not in usable else f"{name} (rules[{position}])"] = str(error)
            continue
        if name in usable or name in refused:
            refused[f"{name} (rules[{position}])"] = "name: taken by an earlier rule"
        else:
            usable[name] = checked
    return RulesFile(tuple(usable.values()), refused)


def check(rule: PrometheusRule) -> CheckedRule:
    """Return a rule that can be used; raise with the field and the reason if it cannot."""
    if bool(rule.series) == bool(rule.series_pattern):
        raise ConfigurationError("series, seriesPattern: exactly one of them is needed")
    if rule.series and not _SERIES.match(rule.series):
        raise ConfigurationError(
            f"series: {rule.series!r} cannot be the name of a series; use seriesPattern for patterns"
        )
    labels = [
        *rule.resources.values(),
        *rule.matchers,
        *rule.group_by,
        *([rule.namespace_label] if rule.namespace_label else []),
    ]
    for label in labels:
        if not promql.is_label(label):
            raise ConfigurationError(f"{label!r} cannot be a label of a Prometheus series")
    if rule.type == "custom":
        _check_custom(rule)
    elif rule.resources:
        raise ConfigurationError("resources: an external metric belongs to no object; remove them")
    if rule.query:
        promql.check_template(rule.query)
    window = int(seconds(rule.window, "window")) if rule.window else None
    return CheckedRule(rule, _pattern(rule), seconds(rule.max_age, "maxAge"), window)


def _check_custom(rule: PrometheusRule) -> None:
    if not rule.resources:
        raise ConfigurationError("resources: say which label names the object, as {pods: pod}")
    if not rule.namespace_label:
        raise ConfigurationError("namespaceLabel: only an external metric can do without")
    other = rule.resources.get(NAMESPACES, rule.namespace_label)
    if other != rule.namespace_label:
        raise ConfigurationError(
            f"resources.namespaces: is {other!r}, but namespaceLabel is {rule.namespace_label!r}"
        )


def _pattern(rule: PrometheusRule) -> re.Pattern[str] | None:
    if not rule.series_pattern:
        return None
    try:
        pattern = re.compile(rule.series_pattern)
    except re.error as error:
        raise ConfigurationError(f"seriesPattern: {error}") from error
    for found in _REFERENCE.finditer(rule.metric):
        name = found[1] or found[2]
        if not (int(name) <= pattern.groups if name.isdigit() else name in pattern.groupindex):
            raise ConfigurationError(f"metric: {found[0]} is no group of the pattern")
    return pattern


def _group(match: re.Match[str], found: re.Match[str]) -> str:
    name = found[1] or found[2]
    return match[int(name) if name.isdigit() else name] or ""


def _name_of(rule: Any, position: int) -> str:
    name = rule.get("name") if isinstance(rule, dict) else None
    return name if isinstance(name, str) and name else f"rules[{position}]"


async def custom_query(
    checked: CheckedRule, series: str, question: CustomQuestion, objects: Objects
) -> str | None:
    """Return the query, or None where no object is selected, so that there is nothing to ask."""
    names: frozenset[str] | None = None
    if not question.is_about_many:
        names = frozenset({question.name})
    elif not question.objects.is_empty:
        names = await objects.names(question.resource, question.namespace, question.objects)
    return None if names is not None and not names else _query_about(checked, series, question, names)


def external_query(checked: CheckedRule, series: str, question: ExternalQuestion) -> str:
    """Return the query for the series of an external metric."""
    rule = checked.rule
    namespace = promql.equals(rule.namespace_label, question.namespace) if rule.namespace_label else ""
    matchers = promql.join(namespace, promql.from_selector(question.series))
    return checked.query(series, matchers, ", ".join(rule.group_by))


def example_queries(checked: CheckedRule, namespace: str, series: str) -> list[tuple[str, str]]:
    """Return, for each kind of object that a rule serves, its description and the query about all in a namespace."""
    metric = checked.metric_of(series) or checked.rule.metric or series
    if checked.rule.type == "external":
        return [(f"external {metric}", external_query(checked, series, ExternalQuestion(namespace, metric)))]
    found = []
    for resource in checked.rule.resources:
        is_namespace = resource == NAMESPACES
        question = CustomQuestion("" if is_namespace else namespace, resource, ANY, metric)
        names = frozenset({namespace}) if is_namespace else None
        found.append((f"{resource}/{metric}", _query_about(checked, series, question, names)))
    return found


def _query_about(
    checked: CheckedRule, series: str, question: CustomQuestion, names: frozenset[str] | None
) -> str:
    """Return the query about the named objects; None stands for all of them."""
    label = checked.rule.resources[question.resource]
    namespace = promql.equals(checked.rule.namespace_label, question.namespace) if question.namespace else ""
    which = f'{label}!=""' if names is None else promql.one_of(label, names)
    return checked.query(series, promql.join(namespace, which, promql.from_selector(question.series)), label)
