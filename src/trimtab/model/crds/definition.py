"""The manifest of a CustomResourceDefinition: names, version and columns around a schema."""

from dataclasses import dataclass
from typing import Any

from trimtab.model.crds.schema import Notes, schema_of
from trimtab.model.json.wire import Wire


@dataclass(frozen=True)
class PrinterColumn:
    """A column of `kubectl get`, or of `-o wide` only if it has a priority."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """Return the column as the API writes it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": self.priority} if self.priority else column


AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Crd:
    """The definition of one kind."""

    group: str
    version: str
    kind: type[Wire]
    plural: str
    notes: Notes
    columns: tuple[PrinterColumn, ...] = (AGE,)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("trimtab",)
    has_status_subresource: bool = True

    @property
    def name(self) -> str:
        """Return the name of the definition itself."""
        return f"{self.plural}.{self.group}"

    def manifest(self) -> dict[str, Any]:
        """Return the definition as plain data."""
        kind = self.kind.__name__
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
            "metadata": {"name": self.name},
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
