"""Tries rules out: shows their queries and, with a server, the values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trimtab.adapter.sources.prometheus.rules import CheckedRule, RulesFile, example_queries
from trimtab.adapter.sources.prometheus.source import RejectedSampleError, parse_value
from trimtab.metrics.prometheus import Instant, PrometheusClient, PrometheusError

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
