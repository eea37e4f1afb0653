"""Defaults of custom objects, from their structural schema."""

from typing import Any

from trimtab.lab.codec import JsonObject, copy_of


def apply_defaults(value: Any, schema: JsonObject) -> None:
    """Fill in defaults in place, from the outside in."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, child in properties.items():
            if "default" in child and (
                name not in value or (value[name] is None and not child.get("nullable"))
            ):
                value[name] = copy_of(child["default"])
        additional = schema.get("additionalProperties")
        for name, inner in value.items():
            if name in properties:
                apply_defaults(inner, properties[name])
            elif isinstance(additional, dict):
                apply_defaults(inner, additional)
    elif isinstance(value, list):
        for inner in value:
            apply_defaults(inner, schema.get("items") or {})
