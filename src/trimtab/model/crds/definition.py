"""One CustomResourceDefinition: names, versions and columns around a schema."""

from dataclasses import dataclass, field
from typing import Any

from trimtab.model.crds.schema import Notes, schema_of
from trimtab.model.wire import Wire

APPROVAL = "api-approved.kubernetes.io"
"""Annotation without which an API server refuses definitions in the groups of k8s.io."""


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; those with a priority are shown by `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """Return the column as the API writes it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": self.priority} if self.priority else column


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Crd:
    """What is needed to define one kind."""

    group: str
    version: str
    kind: type[Wire]
    plural: str
    notes: Notes
    columns: tuple[Column, ...] = (AGE,)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("trimtab",)
    has_status_subresource: bool = True
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the definition itself."""
        return f"{self.plural}.{self.group}"

    def manifest(self) -> dict[str, Any]:
        """Return the definition as plain data."""
        kind = self.kind.__name__
        metadata: dict[str, Any] = {"name": self.name}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        names: dict[str, Any] = {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": self.plural,
            "singular": kind.lower(),
            "categories": list(self.categories),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": names,
                "versions": [self._version()],
            },
        }

    def _version(self) -> dict[str, Any]:
        version: dict[str, Any] = {
            "name": self.version,
            "served": True,
            "storage": True,
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "schema": {"openAPIV3Schema": schema_of(self.kind, self.notes)},
        }
        return {**version, "subresources": {"status": {}}} if self.has_status_subresource else version
