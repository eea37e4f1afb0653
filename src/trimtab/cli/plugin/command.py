"""`trimtab plugin` lists, checks and starts plug-ins."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.examples import epilog_of
from trimtab.cli.plugin.skeleton import KINDS, files_of, folder_of, name_problem
from trimtab.cli.progress import waiting
from trimtab.model.plugin_names import RULE, is_plugin_name
from trimtab.plugins.errors import describe, place_of
from trimtab.plugins.registry import (
    InstalledPlugin,
    PluginError,
    describe_installed,
    installed_plugins,
    load_plugin,
)
from trimtab.plugins.time_limit import ends_the_program

WIDEST = 1000
"""Characters of a line. Names are copied from the table, so neither a narrow terminal nor a pipe may break them."""


@click.group("plugin")
def plugin() -> None:
    """List the installed plug-ins, check one, or start a new one."""


@plugin.command("list", epilog=epilog_of("plugin list"))
def list_plugins() -> None:
    """List the plug-ins of the packages that are installed beside Trimtab, without importing them."""
    found = installed_plugins()
    if not found:
        click.echo("no package with plug-ins is installed")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("NAME", "KIND", "PACKAGE", "VERSION", "FUNCTION"):
        table.add_column(title)
    for entry in found:
        table.add_row(
            entry.name, entry.kind.label, entry.distribution, entry.version, entry.entry_point.value
        )
    Console(width=WIDEST).print(table)


@plugin.command("check", epilog=epilog_of("plugin check"))
@click.argument("module")
@click.option(
    "--parameters",
    default="{}",
    metavar="JSON",
    help='Parameters of a replica policy or metric source, as {"metric": "requests"}.',
)
@click.option(
    "--metric", "metrics", multiple=True, help="A metric that a metric source must answer; repeatable."
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label that its clients select."
)
def check(module: str, parameters: str, metrics: tuple[str, ...], labels: tuple[str, ...]) -> None:
    """Load plug-ins and test them: what they return, equal answers to equal inputs, no changed input, and time.

    MODULE is the module of an installed package, such as not_draining, or the name of a plug-in, such as
    example.com/NotDraining.
    """
    from trimtab.plugins.testing import PluginTestError, PluginTestWarning, check_plugin  # noqa: PLC0415 - only this command tests plug-ins

    given, selected = _parameters(parameters), _labels(labels)
    failed = 0
    for entry in _find(module):
        try:
            with (
                waiting(f"checking {entry.kind.label} {entry.name}"),
                warnings.catch_warnings(record=True) as noticed,
            ):
                warnings.simplefilter("always", PluginTestWarning)
                loaded = load_plugin(entry)
                result = check_plugin(loaded, given, metrics, selected)
            click.echo(f"{loaded}: passed: {result}")
            for warning in noticed:
                click.echo(f"{loaded}: warning: {warning.message}")
        except (PluginError, PluginTestError) as error:
            failed += 1
            click.echo(f"{entry.kind.label} {entry.name}: failed: {error}")
        except BaseException as error:  # code of the plug-in may run wherever it is looked at
            if ends_the_program(error):
                raise
            failed += 1
            click.echo(
                f"{entry.kind.label} {entry.name}: failed: it raised {describe(error)}{place_of(error)}"
            )
    if failed:
        raise click.exceptions.Exit(FOUND)


@plugin.command("new", epilog=epilog_of("plugin new"))
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write it; the name in lower case if not given.",
)
def new(kind: str, name: str, folder: Path | None) -> None:
    """Write a package with a plug-in: pyproject.toml, the function, its tests and a backtest.

    NAME has a domain of yours, as example.com/NotDraining.
    """
    if not is_plugin_name(name):
        raise CommandError(f"{name!r} is no name of a plug-in: {RULE}")
    if problem := name_problem(name):
        domain, _, plain = name.partition("/")
        raise CommandError(
            f"{name} cannot be used: {problem}", f"choose another name, as {domain}/my-{plain}"
        )
    place = folder or Path(folder_of(name))
    if place.exists() and any(place.iterdir()):
        raise CommandError(f"{place} exists and is not empty", "name another folder with --folder")
    place.mkdir(parents=True, exist_ok=True)
    for file, text in files_of(KINDS[kind], name).items():
        (place / file).write_text(text)
        click.echo(place / file)
    click.echo(f"\nnext: pip install -e {place}; trimtab plugin check {name}; pytest {place}")


def _find(module: str) -> list[InstalledPlugin]:
    installed = installed_plugins()
    found = [entry for entry in installed if module in {entry.name, entry.entry_point.module}]
    if not found:
        raise CommandError(
            f"no installed package has a plug-in {module}; {describe_installed(installed, module)}",
            "pip install its package first",
        )
    return found


def _parameters(text: str) -> Mapping[str, Any]:
    try:
        parameters = json.loads(text)
    except ValueError as error:
        raise CommandError(f"--parameters: {text!r} is no JSON: {error}") from error
    if not isinstance(parameters, dict):
        raise CommandError(f"--parameters: {text!r} is no JSON object")
    return parameters


def _labels(texts: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator:
            raise CommandError(f"--label: {text!r} is not of the form NAME=VALUE")
        labels[name] = value
    return labels
