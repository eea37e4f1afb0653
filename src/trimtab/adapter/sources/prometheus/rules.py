"""The rules file: which series become which metrics, and the queries of each rule.

Each rule is validated alone. An invalid rule is disabled with its reason, and the other rules serve.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trimtab.adapter.api.requests import ANY, NAMESPACES, CustomMetricQuery, ExternalMetricQuery
from trimtab.adapter.api.routes import path_part_problem
from trimtab.adapter.files import ConfigSection, ConfigurationError, convert, read_document, seconds
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.prometheus import promql
from trimtab.adapter.sources.source import Collapse

KIND = "MetricRules"
CUSTOM_QUERY = "sum by (<<groupBy>>) (<<series>>{<<matchers>>})"
EXTERNAL_QUERY = "<<series>>{<<matchers>>}"
_SERIES = re.compile(r"[\w:][\w:./-]*\Z")
"""Names that a rule may give in full. Braces, blanks and stars are rather a mistake for `seriesPattern`."""

_PROBE = "trimtab_probe"
"""The name of a series that does not exist, and of a namespace that cannot exist."""

_REFERENCE = re.compile(r"\$\{(\w+)\}|\$(\d)")


class PrometheusRule(ConfigSection):
    """One rule of the file."""

    name: str
    type: Literal["custom", "external"] = "custom"
    series: str = ""
    """The name of the series. Set this or `seriesPattern`."""
    series_pattern: str = ""
    """A regular expression for whole names of series. Existing series are discovered."""
    metric: str = ""
    """The name of the served metric. `${1}` is the pattern's first group. Default: the series' own name."""
    matchers: dict[str, str] = {}
    """Labels that the series must have in every query."""
    resources: dict[str, str] = {}
    """For custom metrics: from resource, as statefulsets.apps, to the label with the object's name."""
    namespace_label: str = "namespace"
    """The label with the namespace. If it is empty, an external metric is served to every namespace."""
    query: str = ""
    group_by: tuple[str, ...] = ()
    """For external metrics: the labels in place of <<groupBy>>."""
    window: str = ""
    """The window of a rate in the query, which responses repeat."""
    max_age: str = "2m"
    """Older samples are not served."""
    collapse: Collapse = Collapse.SUM
    """How several series of one object are reduced to one value."""


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A valid rule, with its pattern and durations parsed."""

    rule: PrometheusRule
    pattern: re.Pattern[str] | None
    template: promql.Template
    max_age_seconds: float
    window_seconds: int | None

    @property
    def name(self) -> str:
        """Return the rule's name."""
        return self.rule.name

    @property
    def discovery(self) -> str:
        """Return the selector that discovers the rule's series."""
        return self.discovery_where("")

    def discovery_where(self, matchers: str) -> str:
        """Return the selector that discovers those of the rule's series that match."""
        name = (
            f"__name__=~{promql.quote(self.rule.series_pattern)}"
            if self.pattern
            else promql.equals("__name__", self.rule.series)
        )
        return f"{{{promql.join(name, promql.from_labels(self.rule.matchers), matchers)}}}"

    def metric_of(self, series: str) -> str | None:
        """Return the metric name of a series, or None if the rule does not serve it.

        Pods choose the names of their series. The rule does not serve a name that its query cannot contain, or that
        gives a metric that no path can name.
        """
        if not self.template.takes(series):
            return None
        metric = self._metric_named_by(series)
        return metric if metric and not path_part_problem(metric) else None

    def _metric_named_by(self, series: str) -> str | None:
        if self.pattern is None:
            return (self.rule.metric or series) if series == self.rule.series else None
        match = self.pattern.fullmatch(series)
        if match is None:
            return None
        if not self.rule.metric:
            return series
        return _REFERENCE.sub(lambda reference: match[_group_key(reference)] or "", self.rule.metric)

    def promql(self, series: str, matchers: str, group_by: str) -> str:
        """Return the PromQL for one metric query."""
        all_matchers = promql.join(promql.from_labels(self.rule.matchers), matchers)
        return self.template.fill(series, all_matchers, group_by)

    @property
    def probe(self) -> str:
        """Return the rule's query over a series that does not exist, to learn whether Prometheus can parse it."""
        labels = self.rule.group_by or tuple(self.rule.resources.values())[:1]
        nowhere = promql.equals(self.rule.namespace_label or "namespace", _PROBE)
        return self.promql(_PROBE, nowhere, ", ".join(labels))


@dataclass(frozen=True, slots=True)
class RulesFile:
    """The usable rules of a file, and the reasons of the rejected ones."""

    usable: Sequence[CheckedRule]
    refused: Mapping[str, str]


def load_rules(path: Path) -> RulesFile:
    """Load a rules file. Invalid rules are listed in `refused` with their reasons."""
    data = read_document(path, KIND)
    rules = data.pop("rules", None)
    if data or not isinstance(rules, list):
        problem = f"unknown field {next(iter(data))!r}" if data else "rules: must be a list"
        raise ConfigurationError(f"{path}: {problem}")
    usable: dict[str, CheckedRule] = {}
    refused: dict[str, str] = {}
    for position, rule in enumerate(rules):
        name = _rule_name(rule, position)
        try:
            checked = check(convert(rule, PrometheusRule, f"rules[{position}]"))
        except (ConfigurationError, promql.TemplateError) as error:
            refused[name if name not in usable else f"{name} (rules[{position}])"] = str(error)
            continue
        if name in usable or name in refused:
            refused[f"{name} (rules[{position}])"] = "name: taken by an earlier rule"
        else:
            usable[name] = checked
    return RulesFile(tuple(usable.values()), refused)


def check(rule: PrometheusRule) -> CheckedRule:
    """Return the parsed rule. Raise ConfigurationError with the field and the reason if it is invalid."""
    if bool(rule.series) == bool(rule.series_pattern):
        raise ConfigurationError("series, seriesPattern: exactly one of them is needed")
    text = rule.query or (CUSTOM_QUERY if rule.type == "custom" else EXTERNAL_QUERY)
    template = promql.parse_template(text)
    if rule.series and not (_SERIES.match(rule.series) and template.takes(rule.series)):
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
    window = int(seconds(rule.window, "window")) if rule.window else None
    return CheckedRule(rule, _pattern(rule), template, seconds(rule.max_age, "maxAge"), window)


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
    for reference in _REFERENCE.finditer(rule.metric):
        key = _group_key(reference)
        if not (key <= pattern.groups if isinstance(key, int) else key in pattern.groupindex):
            raise ConfigurationError(f"metric: {reference[0]} is no group of the pattern")
    return pattern


def _group_key(reference: re.Match[str]) -> int | str:
    name = reference[1] or reference[2]
    return int(name) if name.isdigit() else name


def _rule_name(rule: Any, position: int) -> str:
    name = rule.get("name") if isinstance(rule, dict) else None
    return name if isinstance(name, str) and name else f"rules[{position}]"


async def custom_promql(
    checked: CheckedRule, series: str, query: CustomMetricQuery, objects: ClusterObjects
) -> str | None:
    """Return the PromQL of a query, or None if it selects no object."""
    names: frozenset[str] | None = None
    if not query.selects_objects:
        names = frozenset({query.name})
    elif not query.objects.is_empty:
        names = await objects.names(query.resource, query.namespace, query.objects)
    return None if names is not None and not names else _promql_for(checked, series, query, names)


def discovery_in(checked: CheckedRule, query: CustomMetricQuery | ExternalMetricQuery) -> str:
    """Return the selector that discovers a rule's series in the query's namespace, or "" for a query of all."""
    rule = checked.rule
    if query.namespace and rule.namespace_label:
        return checked.discovery_where(promql.equals(rule.namespace_label, query.namespace))
    if isinstance(query, CustomMetricQuery) and not query.selects_objects:
        return checked.discovery_where(promql.equals(rule.resources[query.resource], query.name))
    return ""


def external_promql(checked: CheckedRule, series: str, query: ExternalMetricQuery) -> str:
    """Return the PromQL for the series of an external metric."""
    rule = checked.rule
    namespace = promql.equals(rule.namespace_label, query.namespace) if rule.namespace_label else ""
    matchers = promql.join(namespace, promql.from_selector(query.series))
    return checked.promql(series, matchers, ", ".join(rule.group_by))


def example_queries(checked: CheckedRule, namespace: str, series: str) -> list[tuple[str, str]]:
    """Return a description and the PromQL per resource of a rule, for all objects of a namespace."""
    metric = checked.metric_of(series) or checked.rule.metric or series
    if checked.rule.type == "external":
        return [
            (f"external {metric}", external_promql(checked, series, ExternalMetricQuery(namespace, metric)))
        ]
    queries = []
    for resource in checked.rule.resources:
        is_namespace = resource == NAMESPACES
        query = CustomMetricQuery("" if is_namespace else namespace, resource, ANY, metric)
        names = frozenset({namespace}) if is_namespace else None
        queries.append((f"{resource}/{metric}", _promql_for(checked, series, query, names)))
    return queries


def _promql_for(
    checked: CheckedRule, series: str, query: CustomMetricQuery, names: frozenset[str] | None
) -> str:
    """Return the PromQL for the named objects, or for all if `names` is None."""
    label = checked.rule.resources[query.resource]
    namespace = promql.equals(checked.rule.namespace_label, query.namespace) if query.namespace else ""
    objects = f'{label}!=""' if names is None else promql.one_of(label, names)
    return checked.promql(series, promql.join(namespace, objects, promql.from_selector(query.series)), label)
