"""`trimtab top` lists all autoscalers, once or live."""

import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import click

from trimtab.cli.columns import cut, in_columns, width_of
from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    request_timeout_option,
    with_client,
)
from trimtab.cli.errors import CommandError
from trimtab.cli.missing_crds import INSTALL, because_of_missing_crds
from trimtab.cli.names import complete_namespace
from trimtab.cli.operator_port import ask_overview, refuse_unusable_address
from trimtab.cli.operator_settings import Choice, operator_namespace_option, settings_for
from trimtab.cli.output import output_option, to_json, to_yaml_stream
from trimtab.cli.top.rows import (
    COLUMNS,
    KINDS,
    NARROW,
    NONE_DECIDED,
    SHORTEST,
    WIDE,
    Decided,
    cells_of,
    decided_by,
    rows_of,
)
from trimtab.cluster.client import Client
from trimtab.operator.settings.published import FoundSettings

_OTHER_SCREEN: Final = "\x1b[?1049h"
_FIRST_SCREEN: Final = "\x1b[?1049l"
_CLEAR: Final = "\x1b[H\x1b[2J"
_PERIOD: Final = 2.0


@click.command("top")
@click.option(
    "-n",
    "--namespace",
    default="",
    shell_complete=complete_namespace,
    help="Only this namespace; all namespaces if absent.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, which is the default.")
@click.option(
    "-l", "--selector", default="", help="Only autoscalers with these labels, as app=web,tier!=test."
)
@click.option(
    "-w",
    "--watch",
    "period",
    type=click.FloatRange(min=0, min_open=True),
    is_flag=False,
    flag_value=_PERIOD,
    default=None,
    metavar="[SECONDS]",
    help=f"List again every {_PERIOD:g} s, or as often as said, until Ctrl-C.",
)
@output_option("table", "wide", "name", "json", "yaml")
@click.option("--no-headers", is_flag=True, help="Leave out the line of headers.")
@click.option(
    "--operator",
    envvar="TRIMTAB_OPERATOR",
    default="",
    help="Address of a running operator's port, as http://127.0.0.1:8080, for its reasons; without it reasons follow from the statuses.",
)
@operator_namespace_option
@request_timeout_option
@kubeconfig_option
@context_option
def top(  # noqa: PLR0913 - one parameter per option
    *,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    period: float | None,
    output: str,
    no_headers: bool,
    operator: str,
    operator_namespace: str,
    request_timeout: timedelta | None,
    kubeconfig: str,
    context: str,
) -> None:
    """List all autoscalers: their metrics, replicas and sizes, and what holds them."""
    if all_namespaces:
        namespace = ""
    if operator:
        refuse_unusable_address(operator)

    async def act(client: Client, _namespace: str) -> None:
        is_first = True
        while True:
            found = await settings_for(client, "horizontal", Choice(operator_namespace))
            decided, problem = await asyncio.to_thread(asked_reasons, operator, request_timeout)
            rows = await rows_of(client, namespace, found.settings, selector=selector, decided=decided)
            if is_first and rows:
                for note in [*notes_of(found, namespace), *problem]:
                    click.echo(note, err=True)
            is_first = False
            text = _text(rows, output, headers=not no_headers)
            nothing = "" if text else await _nothing(client, namespace, selector)
            _show(text, nothing=nothing, is_live=is_live)
            if period is None:
                return
            await asyncio.sleep(period)

    is_live = period is not None and sys.stdout.isatty()
    click.echo(_OTHER_SCREEN if is_live else "", nl=False)
    try:
        with_client(kubeconfig, context, act, timeout=request_timeout)
    finally:
        click.echo(_FIRST_SCREEN if is_live else "", nl=False)


def asked_reasons(operator: str, timeout: timedelta | None = None) -> tuple[Decided, list[str]]:
    """Return the operator's reasons, or a note why it did not give them. The cluster has the rest of the rows."""
    if not operator:
        return NONE_DECIDED, []
    try:
        return decided_by(ask_overview(operator, timeout)), []
    except CommandError as error:
        return NONE_DECIDED, [f"reasons follow from the statuses: {error}"]


async def _nothing(client: Client, namespace: str, selector: str) -> str:
    """Return the line in place of an empty table: where no autoscaler was found, and whether there can be one."""
    labels = f" with labels {selector}" if selector else ""
    place = f"namespace {namespace}" if namespace else "any namespace"
    nothing = f"there is no autoscaler{labels} in {place}"
    reason = await because_of_missing_crds(client, KINDS["thpa"].resource, namespace)
    return f"{nothing}{reason} ({INSTALL})" if reason else nothing


def _show(text: str, *, nothing: str, is_live: bool) -> None:
    """Print the rows, in the place of the last ones if the terminal is ours."""
    if is_live:
        click.echo(f"{_CLEAR}{text or nothing}")
    elif text:
        click.echo(text)
    else:
        click.echo(nothing, err=True)


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


def _text(rows: Sequence[dict[str, Any]], output: str, *, headers: bool) -> str:
    if output == "json":
        return to_json(list(rows)).rstrip("\n")
    if output == "yaml":
        return to_yaml_stream(list(rows)).rstrip("\n")
    if output == "name":
        return "\n".join(f"{KINDS[row['kind']].plural_name}/{row['name']}" for row in rows)
    if not rows:
        return ""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return "\n".join(lines_of(rows, is_wide=output == "wide", headers=headers, width=width))


def lines_of(
    rows: Sequence[dict[str, Any]], *, is_wide: bool = False, headers: bool = True, width: int | None = None
) -> list[str]:
    """Return the table. On a terminal of a smaller `width` each row has two lines, with the reason on the second.

    No line is longer than the terminal: what does not fit is cut, and `-o wide` or `-o json` has it.

    Without a `width` every row is one line, for other programs to read.
    """
    cells = [cells_of(row, is_wide=is_wide) for row in rows]
    lines = in_columns(WIDE if is_wide else COLUMNS, cells, headers=headers)
    if width is None or is_wide or width_of(lines) <= width:
        return lines
    rooms = _rooms(cells, width_of(in_columns(NARROW, cells, headers=headers)) - width)
    cells = [
        cells_of(row, room=rooms["metrics"])
        | {name: cut(uncut[name], rooms[name]) for name in ("namespace", "name")}
        for row, uncut in zip(rows, cells, strict=True)
    ]
    return [cut(line, width) for line in in_columns(NARROW, cells, headers=headers, second="why")]


def _rooms(cells: Sequence[Mapping[str, str]], excess: int) -> dict[str, int]:
    """Return the width of each column that can be cut, so that lines are shorter by `excess` if possible."""
    rooms = {}
    for name, shortest in SHORTEST.items():
        longest = max(len(row[name]) for row in cells)
        rooms[name] = longest - max(min(excess, longest - shortest), 0)
        excess -= longest - rooms[name]
    return rooms
