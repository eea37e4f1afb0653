"""Trying rules out: what would be sent, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.adapter.sources.prometheus.rules import CheckedRule, RulesFile, example_queries
from trimtab.adapter.sources.prometheus.source import RefusedValueError, quantity_of
from trimtab.metrics.prometheus import Instant, PrometheusClient, PrometheusError

SERIES_SHOWN = 20
_SINCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Tried:
    """One query of a rule, with the values if they were asked for."""

    rule: str
    what: str
    query: str
    values: Sequence[str] = field(default_factory=tuple)
    problem: str = ""


async def try_rules(rules: RulesFile, client: PrometheusClient | None, namespace: str) -> list[Tried]:
    """Return the queries of every usable rule about all objects of a namespace."""
    tried: list[Tried] = []
    for checked in rules.usable:
        try:
            names = await _series_of(checked, client)
        except PrometheusError as error:
            tried.append(Tried(checked.name, "looking for its series", checked.discovery, (), str(error)))
            continue
        if not names:
            tried.append(Tried(checked.name, f"no series now for {checked.discovery}", ""))
        for series in names:
            for what, query in example_queries(checked, namespace, series):
                tried.append(await _evaluated(Tried(checked.name, what, query), checked, client))
    return tried


async def _series_of(checked: CheckedRule, client: PrometheusClient | None) -> list[str]:
    if checked.rule.series:
        return [checked.rule.series]
    if client is None:
        # Without a server the pattern itself stands for whatever it would find.
        return ["SERIES"]
    names = await client.names(checked.discovery, _SINCE_SECONDS)
    return [name for name in names if checked.metric_of(name)][:SERIES_SHOWN]


async def _evaluated(tried: Tried, checked: CheckedRule, client: PrometheusClient | None) -> Tried:
    if client is None:
        return tried
    try:
        instants = await client.instant(tried.query, lookback=checked.max_age_seconds)
    except PrometheusError as error:
        return Tried(tried.rule, tried.what, tried.query, (), str(error))
    lines = [_line(instant) for instant in instants[:SERIES_SHOWN]]
    if len(instants) > SERIES_SHOWN:
        lines.append(f"... and {len(instants) - SERIES_SHOWN} more")
    return Tried(tried.rule, tried.what, tried.query, lines or ["no values now"])


def _line(instant: Instant) -> str:
    labels = ",".join(
        f"{name}={value}" for name, value in sorted(instant.labels.items()) if name != "__name__"
    )
    try:
        return f"{{{labels}}} {quantity_of(instant.value)}"
    except RefusedValueError as error:
        return f"{{{labels}}} refused: {error}"
