"""Decodes protobuf bodies, in which Go clients send built-in kinds. Responses are JSON.

The field numbers are in `protobuf.json` (renewed by `tools/lab_protobuf.py`).
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from trimtab.model.status import bad_request
from trimtab.model.times import format_micro_time, format_time
from trimtab_lab.schemas.shapes import messages
from trimtab_lab.storage.codec import MAX_DEPTH, JsonObject, decode

MAGIC = b"k8s\x00"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: API group -> package of its messages, where it is not the group's first word.
PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac"}
ENVELOPE_TYPES = {"DeleteOptions": "meta.v1.DeleteOptions", "Status": "meta.v1.Status"}


def decode_protobuf(body: bytes) -> JsonObject:
    """Decode an enveloped object into JSON data."""
    if not body.startswith(MAGIC):
        raise bad_request("the body is not a Kubernetes protobuf object: its magic number is missing")
    try:
        envelope = dict(_pairs(body[len(MAGIC) :]))
        texts = {number: value.decode() for number, value in _pairs(envelope[1]) if isinstance(value, bytes)}
        api_version, kind = texts.get(1, ""), texts.get(2, "")
        obj = _message(envelope.get(2, b""), _message_name(api_version, kind), MAX_DEPTH)
    except (IndexError, KeyError, ValueError, struct.error, TypeError) as problem:
        raise bad_request(f"the protobuf body cannot be decoded: {problem!r}") from problem
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    name = ENVELOPE_TYPES.get(kind) or f"{PACKAGES.get(group, group.partition('.')[0])}.{version}.{kind}"
    if name not in messages():
        raise bad_request(f"{api_version} {kind} cannot be sent as protobuf to the lab; send JSON")
    return name


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def _pairs(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield each field's number and raw value: an int, or the bytes of anything longer."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size, at = _varint(data, at)
        if size is None or at + size > len(data):
            raise ValueError(f"field {number} has wire type {wire} and does not fit")
        yield number, data[at : at + size]
        at += size


def _message(data: bytes, name: str, depth: int) -> JsonObject:
    if depth == 0:
        raise ValueError("messages are nested too deeply")
    fields = messages().get(name, {})
    obj: JsonObject = {}
    for number, raw in _pairs(data):
        entry = fields.get(str(number))
        if entry is None or entry[1] == "skip":
            continue
        json_name, kind, kept = entry
        if kind.startswith("[]"):
            obj.setdefault(json_name, []).append(_value(raw, kind[2:], depth))
        elif kind.startswith("{}"):
            key, value = _map_entry(raw, kind[2:], depth)
            obj.setdefault(json_name, {})[key] = value
        else:
            value = _value(raw, kind, depth)
            if not json_name:
                obj.update(value or {})
            elif kept or value not in ("", 0, False, None, {}, []):
                obj[json_name] = value
    return obj


def _map_entry(raw: bytes, kind: str, depth: int) -> tuple[str, Any]:
    pair = dict(_pairs(raw))
    missing: Any = 0 if kind in ("int", "bool") else b""
    return pair.get(1, b"").decode(), _value(pair.get(2, missing), kind, depth)


def _value(raw: Any, kind: str, depth: int) -> Any:
    if kind.startswith("m:"):
        return _message(raw, kind[2:], depth - 1)
    if kind.startswith("items:"):
        return [_value(item, kind[6:], depth) for _, item in _pairs(raw)]
    return _SCALARS[kind](raw)


def _signed(raw: Any) -> int:
    value = int(raw)
    return value - (1 << 64) if value >= 1 << 63 else value


def _int_or_string(raw: bytes) -> int | str:
    parts = dict(_pairs(raw))
    return str(parts.get(3, b"").decode()) if parts.get(1) else _signed(parts.get(2, 0))


def _time(raw: bytes) -> str | None:
    parts = dict(_pairs(raw))
    if not parts:
        return None  # Go's zero time, which JSON writes as null
    moment = EPOCH + timedelta(
        seconds=_signed(parts.get(1, 0)), microseconds=_signed(parts.get(2, 0)) // 1000
    )
    return format_micro_time(moment) if moment.microsecond else format_time(moment)


def _duration(raw: bytes) -> str:
    return f"{_signed(dict(_pairs(raw)).get(1, 0)) / 1e9:g}s"


def _json(raw: bytes) -> Any:
    inner = dict(_pairs(raw)).get(1, b"")
    return decode(inner) if inner else None


_SCALARS: dict[str, Any] = {
    "string": lambda raw: raw.decode(),
    "int": _signed,
    "bool": bool,
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "double": lambda raw: struct.unpack("<d", raw)[0],
    "quantity": lambda raw: dict(_pairs(raw)).get(1, b"").decode(),
    "intstr": _int_or_string,
    "time": _time,
    "duration": _duration,
    "json": _json,
}
