"""Decode API JSON into typed values, and encode them.

A `Wire` struct has only the fields that Trimtab reads; decoding skips all others, which makes it cheap. `null` means
absent in Kubernetes: the fast path decodes the text as it is, and only an object that fails is cleaned of nulls and
decoded again.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar, dataclass_transform

import msgspec

from trimtab.model.quantity import Quantity, QuantityError

Json = dict[str, Any]
"""A JSON object as plain data."""

T = TypeVar("T")

_NULL = b'":null'


# For type checkers: subclasses are frozen even if they do not declare it.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """An API value: immutable, camelCase in JSON, with defaults for absent fields.

    `gc=False` keeps 100,000 cached pods out of the garbage collector's walk; wire values never form cycles.
    """


class WireError(ValueError):
    """The JSON does not have the shape of the type. The message names the field."""


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON text into `kind`."""
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_read)
    except msgspec.ValidationError:
        pass  # without a name: an error that its own frame refers to is garbage that only the collector frees
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from error
    try:
        return _decode_cleaned(data, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        raise WireError(_message(data, kind)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> WireError:
    if isinstance(error, RecursionError):
        return WireError("not valid JSON: it is nested too deep to be read")
    return WireError(f"not valid JSON: {error}")


def _decode_cleaned(data: bytes | str, kind: type[T]) -> T:
    with suppress(msgspec.ValidationError):
        text = cut_nulls(data.encode() if isinstance(data, str) else data)
        return msgspec.json.decode(text, type=kind, dec_hook=_read)
    cleaned = without_nulls(msgspec.json.decode(data))
    try:
        return msgspec.convert(cleaned, kind, dec_hook=_read, str_keys=True)
    except msgspec.ValidationError:
        # A type that leaves parts unread (`msgspec.Raw`) can be read from text only.
        return msgspec.json.decode(msgspec.json.encode(cleaned), type=kind, dec_hook=_read)


def _message(data: bytes | str, kind: type[Any]) -> str:
    """Return the error about the text as it was sent."""
    try:
        msgspec.json.decode(data, type=kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        return _where(error)
    raise AssertionError("decoded at the second try")


def convert(data: Any, kind: type[T]) -> T:
    """Convert plain JSON data (dicts, lists, strings, numbers) into `kind`."""
    try:
        return msgspec.convert(without_nulls(data), kind, dec_hook=_read, str_keys=True)
    except msgspec.ValidationError as error:
        raise WireError(_where(error)) from error


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return a reusable decoder, for paths that decode thousands of objects of one type."""
    return msgspec.json.Decoder(kind, dec_hook=_read)


def encode(value: Any) -> bytes:
    """Encode a struct, or plain data that holds structs, as JSON."""
    return msgspec.json.encode(value, enc_hook=_write)


def packer() -> msgspec.msgpack.Encoder:
    """Return a compact encoder, for values that never leave the memory of the process."""
    return msgspec.msgpack.Encoder(enc_hook=_write)


def unpacker(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    """Return the decoder of a `packer`'s bytes."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_read)


def to_builtins(value: Any) -> Any:
    """Convert a struct into plain JSON data."""
    return msgspec.to_builtins(value, enc_hook=_write, str_keys=True)


def without_members(data: Mapping[str, Any], names: Collection[str]) -> Json:
    """Return a JSON object without the members of these names."""
    return {name: value for name, value in data.items() if name not in names}


def without_nulls(data: Any) -> Any:
    """Drop every `null` member of every object, but keep the nulls of lists."""
    if isinstance(data, dict):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [without_nulls(value) for value in data]
    return data


def cut_nulls(text: bytes) -> bytes:
    """Cut `null` members out of JSON text without decoding it, except those with spaces or escapes.

    Inside a string every quote has a backslash before it, so a plain one before `:null` closes the name of a member.
    """
    kept: list[bytes] = []
    end = 0
    at = text.find(_NULL)
    while at >= 0:
        start, after = text.rfind(b'"', 0, at), at + len(_NULL)
        follows = text[after : after + 1]
        if text[at - 1 : at] != b"\\" and text[start - 1 : start] in {b"{", b","} and follows in {b",", b"}"}:
            kept.append(text[end:start])
            if follows == b"}":
                _drop_comma(kept)
            end = after + (follows == b",")
        at = text.find(_NULL, after)
    return b"".join([*kept, text[end:]])


def _drop_comma(kept: list[bytes]) -> None:
    """Drop the comma before an object's last member, which is cut."""
    while kept and not kept[-1]:
        kept.pop()
    if kept and kept[-1].endswith(b","):
        kept[-1] = kept[-1][:-1]


def _read(kind: type[Any], value: Any) -> Any:
    if kind is not Quantity:
        raise NotImplementedError(f"no way to read a {kind.__name__}")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"a quantity is a string or a number, not {type(value).__name__}")
    try:
        # A JSON number arrives decoded; its shortest text is the quantity that was meant.
        return Quantity.parse(value if isinstance(value, str) else repr(value))
    except QuantityError as error:
        raise ValueError(str(error)) from error


def _write(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"no way to write a {type(value).__name__}")


def _where(error: msgspec.ValidationError) -> str:
    """Turn msgspec's ``Expected `int`, got `str` - at `$.spec.x``` into ``spec.x: expected ...``."""
    text, _, path = str(error).partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    text = text[:1].lower() + text[1:]
    return f"{path}: {text}" if path else text
