"""Structural schemas of custom objects: validation, in the API server's words, and defaults."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from trimtab.model.field_errors import ErrorType, FieldError
from trimtab_lab.apiserver.errors import duplicate_value, invalid_value, required, unsupported_value
from trimtab_lab.schemas.shapes import is_time
from trimtab_lab.storage.codec import JsonObject, copy_of, encode

#: Errors reported at most, so that a response stays small.
MOST = 100
_INT64 = 2**63


def validate(value: Any, schema: JsonObject, path: str = "") -> list[FieldError]:
    return list(islice(_check(value, schema, path), MOST))


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a schema's pattern. Go's syntax is close enough to Python's for the patterns in use."""
    return re.compile(text.replace(r"\z", r"\Z"))


def type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _check(value: Any, schema: JsonObject, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    wanted, actual = schema.get("type"), type_name(value)
    if schema.get("x-kubernetes-int-or-string") and actual not in ("integer", "string"):
        yield _wrong_type(path, "integer,string", actual)
        return
    is_wrong = bool(wanted) and not _fits(str(wanted), value, actual)
    if is_wrong:
        yield _wrong_type(path, str(wanted), actual)
    yield from _check_enum(value, schema, path)
    if not is_wrong:
        yield from _CONTENTS[actual](value, schema, path)
        yield from _check_combined(value, schema, path)


def _fits(wanted: str, value: Any, actual: str) -> bool:
    if wanted == "number":
        return actual in ("number", "integer")
    if wanted == "integer":
        is_whole = actual == "integer" or (actual == "number" and float(value).is_integer())
        return is_whole and -_INT64 <= value < _INT64
    return wanted == actual


def _wrong_type(path: str, wanted: str, actual: str) -> FieldError:
    where = f"{path} in body" if path else "in body"
    return FieldError(ErrorType.TYPE_INVALID, path, actual, f'{where} must be of type {wanted}: "{actual}"')


def _check_enum(value: Any, schema: JsonObject, path: str) -> Iterator[FieldError]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = [item if isinstance(item, str) else encode(item).decode() for item in schema["enum"]]
        yield unsupported_value(path, value, allowed)


def _check_object(value: JsonObject, schema: JsonObject, path: str) -> Iterator[FieldError]:
    for name in schema.get("required", ()):
        if name not in value:
            yield required(_join(path, name))
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, child in value.items():
        if name in properties:
            yield from _check(child, properties[name], _join(path, name))
        elif isinstance(additional, dict):
            yield from _check(child, additional, _join(path, name))
    yield from _check_count(len(value), schema, path, "Properties")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_array(value: list[Any], schema: JsonObject, path: str) -> Iterator[FieldError]:
    items = schema.get("items") or {}
    for index, child in enumerate(value):
        yield from _check(child, items, f"{path}[{index}]")
    yield from _check_count(len(value), schema, path, "Items")
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        yield from _check_unique(value, schema, path)


def _check_unique(value: list[Any], schema: JsonObject, path: str) -> Iterator[FieldError]:
    is_map, names = schema["x-kubernetes-list-type"] == "map", schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[bytes] = set()
    for index, child in enumerate(value):
        key: Any = child
        if is_map and isinstance(child, dict):
            key = {name: child[name] for name in names if name in child}
        mark = encode(key)
        if mark in seen:
            yield duplicate_value(f"{path}[{index}]", key)
        seen.add(mark)


def _check_count(count: int, schema: JsonObject, path: str, what: str) -> Iterator[FieldError]:
    low, high = schema.get(f"min{what}", 0), schema.get(f"max{what}")
    if count < low:
        yield invalid_value(path, count, f"{path} in body should have at least {low} {what.lower()}")
    if high is not None and count > high:
        unit = "item" if high == 1 else "items"
        yield FieldError(ErrorType.TOO_MANY, path, count, f"must have at most {high} {unit}")


def _check_string(value: str, schema: JsonObject, path: str) -> Iterator[FieldError]:
    shortest = schema.get("minLength", 0)
    if len(value) < shortest:
        yield invalid_value(path, value, f"{path} in body should be at least {shortest} chars long")
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        unit = "byte" if schema["maxLength"] == 1 else "bytes"
        yield FieldError(ErrorType.TOO_LONG, path, "", f"may not be more than {schema['maxLength']} {unit}")
    pattern = schema.get("pattern")
    if pattern and not compile_pattern(pattern).search(value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    if schema.get("format") == "date-time" and not is_time(value):
        detail = f"{path} in body must be of type date-time: {encode(value).decode()}"
        yield FieldError(ErrorType.TYPE_INVALID, path, value, detail)


def _check_number(value: float, schema: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _check_bounds(value, schema, path)
    step = schema.get("multipleOf")
    if step and value % step:
        yield invalid_value(path, value, f"{path} in body should be a multiple of {_plain(step)}")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""))
    if bits and not -(2**bits) <= value < 2**bits:
        detail = f"{path} in body must be of type {schema['format']}: {_plain(value)}"
        yield invalid_value(path, value, detail)


def _check_bounds(value: float, schema: JsonObject, path: str) -> Iterator[FieldError]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        how = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {how} {_plain(low)}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        how = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {how} {_plain(high)}")


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _check_combined(value: Any, schema: JsonObject, path: str) -> Iterator[FieldError]:
    where = f'"{path}"'
    for child in schema.get("allOf") or ():
        yield from _check(value, child, path)
    if schema.get("anyOf") and not any(_is_valid(value, child, path) for child in schema["anyOf"]):
        yield invalid_value(path, value, f"{where} must validate at least one schema (anyOf)")
    if schema.get("oneOf"):
        good = sum(_is_valid(value, child, path) for child in schema["oneOf"])
        if good != 1:
            count = "none valid" if good == 0 else f"{good} valid alternatives"
            detail = f"{where} must validate one and only one schema (oneOf). Found {count}"
            yield invalid_value(path, value, detail)
    if "not" in schema and _is_valid(value, schema["not"], path):
        yield invalid_value(path, value, f"{where} must not validate the schema (not)")


def _is_valid(value: Any, schema: JsonObject, path: str) -> bool:
    return next(_check(value, schema, path), None) is None


def _check_nothing(_value: Any, _schema: JsonObject, _path: str) -> Iterator[FieldError]:
    return iter(())


#: What is checked inside a value, by its JSON type.
_CONTENTS: dict[str, Callable[[Any, JsonObject, str], Iterator[FieldError]]] = {
    "object": _check_object,
    "array": _check_array,
    "string": _check_string,
    "integer": _check_number,
    "number": _check_number,
    "boolean": _check_nothing,
    "null": _check_nothing,
}


def apply_defaults(value: Any, schema: JsonObject) -> None:
    """Fill in defaults in place, and drop nulls of fields that are not nullable."""
    if isinstance(value, list):
        for item in value:
            apply_defaults(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, child in properties.items():
        if "default" in child and (name not in value or _is_void(value[name], child)):
            value[name] = copy_of(child["default"])
    for name in list(value):
        child = properties.get(name, others)
        if isinstance(child, dict):
            if _is_void(value[name], child):
                del value[name]
            else:
                apply_defaults(value[name], child)


def _is_void(value: Any, schema: JsonObject) -> bool:
    return value is None and not schema.get("nullable")
