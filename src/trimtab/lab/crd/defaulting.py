"""Defaults of custom objects, from their structural schema."""

from typing import Any

from trimtab.lab.codec import JsonObject, copy_of


def apply_defaults(value: Any, schema: JsonObject) -> None:
    """Fill in defaults in place, from the outside in; a null that a field may not be is as good as no field."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, child in properties.items():
            if "default" in child and (
                name not in value or (value[name] is None and not child.get("nullable"))
            ):
                value[name] = copy_of(child["default"])
        additional = schema.get("additionalProperties")
        others = additional if isinstance(additional, dict) else None
        for name in list(value):
            child = properties.get(name, others)
            if child is None:
                continue
            if value[name] is None and not child.get("nullable"):
                del value[name]
            else:
                apply_defaults(value[name], child)
    elif isinstance(value, list):
        for inner in value:
            apply_defaults(inner, schema.get("items") or {})
