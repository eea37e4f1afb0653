"""`trimtab replay` repeats recorded decisions and compares the results."""

from typing import BinaryIO

import click

from trimtab.cli.errors import FOUND, CommandError
from trimtab.library.decisions import RecordError, Replay
from trimtab.library.decisions import replay as repeat


@click.command("replay")
@click.argument("records", type=click.File("rb"))
@click.option("--quiet", is_flag=True, help="Only count.")
def replay(records: BinaryIO, quiet: bool) -> None:
    """Repeat recorded decisions, to the byte. Records come from `trimtab explain -o record`."""
    same = different = 0
    for number, line in enumerate(records, 1):
        if not line.strip():
            continue
        repeated = _repeat(line, number)
        if repeated.is_same:
            same += 1
        else:
            different += 1
            if repeated.difference:
                click.echo(repeated.difference)
        if not quiet:
            click.echo(repeated.summary)
    click.echo(f"{same} decisions came out the same, {different} did not", err=True)
    if different:
        raise click.exceptions.Exit(FOUND)


def _repeat(line: bytes, number: int) -> Replay:
    try:
        return repeat(line)
    except RecordError as error:
        raise CommandError(f"line {number} is not a record: {error}") from error
