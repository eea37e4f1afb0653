"""Writes plain data as YAML, in the style of kubectl."""

from collections.abc import Sequence
from typing import Any

import yaml


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is known at run time
    """A YAML dumper that indents lists like kubectl and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


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
