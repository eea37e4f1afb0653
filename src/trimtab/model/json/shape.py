"""Does plain JSON data have the shape of a wire type? Every misfit is named, not only the first.

Decoding stops at the first wrong value; someone who fixes a manifest wants them all. The walk follows the types
themselves, so there is no second description of an object to keep in step.
"""

import difflib
import sys
from collections.abc import Callable, Iterator
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
"""Integers that the API declares with 64 bits; all the others have 32."""

_ROOT = FieldPath()
_WHOLE = FieldPath(".")


def misfits(data: Any, kind: type[Any], path: FieldPath = _ROOT) -> list[FieldError]:
    """Return an error for each value that `kind` cannot hold; none means that decoding succeeds."""
    errors = list(_walk(data, _info(kind), path))
    if not errors:
        try:
            wire.convert(data, kind)
        except (wire.WireError, ValueError, OverflowError) as error:
            # What the walk lets pass and the decoder does not; the text names the field.
            errors.append(invalid(path if path.text else _WHOLE, "", str(error)))
    return errors


def unknown_fields(data: Any, kind: type[Any], path: FieldPath = _ROOT) -> Iterator[tuple[FieldPath, str]]:
    """Yield each field that `kind` does not have, with the known name it resembles or an empty text.

    An API server drops such fields, or refuses them when the client asks for strict validation.
    """
    return _unknown(data, _info(kind), path)


def describe(value: Any) -> str:
    """Name the JSON type of a value."""
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "a boolean",
        int: "an integer",
    }
    return "null" if value is None else names.get(type(value), "a number")


_INFOS: dict[Any, inspect.Type] = {}


def _info(kind: Any) -> inspect.Type:
    if kind not in _INFOS:
        _INFOS[kind] = inspect.type_info(kind)
    return _INFOS[kind]


def _walk(data: Any, info: inspect.Type, path: FieldPath, name: str = "") -> Iterator[FieldError]:
    if isinstance(info, inspect.UnionType):
        info = _present(info)
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
    elif type(info) in _SCALARS:
        fits, wanted = _SCALARS[type(info)]
        if not fits(data):
            yield wrong_type(path, data, wanted)


_SCALARS: dict[type[inspect.Type], tuple[Callable[[Any], bool], str]] = {
    inspect.StrType: (lambda data: isinstance(data, str), "text"),
    inspect.BoolType: (lambda data: isinstance(data, bool), "a boolean"),
}


def _present(info: inspect.UnionType) -> inspect.Type:
    """Return what an optional value is when it is there; absent ones never reach the walk."""
    return next(one for one in info.types if not isinstance(one, inspect.NoneType))


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
        return  # ten thousand labels are looked at in one go
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
        yield invalid(path, _shown(data), "must fit in a 64-bit floating-point number")


def _check_quantity(data: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(data, bool) or not isinstance(data, str | int | float):
        yield wrong_type(path, data, "a quantity such as 500m or 1Gi")
        return
    try:
        Quantity.parse(data if isinstance(data, str) else repr(data))
    except QuantityError as error:
        yield invalid(path, _shown(data), str(error))


def _check_time(data: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(data, str):
        yield wrong_type(path, data, "a time such as 2026-01-15T12:00:00Z")
        return
    try:
        parse_time(data)
    except (ValueError, OverflowError):
        yield invalid(path, _shown(data), "must be a time such as 2026-01-15T12:00:00Z")


def wrong_type(path: FieldPath, data: Any, wanted: str) -> FieldError:
    """Report a value of another JSON type than the one that is wanted."""
    return type_invalid(
        path if path.text else _WHOLE, _shown(data), f"must be {wanted}, not {describe(data)}"
    )


def _shown(data: Any) -> Any:
    """Return a value short enough for a message."""
    if isinstance(data, dict | list):
        return "{...}" if isinstance(data, dict) else "[...]"
    text = str(data)
    return data if len(text) <= 80 else f"{text[:77]}..."


def _unknown(data: Any, info: inspect.Type, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(info, inspect.UnionType):
        info = _present(info)
    if isinstance(info, inspect.StructType) and isinstance(data, dict):
        known = {field.encode_name: field.type for field in info.fields}
        for key, value in data.items():
            if key not in known:
                yield path.child(key), next(iter(difflib.get_close_matches(key, known, 1, 0.7)), "")
            else:
                yield from _unknown(value, known[key], path.child(key))
    elif isinstance(info, inspect.VarTupleType | inspect.ListType) and isinstance(data, list):
        for position, value in enumerate(data):
            yield from _unknown(value, info.item_type, path.index(position))
    elif isinstance(info, inspect.DictType) and isinstance(data, dict) and not _is_text(info):
        for key, value in data.items():
            yield from _unknown(value, info.value_type, path.key(key))
