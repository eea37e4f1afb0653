"""Plain JSON data in the one spelling an API server gives back.

Quantities in canonical form, times in UTC, no nulls, empty fields left out or put in as the type's Go declaration
has it. Fields that the type does not know stay as they are, behind those it knows.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from trimtab.model.quantity import Quantity
from trimtab.model.times import format_time, parse_time

Always = Mapping[type[Any], frozenset[str]]
"""Per struct, the fields that are written even when empty; nested structs always are."""


def canonical(data: Mapping[str, Any], kind: type[Any], always: Always) -> dict[str, Any]:
    """Return `data` as the server would write it; it must have the shape of `kind` (see `shape.misfits`)."""
    return _struct(data, _info(kind), always)


def _info(kind: type[Any]) -> inspect.StructType:
    if kind not in _INFOS:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        _INFOS[kind] = info
    return _INFOS[kind]


_INFOS: dict[type[Any], inspect.StructType] = {}
"""What is known of each type; finding out takes longer than writing an object."""


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
    """Whether `omitempty` acts on it: not on pointers (optional values), structs and quantities."""
    return not isinstance(info, inspect.UnionType | inspect.StructType | inspect.CustomType)


def _value(data: Any, info: inspect.Type, always: Always) -> Any:
    if isinstance(info, inspect.UnionType):
        info = next(one for one in info.types if not isinstance(one, inspect.NoneType))
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
"""What Go writes for a field that was never set; a list is `null` there, which is left out here."""
