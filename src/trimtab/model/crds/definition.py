"""One CustomResourceDefinition: names, versions and columns around a schema."""

from dataclasses import dataclass, field
from typing import Any

from trimtab.model.crds.schema import QUANTITY_SUFFIX, Notes, Schema, rule, rules, schema_of
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, LabelSelectorRequirement

APPROVAL = "api-approved.kubernetes.io"
"""Annotation without which an API server refuses definitions in the groups of k8s.io."""


@dataclass(frozen=True)
class PrinterColumn:
    """A column of `kubectl get`; those with a priority are shown by `-o wide` only."""

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
    """What is needed to define one kind."""

    group: str
    version: str
    kind: type[Wire]
    plural: str
    notes: Notes
    columns: tuple[PrinterColumn, ...] = (AGE,)
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


NAME_LENGTH = 253
TEXT_LENGTH = 512
LABEL_LENGTH = 63
LABEL_KEY_LENGTH = 317
"""A prefix of 253 characters, a slash and a name of 63."""

MAX_LABELS = 32
"""Entries of a selector, and values of each: beyond any use, and what keeps rules over them affordable."""

LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"

_SOME = r"([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)"
_ANY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"


def _number(pattern: str, **bounds: Any) -> Schema:
    """Return the schema of a quantity that people also write as a bare number with a point, such as 0.05.

    autoscaling/v2 takes those, and `x-kubernetes-int-or-string` does not. A schema without a type takes any value, so
    text is held to a pattern, numbers to bounds, and lists and objects to being empty.
    """
    return {
        "anyOf": None,
        "x-kubernetes-int-or-string": None,
        "x-kubernetes-preserve-unknown-fields": True,
        "pattern": f"^{pattern}$",
        "maxItems": 0,
        "maxProperties": 0,
        **bounds,
    }


NO_SIGN = rf"^\+?{_ANY}{QUANTITY_SUFFIX}$"
"""Text of a quantity that is not below zero."""
POSITIVE = _number(rf"\+?{_SOME}{QUANTITY_SUFFIX}", minimum=0, exclusiveMinimum=True)
NOT_NEGATIVE = {
    **_number("", minimum=0),
    # A refused text is answered with the pattern alone, and CEL sees no field without a type: the group is the message.
    "pattern": r"^(?P<must_not_be_negative>[^-]|$)",
    "allOf": [{"pattern": rf"^[+-]?{_ANY}{QUANTITY_SUFFIX}$"}],
}
"""Zero or more."""
FRACTION = _number(
    r"\+?(1(\.0*)?|0?\.[0-9]*[1-9][0-9]*|1000m|[1-9][0-9]{0,2}m)", minimum=0, exclusiveMinimum=True, maximum=1
)
"""More than nothing, at most all."""

PATH_SEGMENT: Schema = {
    "minLength": 1,
    "maxLength": TEXT_LENGTH,
    "pattern": r"^[^\x00-\x1f\x7f]*$",
    **rules(
        rule(
            "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')",
            "must not be '.' or '..' and must not contain '/' or '%'",
        )
    ),
}


def described(text: str, note: Schema | None = None) -> Schema:
    """Return a note with the description that `kubectl explain` shows."""
    return {"description": text, **(note or {})}


_VALUE: Schema = {"maxLength": LABEL_LENGTH, "pattern": LABEL_VALUE}

SELECTOR_TYPES: dict[type, Schema] = {
    LabelSelector: {"x-kubernetes-map-type": "atomic"},
    LabelSelectorRequirement: {
        "required": ["key", "operator"],
        **rules(
            rule(
                "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                "must be specified when `operator` is 'In' or 'NotIn'",
                at=".values",
                reason="FieldValueRequired",
            ),
            rule(
                "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                at=".values",
                reason="FieldValueForbidden",
            ),
        ),
    },
}

SELECTOR_FIELDS: dict[tuple[type, str], Schema] = {
    (LabelSelector, "matchLabels"): {
        "maxProperties": MAX_LABELS,
        "additionalProperties": _VALUE,
        **rules(
            rule(
                f"self.all(key, size(key) <= {LABEL_KEY_LENGTH} && key.matches('{LABEL_KEY}'))",
                "every key must be a label key such as app.kubernetes.io/name",
            )
        ),
    },
    (LabelSelector, "matchExpressions"): {"maxItems": MAX_LABELS, "x-kubernetes-list-type": "atomic"},
    (LabelSelectorRequirement, "key"): {
        "minLength": 1,
        "maxLength": LABEL_KEY_LENGTH,
        "pattern": LABEL_KEY,
    },
    (LabelSelectorRequirement, "operator"): {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
    (LabelSelectorRequirement, "values"): {
        "maxItems": MAX_LABELS,
        "items": _VALUE,
        "x-kubernetes-list-type": "atomic",
    },
}
