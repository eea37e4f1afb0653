"""`trimtab install` prints the manifests of an installation."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import yaml

from trimtab.cli.commands.run import settings_of
from trimtab.cli.errors import CommandError
from trimtab.cli.output import output_option, to_json, to_yaml_stream
from trimtab.install import CRDS, ValueProblem, manifests, set_values

_BUILT_IN_KINDS_ONLY = (
    "trimtab install: HPAs may scale Deployments, ReplicaSets, StatefulSets and ReplicationControllers; for another kind "
    "add, for example, --set 'scalable=[{group: argoproj.io, resource: rollouts}]'"
)
"""Said at the installation, because the missing right shows only once such an HPA exists."""

_FLAG = re.compile(r"--[a-z][a-z0-9-]*")


@click.command()
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help=r"Set a value of the chart in Helm's syntax, such as settings.watch-namespaces=shop,search, tolerations[0].key=gpu or "
    r"nodeSelector.kubernetes\.io/arch=arm64. May be given often.",
)
@click.option(
    "-f",
    "--values",
    "paths",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Take values from a YAML file, as `helm install -f` does. May be given often; --set counts more.",
)
@click.option("-n", "--namespace", default="trimtab", show_default=True, help="Namespace to install into.")
@click.option(
    "--only",
    type=click.Choice(["crds"]),
    help="Print only the CustomResourceDefinitions, which programs outside of the cluster need, too.",
)
@output_option("yaml", "json")
def install(
    assignments: tuple[str, ...], paths: tuple[Path, ...], namespace: str, only: str | None, output: str
) -> None:
    """Print the manifests of an installation. Nothing is changed in the cluster.

    Use it as `trimtab install | kubectl apply --server-side -f -`. The feature gates of Trimtab's own features are on
    unless --set says otherwise. It renders the Helm chart in charts/trimtab, so it takes the same values and prints the same objects.
    """
    try:
        values = set_values(assignments, files=[_read_values(path) for path in paths])
        objects = manifests(values, namespace, only=CRDS if only else "")
    except ValueProblem as problem:
        raise CommandError(str(problem)) from problem
    _reject_unstartable(objects, values)
    if output == "yaml":
        click.echo(to_yaml_stream(objects), nl=False)
    else:
        click.echo(to_json({"apiVersion": "v1", "kind": "List", "items": objects}), nl=False)
    is_native = values["settings"].get("native-hpas")
    if values["horizontal"]["enabled"] and not is_native and not values["scalable"] and not only:
        click.echo(_BUILT_IN_KINDS_ONLY, err=True)


def _read_values(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict | None):
        raise CommandError(f"{path} must be a map of values, as charts/trimtab/values.yaml is")
    return values or {}


def _reject_unstartable(objects: Iterable[dict[str, Any]], values: dict[str, Any]) -> None:
    """Raise CommandError if a program would reject its arguments, by the parser and the checks of the program."""
    for manifest in objects:
        if manifest["kind"] != "Deployment":
            continue
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        try:
            _check_arguments(*container["args"])
        except ValueError as error:
            flag = _FLAG.search(str(error))
            path = _value_of_flag(values, container["name"], flag[0].removeprefix("--") if flag else "")
            raise CommandError(
                f"{path}: Deployment {manifest['metadata']['name']} could not start: {error}",
                f"correct --set {path}; docs/reference/flags.md lists the settings",
            ) from error


def _value_of_flag(values: dict[str, Any], program: str, key: str) -> str:
    """Return the path of the value that a flag of a program comes from."""
    is_own = key in values.get(program, values["vertical"].get(program, {})).get("settings", {})
    place = f"{program}." if program in values else f"vertical.{program}."
    return f"{place if is_own else ''}settings.{key}".rstrip(".")


def _check_arguments(program: str, *arguments: str) -> None:
    if program == "adapter":
        from trimtab.cli.commands.adapter import adapter  # noqa: PLC0415 - most installations have none

        options = [option for option in adapter.params if option.name != "config"]
        settings_of([argument for argument in arguments if not argument.startswith("--config=")], options)
    else:
        settings_of(arguments)
