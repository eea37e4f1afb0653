"""Errors and warnings about manifests, with the line of the field."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.library.yaml_nodes import Document, Place
from trimtab.model.bundle import bundle_findings
from trimtab.model.manifest import Manifest

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """An error or a warning about a field of an object."""

    place: Place
    severity: str
    kind: str
    key: str
    field: str
    message: str

    @property
    def subject(self) -> str:
        """Return `Kind namespace/name`, or the kind if the document has no name."""
        return f"{self.kind} {self.key}" if self.key else self.kind

    def line(self) -> str:
        """Return `file:line: Kind namespace/name: field: message`, marked if it is a warning."""
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


def find_problems(documents: Sequence[Document], manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield the findings in order of the documents, then those that concern several documents."""
    for document, manifest in zip(documents, manifests, strict=True):
        for error in manifest.errors:
            yield _finding(document, manifest, ERROR, error.field, error.body)
        for field, message in manifest.warnings:
            yield _finding(document, manifest, WARNING, field, message)
    readable = [
        (document, manifest)
        for document, manifest in zip(documents, manifests, strict=True)
        if manifest.object is not None
    ]
    members = [manifest.object for _, manifest in readable if manifest.object is not None]
    for found in bundle_findings(members):
        document, manifest = readable[found.position]
        yield _finding(document, manifest, ERROR if found.is_error else WARNING, found.field, found.text)


def _finding(document: Document, manifest: Manifest, severity: str, path: str, message: str) -> Finding:
    path = path.strip(".")
    return Finding(
        document.place_of(path), severity, manifest.kind, manifest.key, path, " ".join(message.split())
    )
