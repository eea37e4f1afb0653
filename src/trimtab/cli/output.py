"""Writes plain data as YAML and JSON, and claims the files that commands write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trimtab.cli.errors import OUT_OF_RESOURCES, CommandError, system_error
from trimtab.library.documents import to_yaml, to_yaml_stream
from trimtab.serving.files import replace_file

if TYPE_CHECKING:
    from trimtab_lab.kubeconfig_file import KubeconfigFile

__all__ = [
    "claim_kubeconfig",
    "kubeconfig_option",
    "output_option",
    "to_json",
    "to_yaml",
    "to_yaml_stream",
    "write_file",
]

F = TypeVar("F", bound=Callable[..., Any])


def output_option(first: str, *others: str) -> Callable[[F], F]:
    """Return `-o`, whose default is the first format."""
    return click.option(
        "-o",
        "--output",
        "output",
        type=click.Choice([first, *others]),
        default=first,
        show_default=True,
        help="Format.",
    )


def to_json(data: Any) -> str:
    """Return data as indented JSON with a final newline."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def write_file(path: Path, data: bytes) -> None:
    """Write a file that an option names. Raise CommandError on failure."""
    try:
        replace_file(path, data)
    except OSError as error:
        if (exhausted := system_error(error)) and exhausted.exit_code == OUT_OF_RESOURCES:
            raise CommandError(
                f"cannot write {path}: {error.strerror or error}", exhausted.hint, OUT_OF_RESOURCES
            ) from error
        raise CommandError(
            f"cannot write {path}: {error.strerror or error}", "name a file in a directory that exists"
        ) from error


def kubeconfig_option(default: Path) -> Callable[[F], F]:
    """Return `--write-kubeconfig`. `claim_kubeconfig` needs the same default."""
    return click.option(
        "--write-kubeconfig",
        "kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Where to write the kubeconfig (mode 0600). It is removed with the cluster.  [default: {default}, or the next free name]",
    )


def claim_kubeconfig(wanted: Path | None, default: Path) -> "KubeconfigFile":
    """Claim the kubeconfig that was asked for, or a free name. Raise CommandError if another cluster has it."""
    from trimtab_lab.kubeconfig_file import KubeconfigFile, KubeconfigInUseError, claim_free  # noqa: PLC0415 - slow for --help

    try:
        file = claim_free(default) if wanted is None else KubeconfigFile(wanted)
    except KubeconfigInUseError as error:
        raise CommandError(str(error), "name another file with --write-kubeconfig") from error
    except OSError as error:
        raise CommandError(
            f"cannot write {wanted or default}: {error.strerror or error}",
            "name a file in a directory of yours with --write-kubeconfig",
        ) from error
    if wanted is None and file.path != default:
        click.echo(f"another one runs here with {default}; this one has {file.path}", err=True)
    return file
