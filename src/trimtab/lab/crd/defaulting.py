"""Defaults of custom objects, from their structural schema."""

from typing import Any

from trimtab.lab.codec import JsonObject, copy_of


def apply_defaults(value: Any, schema: JsonObject) -> None:
    """Fill in defaults in place, from the outside in; a null that a field may not be is as good as no field."""
    if isinstance(value, dict):
        _fill(value, schema.get("properties") or {})
        for name, child in _known(value, schema):
            if _is_void(value[name], child):
                del value[name]
            else:
                apply_defaults(value[name], child)
    elif isinstance(value, list):
        for inner in value:
            apply_defaults(inner, schema.get("items") or {})


def _fill(value: JsonObject, properties: JsonObject) -> None:
    for name, child in properties.items():
        if "default" in child and (name not in value or _is_void(value[name], child)):
            value[name] = copy_of(child["default"])


def _is_void(value: Any, schema: JsonObject) -> bool:
    return value is None and not schema.get("nullable")


def _known(value: JsonObject, schema: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return the fields that are there and that the schema says something about, with what it says."""
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    found = [(name, properties.get(name, others)) for name in value]
    return [(name, child) for name, child in found if isinstance(child, dict)]
