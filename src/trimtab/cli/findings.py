"""What `trimtab validate` found, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.cli.nodes import Place

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One error or warning about one field of one object."""

    place: Place
    severity: str
    kind: str
    key: str
    field: str
    message: str

    @property
    def subject(self) -> str:
        """Return `Kind namespace/name`, or the kind alone for a document without a name."""
        return f"{self.kind} {self.key}" if self.key else self.kind

    def line(self) -> str:
        """Return `file:line: Kind namespace/name: field: message`; warnings say that they are."""
        parts = [
            str(self.place),
            self.subject,
            self.field,
            "warning" * (self.severity == WARNING),
            self.message,
        ]
        return ": ".join(part for part in parts if part)

    def data(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {
            "file": self.place.source,
            "line": self.place.line,
            "severity": self.severity,
            "kind": self.kind,
            "object": self.key,
            "field": self.field,
            "message": self.message,
        }


def print_table(findings: Sequence[Finding]) -> None:
    """Print the findings as a table that fits the terminal."""
    # Only this format needs rich, whose import takes longer than most validations.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for heading in ("WHERE", "OBJECT", "SEVERITY", "FIELD", "MESSAGE"):
        table.add_column(heading, overflow="fold")
    for found in findings:
        cells = (str(found.place), found.subject, found.severity, found.field, found.message)
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


def counted(count: int, noun: str) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
