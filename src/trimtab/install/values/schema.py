"""The JSON Schema of the chart's values, and the check of values against it.

Helm checks `values.schema.json` before it renders. `trimtab install` checks the same document with `problems`, which
implements the keywords that the document uses. So both reject the same values.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trimtab.install.values.chart_value import ChartValue
from trimtab.install.values.table import CHART_VALUES, COMBINATIONS
from trimtab.install.values.types import Schema

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a value, and its path in the document."""

    path: tuple[str, ...]
    message: str
    is_unknown: bool = False
    """Whether the value is not part of the schema."""


def values_schema() -> dict[str, Any]:
    """Return `values.schema.json`. Every declared value is required, which its default satisfies.

    An upgrade with `--reuse-values` lacks the defaults of new values. Helm then names them here, and not somewhere in a template.
    """
    schema = _group("Values of the Trimtab chart.")
    for value in CHART_VALUES:
        _declare(schema, value)
    # Helm adds it to the values of every chart that is a dependency of another.
    schema["properties"]["global"] = {
        "type": "object",
        "description": "Values that Helm shares among charts; not used.",
    }
    schema["allOf"] = [{"if": _nested(when), "then": _nested(then)} for when, then in COMBINATIONS]
    return {"$schema": _DRAFT, **schema}


def _group(description: str = "") -> dict[str, Any]:
    about = {"description": description} if description else {}
    return {**about, "type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _declare(schema: dict[str, Any], value: ChartValue) -> None:
    *parents, name = value.path.split(".")
    for parent in parents:
        if parent not in schema["properties"]:
            schema["properties"][parent] = _group()
            schema["required"].append(parent)
        schema = schema["properties"][parent]
    schema["properties"][name] = {"description": value.help, **value.schema, "default": value.default}
    schema["required"].append(name)


def _nested(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the schema of objects whose values at some paths have these types."""
    whole: dict[str, Any] = {"properties": {}}
    for path, schema in schemas.items():
        inner = whole
        *parents, name = path.split(".")
        for parent in parents:
            inner = inner["properties"].setdefault(parent, {"properties": {}})
        inner["properties"][name] = schema
    return whole


def problems(schema: Schema, value: Any, path: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Yield what a schema rejects in a value."""
    wanted = schema.get("type", ())
    wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    if wanted and not any(_is_of_type(value, name) for name in wanted):
        yield Problem(
            path, f"{_shown(value)} is not {schema.get('title') or _listed(_TYPES[name] for name in wanted)}"
        )
        return
    yield from _scalar_problems(schema, value, path)
    if isinstance(value, Mapping):
        yield from _map_problems(schema, value, path)
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, (*path, str(number)))
    for part in schema.get("allOf", ()):
        if not any(problems(part["if"], value, path)):
            yield from problems(part["then"], value, path)


def _scalar_problems(schema: Schema, value: Any, path: tuple[str, ...]) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        words = _listed(str(word) or '""' for word in schema["enum"])
        yield Problem(path, f"{_shown(value)} is not {schema.get('title') or f'known; use {words}'}")
    if "const" in schema and value != schema["const"]:
        yield Problem(path, f"must be {_shown(schema['const'])}{schema.get('title', '')}")
    if isinstance(value, str) and "pattern" in schema and not _matches(schema["pattern"], value):
        yield Problem(
            path, f"{_shown(value)} is not {schema.get('title') or 'of the form ' + schema['pattern']}"
        )
    if isinstance(value, int | float):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not least <= value <= most:
            yield Problem(path, f"{value} is out of bounds; use {_range(schema)}")


def _map_problems(schema: Schema, value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Problem]:
    declared, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    keys = schema.get("propertyNames", {})
    reserved = keys.get("not", {}).get("enum", ())
    for key, inner in value.items():
        if key in reserved:
            yield Problem((*path, key), "is set by Trimtab; use another key")
        elif any(problems(keys, key)):
            yield Problem((*path, key), f"{_shown(key)} is not {keys['title']}")
        elif key in declared:
            yield from problems(declared[key], inner, (*path, key))
        elif other is False:
            yield Problem((*path, key), "there is no such value", is_unknown=True)
        elif isinstance(other, Mapping):
            yield from problems(other, inner, (*path, key))
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem((*path, key), "is missing")
    if len(value) < schema.get("minProperties", 0):
        yield Problem(path, "must not be empty")


_TYPES: Final = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a map",
}


def _is_of_type(value: Any, name: str) -> bool:
    match name:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, Mapping)


def _shown(value: Any) -> str:
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or isinstance(value, bool)
        else repr(value)
    )


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _matches(pattern: str, text: str) -> bool:
    """Return whether a text matches. Python's `$` would also match before a final newline, and Helm's does not."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text, re.ASCII) is not None


def _range(schema: Schema) -> str:
    return f"{schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}"
