"""One value of the chart."""

from dataclasses import dataclass
from typing import Any

from trimtab.install.values import types
from trimtab.install.values.types import Schema


@dataclass(frozen=True, slots=True)
class ChartValue:
    """A value of the chart: its path, default, help and type."""

    path: str
    default: Any
    help: str
    type: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The type as JSON Schema, by the default where none is declared."""
        return types.of_default(self.default) if self.type is None else self.type


def put(values: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path."""
    *parents, name = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[name] = value
