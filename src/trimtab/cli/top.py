"""`trimtab top`: all autoscalers at a glance, once or live."""

import asyncio
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trimtab.cli.connection import context_option, kubeconfig_option, namespace_option, with_client
from trimtab.cli.output import to_json, to_yaml
from trimtab.cluster.client import Client, Selection
from trimtab.cluster.errors import NotFound
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscaler
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS

_NUMBERS = {"min", "max", "current", "desired"}
_COLUMNS = ("namespace", "kind", "name", "target", "min", "max", "current", "desired", "active", "reason")
KINDS = {"thpa": OWN_HPAS, "hpa": NATIVE_HPAS}
"""By the word that kubectl takes: one of each may have the same name while a workload moves over."""
_WIDE = 130
"""Columns of a terminal from which on there is room for the target, which is mostly named as its autoscaler."""
NONE = "there is no autoscaler here"
_FILE = 240
"""Where nobody's terminal is the limit, a line holds a whole reason."""


@click.command("top")
@namespace_option
@click.option(
    "-w", "--watch", "period", type=float, default=0.0, help="Look again every so many seconds, until Ctrl-C."
)
@click.option(
    "-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
@kubeconfig_option
@context_option
def top(namespace: str, period: float, output: str, kubeconfig: str, context: str) -> None:
    """Show all autoscalers: what they want, what they have, and what holds them."""

    async def act(client: Client, _namespace: str) -> None:
        if output != "table":
            rows = await rows_of(client, namespace)
            click.echo(to_json(rows) if output == "json" else to_yaml(rows), nl=False)
            return
        console = Console()
        if not console.is_terminal:
            console = Console(width=_FILE)
        is_wide = console.width >= _WIDE
        if not period:
            rows = await rows_of(client, namespace)
            console.print(_table(rows, is_wide=is_wide) if rows else NONE)
            return
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            while True:
                live.update(_table(await rows_of(client, namespace), is_wide=is_wide), refresh=True)
                await asyncio.sleep(period)

    with_client(kubeconfig, context, act)


async def rows_of(client: Client, namespace: str) -> list[dict[str, Any]]:
    """Return one row of facts per HPA, own and native."""
    rows = []
    for kind, resource in KINDS.items():
        try:
            listed = await client.list(resource, Selection(namespace=namespace or None))
        except NotFound:
            continue  # our CRD is not installed
        rows += [_row(kind, hpa) for hpa in listed.items]
    return sorted(rows, key=lambda row: (row["namespace"], row["name"]))


def _row(kind: str, hpa: HorizontalPodAutoscaler) -> dict[str, Any]:
    status = hpa.status
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
        "reason": _reason(hpa),
    }


def _reason(hpa: HorizontalPodAutoscaler) -> str:
    """Return the condition that says most about why things are as they are."""
    status = hpa.status
    active = status.condition(ConditionType.SCALING_ACTIVE)
    if active is not None and active.status == "False":
        return f"{active.reason}: {active.message}"
    limited = status.condition(ConditionType.SCALING_LIMITED)
    if limited is not None and limited.status == "True":
        return f"{limited.reason}: {limited.message}"
    able = status.condition(ConditionType.ABLE_TO_SCALE)
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
        # Text, not markup: names and messages come from objects that anybody may create.
        table.add_row(*(Text(str(row[column])) for column in columns))
    return table
