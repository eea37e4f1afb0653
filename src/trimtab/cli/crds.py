"""`trimtab crds`: the definitions to apply before anything else."""

import click

from trimtab.cli.output import to_json, to_yaml_stream
from trimtab.model.crds import all_crds


@click.command()
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Format."
)
def crds(output: str) -> None:
    """Print the CustomResourceDefinitions that Trimtab needs.

    Use it as `trimtab crds | kubectl apply --server-side -f -`. JSON comes as one List.
    """
    definitions = all_crds()
    if output == "yaml":
        click.echo(to_yaml_stream(definitions), nl=False)
    else:
        click.echo(to_json({"apiVersion": "v1", "kind": "List", "items": definitions}), nl=False)
