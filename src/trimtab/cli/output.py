"""Writes plain data as YAML and JSON."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from trimtab.cli.errors import OUT_OF_RESOURCES, CommandError, system_error
from trimtab.serving.files import replace_file

F = TypeVar("F", bound=Callable[..., Any])


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is known at run time
    """A YAML dumper that indents lists like kubectl and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


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


def to_yaml(data: Any) -> str:
    """Return a document as YAML. Keys keep their order."""
    return to_yaml_stream([data])


def to_yaml_stream(documents: Sequence[Any]) -> str:
    """Return several documents as YAML, separated by `---`."""
    return str(
        yaml.dump_all(
            documents,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=1000,
            explicit_start=len(documents) > 1,
        )
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
