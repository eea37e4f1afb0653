"""Checks values against the chart's JSON Schema, with the keywords that it uses. Helm checks the same file.

So both refuse the same values. Here the message also says what is allowed, by a schema's `title`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

CHART: Final = Path(__file__).with_name("chart")
"""The chart, which is part of this package."""

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "string": (str, "a text"),
    "array": (list, "a list"),
    "object": (Mapping, "a map"),
}


class Problem(NamedTuple):
    """What is wrong with a value, and its path."""

    path: tuple[str, ...]
    message: str
    known: tuple[str, ...] = ()
    """The names that a map may have, where it has another."""


def read(name: str) -> str:
    """Return the text of a file of the chart."""
    return (CHART / name).read_text(encoding="utf-8")


@cache
def values_schema() -> dict[str, Any]:
    """Return `values.schema.json`."""
    schema: dict[str, Any] = json.loads(read("values.schema.json"))
    return schema


def followed(schema: Schema) -> Schema:
    """Return the schema that a reference names, or the schema itself."""
    if "$ref" not in schema:
        return schema
    found: Schema = values_schema()["definitions"][schema["$ref"].rpartition("/")[2]]
    return found


def problems(schema: Schema, value: Any, path: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Yield what a schema rejects in a value."""
    schema = followed(schema)
    if wanted := _wanted(schema, value):
        yield Problem(path, f"{_shown(value)} is not {schema.get('title', wanted)}")
    elif isinstance(value, Mapping):
        yield from _map_problems(schema, value, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, (*path, str(number)))
    elif isinstance(value, int | float):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not least <= value <= most:
            yield Problem(path, f"{value} is out of bounds; use {_range(schema)}")
    for part in schema.get("allOf", ()):
        if not any(problems(part["if"], value)):
            yield from problems(part["then"], value, path)


def _wanted(schema: Schema, value: Any) -> str:
    """Return what a value should be that is of another type, none of the choices or of another form."""
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    if types and not any(_is_of(value, name) for name in types):
        return _listed(_TYPES[name][1] for name in types)
    if "enum" in schema and value not in schema["enum"]:
        choices = _listed(str(word) or '""' for word in schema["enum"])
        return f"known; use {choices}"
    # Python's `$` would also match before a final newline, and Helm's does not.
    pattern = re.sub(r"\$$", r"\\Z", schema.get("pattern", ""))
    if isinstance(value, str) and not re.search(pattern, value, re.ASCII):
        return f"of the form {schema['pattern']}"
    return "allowed" if "not" in schema and not any(problems(schema["not"], value)) else ""


def _is_of(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name][0]) and (name == "boolean" or not isinstance(value, bool))


def _map_problems(schema: Schema, value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Problem]:
    declared, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, inner in value.items():
        yield from problems(schema.get("propertyNames", {}), key, (*path, key))
        if key in declared or others:
            yield from problems(declared.get(key, others), inner, (*path, key))
        elif others is False:
            yield Problem((*path, key), "there is no such value", tuple(declared))
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem((*path, key), "is missing")


def _shown(value: Any) -> str:
    """Return a value as a message shows it, without the password in an address."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return re.sub(r"(?<=://)[^@]*@", "...@", text)


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _range(schema: Schema) -> str:
    if "minimum" not in schema:
        return f"at most {schema['maximum']}"
    return (
        f"{schema['minimum']} to {schema['maximum']}"
        if "maximum" in schema
        else f"{schema['minimum']} or more"
    )
