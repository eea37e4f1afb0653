"""Structural OpenAPI schemas: generated from wire types, and shared by several fields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import inspect

from trimtab.model.json.shape import INT64_FIELDS, present_type
from trimtab.model.json.wire import Json, Wire
from trimtab.model.labels.selector import LabelSelector, LabelSelectorRequirement

Schema = Json

LARGEST_INT32 = 2**31 - 1
QUANTITY_LENGTH = 64
"""Longest text of a quantity. Numbers never need so much, and rules that read it stay cheap."""

QUANTITY_SUFFIX = r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*([12]?[0-9]|30))?"

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    # The exponent is bounded: an API server takes a minute over 1e-1000000000.
    "pattern": rf"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+){QUANTITY_SUFFIX}$",
    "maxLength": QUANTITY_LENGTH,
}

NAME_LENGTH = 253
TEXT_LENGTH = 512
LABEL_LENGTH = 63
LABEL_KEY_LENGTH = 317
"""A prefix of 253 characters, a slash and a name of 63."""

MAX_LABELS = 32
"""Most entries of a selector, and values of each, so that rules over them stay cheap."""

LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"

_SCALARS: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
}

_SOME = r"([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)"
_ANY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"


@dataclass(frozen=True)
class Notes:
    """Additions to the generated schema, by type and by field.

    `"properties"` in a note adds fields that only the schema has. Status has notes of its own: rules about a user's spec
    must not reject what a controller reports.
    """

    types: Mapping[type[msgspec.Struct], Schema] = field(default_factory=dict)
    fields: Mapping[tuple[type[msgspec.Struct], str], Schema] = field(default_factory=dict)
    status: "Notes | None" = None


def rule(expression: str, message: str, *, at: str = "", reason: str = "FieldValueInvalid") -> Schema:
    """Return a CEL rule that reports its error at the field `at` below `self`."""
    cel = {"rule": expression, "message": message, "reason": reason}
    return {**cel, "fieldPath": at} if at else cel


def rules(*all_rules: Schema) -> Schema:
    """Return the note that adds rules to a type or field."""
    return {"x-kubernetes-validations": list(all_rules)}


def schema_of(kind: type[Wire], notes: Notes) -> Schema:
    """Return the schema of a whole object, except its metadata."""
    info = inspect.type_info(kind)
    schema = _struct(info, notes)
    schema["properties"]["metadata"] = {"type": "object"}
    if "status" in schema["properties"]:
        reported = _struct(info, notes.status or Notes())
        schema["properties"]["status"] = reported["properties"]["status"]
    return schema


def _schema(info: inspect.Type, notes: Notes, name: str) -> Schema:
    info = present_type(info)
    if isinstance(info, inspect.StructType):
        return _struct(info, notes)
    if isinstance(info, inspect.VarTupleType):
        return {"type": "array", "items": _schema(info.item_type, notes, name)}
    if isinstance(info, inspect.DictType):
        is_free = isinstance(info.value_type, inspect.AnyType)
        values = {"x-kubernetes-preserve-unknown-fields": True}
        return {
            "type": "object",
            **(values if is_free else {"additionalProperties": _schema(info.value_type, notes, name)}),
        }
    if isinstance(info, inspect.IntType):
        if name in INT64_FIELDS:
            return {"type": "integer", "format": "int64"}
        # A violation of the format alone is reported without the value and its field.
        return {"type": "integer", "format": "int32", "maximum": LARGEST_INT32}
    if isinstance(info, inspect.DateTimeType):
        # Go writes a time that is not set as null.
        return {"type": "string", "format": "date-time", "nullable": True}
    if isinstance(info, inspect.CustomType):
        return dict(QUANTITY)
    return {"type": _SCALARS[type(info)]}


def _struct(info: inspect.Type, notes: Notes) -> Schema:
    assert isinstance(info, inspect.StructType)
    properties = {
        field.encode_name: _noted(
            _schema(field.type, notes, field.encode_name),
            notes.fields.get((info.cls, field.encode_name), {}),
        )
        for field in info.fields
    }
    schema = {"type": "object", "description": _summary(info.cls), "properties": properties}
    return _noted(schema, notes.types.get(info.cls, {}))


def _noted(schema: Schema, note: Schema) -> Schema:
    """Add a note to a schema: append rules and properties, replace all else, remove what is None."""
    result = {key: value for key, value in {**schema, **note}.items() if value is not None}
    for key in ("x-kubernetes-validations", "required"):
        if key in schema and key in note:
            result[key] = [*schema[key], *note[key]]
    if "properties" in schema and "properties" in note:
        result["properties"] = {**schema["properties"], **note["properties"]}
    if "items" in schema and "items" in note:
        result["items"] = _noted(schema["items"], note["items"])
    if "additionalProperties" in schema and "additionalProperties" in note:
        result["additionalProperties"] = _noted(schema["additionalProperties"], note["additionalProperties"])
    return result


def _summary(kind: type[Any]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _number(pattern: str, **bounds: Any) -> Schema:
    """Return the schema of a quantity that may be a bare number with a point, such as 0.05.

    autoscaling/v2 accepts those, and `x-kubernetes-int-or-string` does not. A schema without a type accepts any value, so
    text has to match a pattern, numbers have bounds, and lists and objects must be empty.
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
"""Pattern of a quantity that is not negative."""
POSITIVE = _number(rf"\+?{_SOME}{QUANTITY_SUFFIX}", minimum=0, exclusiveMinimum=True)
NOT_NEGATIVE = {
    **_number("", minimum=0),
    # The error about a text is the pattern alone, and CEL does not see fields without a type: the group is the message.
    "pattern": r"^(?P<must_not_be_negative>[^-]|$)",
    "allOf": [{"pattern": rf"^[+-]?{_ANY}{QUANTITY_SUFFIX}$"}],
}
"""Zero or more."""
FRACTION = _number(
    r"\+?(1(\.0*)?|0?\.[0-9]*[1-9][0-9]*|1000m|[1-9][0-9]{0,2}m)", minimum=0, exclusiveMinimum=True, maximum=1
)
"""More than 0, at most 1."""

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


def enum_of(values: type[StrEnum]) -> Schema:
    """Return the note that restricts a field to these values."""
    return {"enum": [str(value) for value in values]}


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
