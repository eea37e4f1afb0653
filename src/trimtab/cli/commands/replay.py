"""`trimtab replay` repeats recorded decisions and compares the results."""

from typing import TYPE_CHECKING, BinaryIO

import click

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.parameters import plugins_option_with
from trimtab.library.decisions import RecordError, Replay
from trimtab.library.decisions import replay as repeat
from trimtab.model.json.wire import WireError
from trimtab.model.readable import counted
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import PluginError, Plugins, load_plugins

if TYPE_CHECKING:
    from trimtab.decide.vertical.estimate_records import EstimateReplay


@click.command("replay")
@click.argument("records", type=click.File("rb"))
@click.option("--quiet", is_flag=True, help="Only count.")
@plugins_option_with(
    "Plug-ins to load. Answers of other plug-ins, and of other versions, are those recorded."
)
def replay(records: BinaryIO, quiet: bool, plugins: tuple[str, ...]) -> None:
    """Repeat recorded decisions, to the byte. Records come from `trimtab explain -o record`."""
    try:
        loaded = load_plugins(plugins)
    except PluginError as error:
        raise CommandError(str(error)) from error
    same = different = 0
    noted: set[str] = set()
    for number, line in enumerate(records, 1):
        if not line.strip():
            continue
        repeated = _repeat(line, number, loaded)
        for note in [note for note in getattr(repeated, "notes", ()) if note not in noted]:
            noted.add(note)
            click.echo(note, err=True)
        if repeated.is_same:
            same += 1
        else:
            different += 1
            if repeated.difference:
                click.echo(repeated.difference)
        if not quiet:
            click.echo(repeated.summary)
    click.echo(f"{counted(same, 'decision')} came out the same, {different} did not", err=True)
    if different:
        raise click.exceptions.Exit(FOUND)


def _repeat(line: bytes, number: int, plugins: Plugins) -> "Replay | EstimateReplay":
    try:
        return (
            _repeat_estimate(line, plugins)
            if b'"estimator"' in line[:100]
            else repeat(line, plugins=[plugin.name for plugin in plugins])
        )
    except (RecordError, WireError) as error:
        raise CommandError(f"line {number} is not a record: {error}") from error


def _repeat_estimate(line: bytes, plugins: Plugins) -> "EstimateReplay":
    # Recommendations need numpy, which a replay of HPAs does without.
    from trimtab.decide.vertical.estimate_records import loads, replay_estimate  # noqa: PLC0415
    from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators  # noqa: PLC0415

    names = [plugin.name for plugin in plugins]
    return replay_estimate(loads(line), loaded_estimators(Guards(plugins), names))
