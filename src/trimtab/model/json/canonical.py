"""Canonical form of plain JSON data, as an API server returns it.

Quantities are canonical, times in UTC, nulls absent, and empty fields present or absent as in the type's Go
declaration. Unknown fields follow the known ones and stay as they are.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from trimtab.model.json.shape import present_type, type_info
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_time, parse_time

Always = Mapping[type[Any], frozenset[str]]
"""Per struct, the fields that are written even when empty. Nested structs always are."""


def canonical(data: Mapping[str, Any], kind: type[Any], always: Always) -> dict[str, Any]:
    """Return `data`, which must have the shape of `kind` (`shape.misfits`), in canonical form."""
    info = type_info(kind)
    assert isinstance(info, inspect.StructType)
    return _struct(data, info, always)


def _struct(data: Mapping[str, Any], info: inspect.StructType, always: Always) -> dict[str, Any]:
    kept = always.get(info.cls, frozenset())
    out: dict[str, Any] = {}
    for field in info.fields:
        name = field.encode_name
        if data.get(name) is not None:
            value = _value(data[name], field.type, always)
            if value or name in kept or not _is_omitted_when_empty(field.type):
                out[name] = value
        elif isinstance(field.type, inspect.StructType):
            out[name] = _struct({}, field.type, always)
        elif name in kept and (zero := _ZEROS.get(type(field.type))) is not None:
            out[name] = zero
    known = {field.encode_name for field in info.fields}
    return out | {key: value for key, value in data.items() if key not in known}


def _is_omitted_when_empty(info: inspect.Type) -> bool:
    """Return whether `omitempty` applies, as it does except to pointers, structs and quantities."""
    return not isinstance(info, inspect.UnionType | inspect.StructType | inspect.CustomType)


def _value(data: Any, info: inspect.Type, always: Always) -> Any:
    info = present_type(info)
    if isinstance(info, inspect.StructType):
        return _struct(data, info, always)
    if isinstance(info, inspect.VarTupleType):
        return [_value({} if item is None else item, info.item_type, always) for item in data]
    if isinstance(info, inspect.CustomType) and info.cls is Quantity:
        return str(Quantity.parse(data if isinstance(data, str) else repr(data)))
    if isinstance(info, inspect.DateTimeType):
        return format_time(parse_time(data))
    return data


_ZEROS: dict[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.BoolType: False,
    inspect.CustomType: "0",
}
"""What Go writes for a field that was never set, except lists, whose `null` is left out."""
