"""From a wire type to a structural OpenAPI schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import inspect

from trimtab.model.json.shape import INT64_FIELDS
from trimtab.model.json.wire import Wire

Schema = dict[str, Any]

LARGEST_INT32 = 2**31 - 1
QUANTITY_LENGTH = 64
"""Longest quantity taken as text; a number with a suffix never needs so much, and rules that read it stay cheap."""

QUANTITY_SUFFIX = r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*([12]?[0-9]|30))?"

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    # The exponent is bounded: an API server takes a minute over 1e-1000000000.
    "pattern": rf"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+){QUANTITY_SUFFIX}$",
    "maxLength": QUANTITY_LENGTH,
}


@dataclass(frozen=True)
class Notes:
    """What the types do not say, by type and by field; entries are added to the generated schema.

    `"properties"` in a note adds fields that only the schema has. Status has notes of its own: what a controller
    reports is never refused for a rule about what a user may ask.
    """

    types: Mapping[type[msgspec.Struct], Schema] = field(default_factory=dict)
    fields: Mapping[tuple[type[msgspec.Struct], str], Schema] = field(default_factory=dict)
    status: "Notes | None" = None


def rule(expression: str, message: str, *, at: str = "", reason: str = "FieldValueInvalid") -> Schema:
    """Return one CEL rule; `at` is the field below `self` that the error is reported at."""
    found = {"rule": expression, "message": message, "reason": reason}
    return {**found, "fieldPath": at} if at else found


def rules(*all_rules: Schema) -> Schema:
    """Return the note that adds rules to a type or field."""
    return {"x-kubernetes-validations": list(all_rules)}


def schema_of(kind: type[Wire], notes: Notes) -> Schema:
    """Return the schema of a whole object; its metadata is the API server's own business."""
    info = inspect.type_info(kind)
    schema = _struct(info, notes)
    schema["properties"]["metadata"] = {"type": "object"}
    if "status" in schema["properties"]:
        reported = _struct(info, notes.status or Notes())
        schema["properties"]["status"] = reported["properties"]["status"]
    return schema


def _schema(info: inspect.Type, notes: Notes, name: str) -> Schema:
    if isinstance(info, inspect.UnionType):
        info = next(one for one in info.types if not isinstance(one, inspect.NoneType))
    if isinstance(info, inspect.StructType):
        return _struct(info, notes)
    if isinstance(info, inspect.VarTupleType):
        return {"type": "array", "items": _schema(info.item_type, notes, name)}
    if isinstance(info, inspect.DictType):
        return {"type": "object", "additionalProperties": _schema(info.value_type, notes, name)}
    if isinstance(info, inspect.IntType):
        if name in INT64_FIELDS:
            return {"type": "integer", "format": "int64"}
        # The format alone is refused without the value and without its field.
        return {"type": "integer", "format": "int32", "maximum": LARGEST_INT32}
    if isinstance(info, inspect.DateTimeType):
        # Go writes a time that is not set as null.
        return {"type": "string", "format": "date-time", "nullable": True}
    if isinstance(info, inspect.CustomType):
        return dict(QUANTITY)
    return {"type": _SCALARS[type(info)]}


_SCALARS: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
}


def _struct(info: inspect.Type, notes: Notes) -> Schema:
    assert isinstance(info, inspect.StructType)
    properties = {
        one.encode_name: _noted(
            _schema(one.type, notes, one.encode_name), notes.fields.get((info.cls, one.encode_name), {})
        )
        for one in info.fields
    }
    schema = {"type": "object", "description": _summary(info.cls), "properties": properties}
    return _noted(schema, notes.types.get(info.cls, {}))


def _noted(schema: Schema, note: Schema) -> Schema:
    """Add a note to a schema; rules and properties join those that are there, all else replaces, None removes."""
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
