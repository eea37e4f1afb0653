"""`trimtab version` prints the version of this program."""

import platform

import click

import trimtab
from trimtab.cli.output import output_option, to_json, to_yaml


@click.command("version")
@output_option("text", "json", "yaml")
def version(output: str) -> None:
    """Print the version of this program."""
    found = {"version": trimtab.__version__, "python": platform.python_version()}
    if output == "text":
        click.echo(f"trimtab {trimtab.__version__}")
    else:
        click.echo(to_json(found) if output == "json" else to_yaml(found), nl=False)
