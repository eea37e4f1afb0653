"""Check plain JSON data against the shape of a wire type, and report every misfit.

Decoding stops at the first wrong value, but the author of a manifest wants all of them. The walk follows the types
themselves, so that no second description of an object has to be kept in step.
"""

import difflib
import sys
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from trimtab.model.field_errors import FieldError, FieldPath, invalid, type_invalid
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.times import parse_time

INT64_FIELDS = frozenset(
    {
        "generation",
        "observedGeneration",
        "remainingItemCount",
        "memoryAggregationIntervalCount",
        "totalSamplesCount",
    }
)
"""Integers that the API declares with 64 bits; all others have 32."""

_JSON_TYPES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "an integer",
}
_SCALARS: dict[type[inspect.Type], type] = {inspect.StrType: str, inspect.BoolType: bool}

_TYPE_INFOS: dict[Any, inspect.Type] = {}

_ROOT = FieldPath()
_WHOLE = FieldPath(".")


def misfits(data: Any, kind: type[Any], path: FieldPath = _ROOT) -> list[FieldError]:
    """Return an error for each value that `kind` cannot hold. Without errors, decoding succeeds."""
    errors = list(_walk(data, type_info(kind), path))
    if not errors:
        try:
            wire.convert(data, kind)
        except (wire.WireError, ValueError, OverflowError) as error:
            # The walk accepts it and the decoder does not; its text names the field.
            errors.append(invalid(path if path.text else _WHOLE, "", str(error)))
    return errors


def unknown_fields(data: Any, kind: type[Any], path: FieldPath = _ROOT) -> Iterator[tuple[FieldPath, str]]:
    """Yield each field that `kind` does not have, with the known name that it resembles, if any.

    An API server drops such fields, or rejects them when the client asks for strict validation.
    """
    return _unknown(data, type_info(kind), path)


def describe(value: Any) -> str:
    """Return the name of a value's JSON type."""
    return "null" if value is None else _JSON_TYPES.get(type(value), "a number")


def wrong_type(path: FieldPath, data: Any, wanted: str) -> FieldError:
    """Report a value of another JSON type than the wanted one."""
    return type_invalid(
        path if path.text else _WHOLE, _shortened(data), f"must be {wanted}, not {describe(data)}"
    )


def type_info(kind: Any) -> inspect.Type:
    """Return msgspec's description of a type, cached because it takes longer than a walk over an object."""
    if kind not in _TYPE_INFOS:
        _TYPE_INFOS[kind] = inspect.type_info(kind)
    return _TYPE_INFOS[kind]


def present_type(info: inspect.Type) -> inspect.Type:
    """Return the type of an optional value when it is present, or the type itself."""
    if not isinstance(info, inspect.UnionType):
        return info
    return next(member for member in info.types if not isinstance(member, inspect.NoneType))


def _walk(data: Any, info: inspect.Type, path: FieldPath, name: str = "") -> Iterator[FieldError]:
    info = present_type(info)
    if isinstance(info, inspect.StructType):
        yield from _walk_struct(data, info, path)
    elif isinstance(info, inspect.DictType):
        yield from _walk_map(data, info, path)
    elif isinstance(info, inspect.VarTupleType | inspect.ListType):
        yield from _walk_list(data, info, path, name)
    elif isinstance(info, inspect.IntType):
        yield from _check_integer(data, path, name)
    elif isinstance(info, inspect.FloatType):
        yield from _check_number(data, path)
    elif isinstance(info, inspect.CustomType):
        yield from _check_quantity(data, path)
    elif isinstance(info, inspect.DateTimeType):
        yield from _check_time(data, path)
    elif type(info) in _SCALARS and not isinstance(data, _SCALARS[type(info)]):
        yield wrong_type(path, data, _JSON_TYPES[_SCALARS[type(info)]])


def _walk_struct(data: Any, info: inspect.StructType, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(data, dict):
        yield wrong_type(path, data, "an object")
        return
    for field in info.fields:
        value = data.get(field.encode_name)
        if value is not None:
            yield from _walk(value, field.type, path.child(field.encode_name), field.encode_name)


def _walk_map(data: Any, info: inspect.DictType, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(data, dict):
        yield wrong_type(path, data, "an object")
        return
    if _is_text(info) and all(type(value) is str for value in data.values()):
        return  # a fast path for thousands of labels
    for key, value in data.items():
        if isinstance(info.key_type, inspect.IntType) and not key.isdecimal():
            yield invalid(path.key(key), key, "the key must be a whole number")
        if value is not None:
            yield from _walk(value, info.value_type, path.key(key))


def _is_text(info: inspect.DictType) -> bool:
    return isinstance(info.key_type, inspect.StrType) and isinstance(info.value_type, inspect.StrType)


def _walk_list(
    data: Any, info: inspect.VarTupleType | inspect.ListType, path: FieldPath, name: str
) -> Iterator[FieldError]:
    if not isinstance(data, list):
        yield wrong_type(path, data, "a list")
        return
    for position, value in enumerate(data):
        yield from _walk(value, info.item_type, path.index(position), name)


def _check_integer(data: Any, path: FieldPath, name: str) -> Iterator[FieldError]:
    bits = 64 if name in INT64_FIELDS else 32
    if isinstance(data, bool) or not isinstance(data, int):
        yield wrong_type(path, data, "an integer")
    elif not -(2 ** (bits - 1)) <= data < 2 ** (bits - 1):
        yield invalid(path, data, f"must fit in a {bits}-bit integer")


def _check_number(data: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(data, bool) or not isinstance(data, int | float):
        yield wrong_type(path, data, "a number")
    elif not -sys.float_info.max <= data <= sys.float_info.max:
        yield invalid(path, _shortened(data), "must fit in a 64-bit floating-point number")


def _check_quantity(data: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(data, bool) or not isinstance(data, str | int | float):
        yield wrong_type(path, data, "a quantity such as 500m or 1Gi")
        return
    try:
        Quantity.parse(data if isinstance(data, str) else repr(data))
    except QuantityError as error:
        yield invalid(path, _shortened(data), str(error))


def _check_time(data: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(data, str):
        yield wrong_type(path, data, "a time such as 2026-01-15T12:00:00Z")
        return
    try:
        parse_time(data)
    except (ValueError, OverflowError):
        yield invalid(path, _shortened(data), "must be a time such as 2026-01-15T12:00:00Z")


def _shortened(data: Any) -> Any:
    if isinstance(data, dict | list):
        return "{...}" if isinstance(data, dict) else "[...]"
    text = str(data)
    return data if len(text) <= 80 else f"{text[:77]}..."


def _unknown(data: Any, info: inspect.Type, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    info = present_type(info)
    if isinstance(info, inspect.StructType) and isinstance(data, dict):
        yield from _unknown_members(data, info, path)
    elif isinstance(info, inspect.VarTupleType | inspect.ListType) and isinstance(data, list):
        for position, value in enumerate(data):
            yield from _unknown(value, info.item_type, path.index(position))
    elif isinstance(info, inspect.DictType) and isinstance(data, dict) and not _is_text(info):
        for key, value in data.items():
            yield from _unknown(value, info.value_type, path.key(key))


def _unknown_members(
    data: dict[str, Any], info: inspect.StructType, path: FieldPath
) -> Iterator[tuple[FieldPath, str]]:
    known = {field.encode_name: field.type for field in info.fields}
    for key, value in data.items():
        if key not in known:
            yield path.child(key), next(iter(difflib.get_close_matches(key, known, 1, 0.7)), "")
        else:
            yield from _unknown(value, known[key], path.child(key))
