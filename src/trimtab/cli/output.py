"""Writing plain data for people and programs."""

import json
from collections.abc import Sequence
from typing import Any

import yaml


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is known at run time
    """Writes lists below their key as kubectl does, and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value out, also one that stands twice."""
        return True


def to_yaml(documents: Sequence[Any]) -> str:
    """Return the documents as YAML, their keys in the order they have."""
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
