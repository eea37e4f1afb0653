"""`trimtab trace` records load from Prometheus, for `trimtab simulate`."""

import asyncio
import re
from datetime import timedelta
from typing import TextIO

import click

from trimtab.adapter.config import ServerAddress
from trimtab.cli.errors import CommandError
from trimtab.clock import SystemClock
from trimtab.library.progress import progress_line
from trimtab.library.prometheus import UnreachableError, range_until, record_load
from trimtab.library.simulator import TraceError
from trimtab.model.times import parse_long_duration

# A column may carry labels, `queue{name=mail}`: the sign that ends it stands outside of the braces.
_QUERY = re.compile(r"([^={}]*(?:\{[^{}]*\}[^={}]*)?)=(.*)", re.DOTALL)


class _Span(click.ParamType[timedelta]):
    """A duration that may also be in days, as in Prometheus."""

    name = "duration"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the duration, which must be positive."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_long_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span <= timedelta():
            self.fail(f"{value!r} must be longer than nothing", param, ctx)
        return span


def _queries(_ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        named = _QUERY.fullmatch(text)
        column, query = (part.strip() for part in named.groups()) if named else ("", "")
        if not column or not query or column in found:
            raise click.BadParameter(f"{text!r}: write COLUMN=QUERY, each column once", param=param)
        found[column] = query
    return found


@click.command("trace")
@click.option("--prometheus", "url", required=True, metavar="URL", help="Address, as http://127.0.0.1:9090.")
@click.option(
    "--query",
    "queries",
    multiple=True,
    required=True,
    callback=_queries,
    metavar="COLUMN=QUERY",
    help="A column of the trace and the PromQL of its total, as cpu='sum(rate(...[5m]))', or of each pod, as POD/CONTAINER/memory='sum by (pod, container) (...)'.",
)
@click.option("--since", type=_Span(), default="7d", show_default=True, help="How far back.")
@click.option("--step", type=_Span(), default="1m", show_default=True, help="Distance between rows.")
@click.option("--token-file", default="", help="A file with a bearer token.")
@click.option("-o", "--output", type=click.File("w", lazy=True), default="-", help="Where the CSV goes.")
def trace(
    url: str, queries: dict[str, str], since: timedelta, step: timedelta, token_file: str, output: TextIO
) -> None:
    """Record load from Prometheus as a trace for `trimtab simulate`.

    A column is the total of a metric. `POD/CONTAINER/cpu` makes a column per pod and container, by the labels `pod` and
    `container` of the series. `POD/label/role` records the values of a label of each pod, from `kube_pod_labels`.
    """
    clock = SystemClock()
    address = ServerAddress(url=url, token_file=token_file)
    wanted = range_until(clock, since, step)
    try:
        with progress_line() as on_progress:
            found = asyncio.run(record_load(clock, address, queries, wanted, on_progress))
    except UnreachableError as error:
        raise CommandError(str(error), "start it, or correct the address and port of --prometheus") from error
    except TraceError as error:
        raise CommandError(str(error)) from error
    output.writelines(f"{line}\n" for line in found.lines())
