"""`trimtab top` lists all autoscalers, once or live."""

import asyncio
from datetime import timedelta
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    namespace_option,
    request_timeout_option,
    with_client,
)
from trimtab.cli.operator_settings import Choice, operator_namespace_option, settings_for
from trimtab.cli.output import to_json, to_yaml_stream
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.errors import NotFound
from trimtab.decide.horizontal.behavior.stabilization import (
    SCALE_DOWN_STABILIZED,
    SCALE_UP_STABILIZED,
)
from trimtab.decide.horizontal.status.dry_run import UNKNOWN_ANNOTATION
from trimtab.model.hpa.dry_run import DRY_RUN, MODE_ANNOTATION, mode_problem
from trimtab.model.hpa.selection_strategy import named_strategies, strategy_problem
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscaler
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings

_NUMBERS = {"min", "max", "current", "desired"}
_COLUMNS = (
    "namespace",
    "kind",
    "name",
    "target",
    "min",
    "max",
    "current",
    "desired",
    "active",
    "mode",
    "reason",
)
KINDS = {"thpa": OWN_HPAS, "hpa": NATIVE_HPAS}
"""The name of each kind in kubectl. During a migration both kinds may have the same name."""
_WIDE = 130
"""Minimum width of a terminal that shows the target."""
NONE = "there is no autoscaler here"
_FILE = 240
"""Width of a line that is not printed to a terminal."""


@click.command("top")
@namespace_option
@click.option(
    "-w", "--watch", "period", type=float, default=0.0, help="Look again every so many seconds, until Ctrl-C."
)
@click.option(
    "-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
@operator_namespace_option
@request_timeout_option
@kubeconfig_option
@context_option
def top(
    namespace: str,
    period: float,
    output: str,
    operator_namespace: str,
    request_timeout: timedelta | None,
    kubeconfig: str,
    context: str,
) -> None:
    """List all autoscalers: desired and current replicas, and what holds them."""

    async def act(client: Client, _namespace: str) -> None:
        choice = Choice(operator_namespace)
        found = await settings_for(client, "horizontal", choice)
        rows = await rows_of(client, namespace, found.settings)
        for note in notes_of(found, namespace):
            click.echo(note, err=True)
        if output != "table":
            click.echo(to_json(rows) if output == "json" else to_yaml_stream(rows), nl=False)
            return
        console = Console()
        if not console.is_terminal:
            console = Console(width=_FILE)
        is_wide = console.width >= _WIDE
        if not period:
            console.print(_table(rows, is_wide=is_wide) if rows else NONE)
            return
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            while True:
                live.update(_table(rows, is_wide=is_wide), refresh=True)
                await asyncio.sleep(period)
                found = await settings_for(client, "horizontal", choice)
                rows = await rows_of(client, namespace, found.settings)

    with_client(kubeconfig, context, act, timeout=request_timeout)


def notes_of(found: FoundSettings, namespace: str = "") -> list[str]:
    """Return a line about the operator's settings that concerns all rows, or nothing."""
    settings, notes = found.settings, []
    if not found.is_published:
        return [f"which of them the operator acts on is not known, {found.source}"]
    if settings.dry_run:
        notes.append("the operator runs with --dry-run: no replicas are changed")
    if not settings.horizontal.native_hpas:
        notes.append("the operator does not act on rows of kind hpa: it runs without --native-hpas")
    if not settings.horizontal.own_hpas:
        notes.append("the operator does not act on rows of kind thpa: it runs with --no-own-hpas")
    if settings.watch_namespaces and namespace not in settings.watch_namespaces:
        notes.append(f"the operator acts in {', '.join(settings.watch_namespaces)} only")
    return notes


async def rows_of(client: Client, namespace: str, settings: Settings) -> list[dict[str, Any]]:
    """Return a row per HPA, own and native, as an operator with these settings treats it."""
    rows = []
    for kind, resource in KINDS.items():
        try:
            listed = await client.list(resource, ListOptions(namespace=namespace or None))
        except NotFound:
            continue  # our CRD is not installed
        rows += [_row(kind, hpa, settings) for hpa in listed.items]
    return sorted(rows, key=lambda row: (row["namespace"], row["name"]))


def _row(kind: str, hpa: HorizontalPodAutoscaler, settings: Settings) -> dict[str, Any]:
    status = hpa.status
    is_held = settings.dry_run and _is_acted_on(kind, hpa, settings)
    problem = _strategy_problem(hpa, settings)
    active = status.condition(ConditionType.SCALING_ACTIVE)
    return {
        "namespace": hpa.metadata.namespace,
        "kind": kind,
        "name": hpa.metadata.name,
        "target": str(hpa.spec.scale_target_ref),
        "min": hpa.spec.min_replicas if hpa.spec.min_replicas is not None else 1,
        "max": hpa.spec.max_replicas,
        "current": status.current_replicas,
        "desired": status.desired_replicas,
        "active": active.status if active else "Unknown",
        "mode": mode_of(hpa, _strategies(hpa) if problem else None) or (DRY_RUN if is_held else ""),
        "reason": reason_of(hpa, problem),
    }


def _is_acted_on(kind: str, hpa: HorizontalPodAutoscaler, settings: Settings) -> bool:
    is_kind = settings.horizontal.native_hpas if kind == "hpa" else settings.horizontal.own_hpas
    watched = settings.watch_namespaces
    return is_kind and (not watched or hpa.metadata.namespace in watched)


def _strategy_problem(hpa: HorizontalPodAutoscaler, settings: Settings) -> str:
    """Return what is wrong with the selection strategy of an HPA, if the gate is on."""
    if not settings.gates.hpa_selection_strategy:
        return ""
    return strategy_problem(hpa.metadata.annotations, hpa.spec.selection_strategy)


def _strategies(hpa: HorizontalPodAutoscaler) -> str:
    return " or ".join(
        dict.fromkeys(named_strategies(hpa.metadata.annotations, hpa.spec.selection_strategy).values())
    )


def mode_of(hpa: HorizontalPodAutoscaler, misspelt_strategy: str | None = None) -> str:
    """Return `DryRun` if the HPA writes no replicas. A misspelt annotation is shown as it is."""
    text = hpa.metadata.annotations.get(MODE_ANNOTATION, "")
    misspelt = text if mode_problem(text) else misspelt_strategy
    return f"{DRY_RUN} ({misspelt}?)" if misspelt else text


def reason_of(hpa: HorizontalPodAutoscaler, problem: str = "") -> str:
    """Return the most informative condition. A misspelt annotation comes first."""
    problem = mode_problem(hpa.metadata.annotations.get(MODE_ANNOTATION, "")) or problem
    if problem:
        return f"{UNKNOWN_ANNOTATION}: {problem}"
    status = hpa.status
    active = status.condition(ConditionType.SCALING_ACTIVE)
    if active is not None and active.status == "False":
        return f"{active.reason}: {active.message}"
    able = status.condition(ConditionType.ABLE_TO_SCALE)
    limited = status.condition(ConditionType.SCALING_LIMITED)
    # A window comes before the bounds: they may cut a remembered recommendation, which holds nothing.
    is_held = able is not None and able.reason in {SCALE_DOWN_STABILIZED, SCALE_UP_STABILIZED}
    if limited is not None and limited.status == "True" and not is_held:
        return f"{limited.reason}: {limited.message}"
    return f"{able.reason}: {able.message}" if able else "not decided yet"


def _table(rows: list[dict[str, Any]], *, is_wide: bool) -> Table:
    columns = [column for column in _COLUMNS if is_wide or column != "target"]
    table = Table(box=None, header_style="bold", expand=True)
    for column in columns:
        # The last column takes what is left and is cut, so that a line stays a line.
        table.add_column(
            column.upper(),
            justify="right" if column in _NUMBERS else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None
            if column == columns[-1]
            else max([len(column), *(len(str(row[column])) for row in rows)]),
            ratio=1 if column == columns[-1] else None,
        )
    for row in rows:
        # Names and messages are user input, so they are Text and not markup.
        table.add_row(*(Text(str(row[column])) for column in columns))
    return table
