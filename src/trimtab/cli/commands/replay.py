"""`trimtab replay` repeats recorded decisions and compares the results."""

import difflib
from typing import BinaryIO

import click

from trimtab.cli.errors import FOUND, CommandError
from trimtab.decide.horizontal import Record, explain
from trimtab.decide.horizontal import replay as decide_again
from trimtab.decide.horizontal.records.record import UnknownRecordError, dumps, loads
from trimtab.model.json.wire import WireError


@click.command("replay")
@click.argument("records", type=click.File("rb"))
@click.option("--quiet", is_flag=True, help="Only count.")
def replay(records: BinaryIO, quiet: bool) -> None:
    """Repeat recorded decisions, to the byte. Records come from `trimtab explain -o record`."""
    same = different = 0
    for number, line in enumerate(records, 1):
        if not line.strip():
            continue
        record = _read(line, number)
        again = decide_again(record)
        if dumps(again) == dumps(record):
            same += 1
        else:
            different += 1
            _show_difference(record, again)
        if not quiet:
            click.echo(f"{record.observation.hpa.key}: {explain(again).summary}")
    click.echo(f"{same} decisions came out the same, {different} did not", err=True)
    if different:
        raise click.exceptions.Exit(FOUND)


def _read(line: bytes, number: int) -> Record:
    try:
        return loads(line)
    except (WireError, UnknownRecordError) as error:
        raise CommandError(f"line {number} is not a record: {error}") from error


def _show_difference(record: Record, again: Record) -> None:
    before, after = (str(explain(version)).splitlines() for version in (record, again))
    for line in difflib.unified_diff(before, after, "recorded", "decided now", lineterm=""):
        click.echo(line)
