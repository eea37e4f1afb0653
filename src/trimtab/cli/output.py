"""Writing plain data for people and programs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from trimtab.cli.errors import CommandError


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is known at run time
    """Writes lists below their key as kubectl does, and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value out, also one that stands twice."""
        return True


def to_yaml(data: Any) -> str:
    """Return one document as YAML, its keys in the order they have."""
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
    """Write a file that an option names; raise CommandError if it cannot be written."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror or error}", "name a file in a directory that exists"
        ) from error
