"""`trimtab install` prints the manifests of an installation."""

import click

from trimtab.cli.errors import CommandError
from trimtab.cli.output import output_option, to_json, to_yaml_stream
from trimtab.install import ValueProblem, manifests, set_values
from trimtab.model.crds import all_crds


@click.command()
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a value of the chart, such as image.tag=1.2 or watchNamespaces=shop,search. May be given often.",
)
@click.option("-n", "--namespace", default="trimtab", show_default=True, help="Namespace to install into.")
@output_option("yaml", "json")
def install(assignments: tuple[str, ...], namespace: str, output: str) -> None:
    """Print the manifests of an installation. Nothing is changed in the cluster.

    Use it as `trimtab install | kubectl apply --server-side -f -`. All four feature gates are on unless --set says
    otherwise. The Helm chart in charts/trimtab holds the same objects and takes the same values.
    """
    try:
        objects = manifests(set_values(assignments, namespace=namespace))
    except ValueProblem as problem:
        raise CommandError(str(problem)) from problem
    if output == "yaml":
        click.echo(to_yaml_stream(objects), nl=False)
    else:
        click.echo(to_json({"apiVersion": "v1", "kind": "List", "items": objects}), nl=False)


@click.command()
@output_option("yaml", "json")
def crds(output: str) -> None:
    """Print the CustomResourceDefinitions that Trimtab needs.

    Use it as `trimtab crds | kubectl apply --server-side -f -`. JSON comes as one List.
    """
    definitions = all_crds()
    if output == "yaml":
        click.echo(to_yaml_stream(definitions), nl=False)
    else:
        click.echo(to_json({"apiVersion": "v1", "kind": "List", "items": definitions}), nl=False)
