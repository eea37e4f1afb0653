"""The check of the memories that plug-ins return, which become part of annotations and checkpoints."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from trimtab.plugins.errors import WrongAnswerError

LARGEST_INTEGER = 2**63 - 1
"""An API server keeps no larger one as it is."""


def check_memory(memory: Any, *, largest: int) -> Any:
    """Return a memory as plain JSON, or raise WrongAnswerError if it is none or has more bytes than `largest`."""
    if memory is None:
        return None
    try:
        plain = _plain(memory)
        text = msgspec.json.encode(plain)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        if isinstance(error, WrongAnswerError):
            raise
        raise WrongAnswerError(f"a memory that is no JSON: {error}") from error
    if len(text) > largest:
        raise WrongAnswerError(f"a memory of {len(text)} bytes; {largest} are possible")
    return plain


def _plain(value: Any) -> Any:
    """Return JSON of plain types. A memory must come back as it was returned, so nothing else is converted."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            number = int.__index__(value)
            if not -LARGEST_INTEGER <= number <= LARGEST_INTEGER:
                raise WrongAnswerError(f"a memory that is no JSON: it has a number beyond {LARGEST_INTEGER}")
            return number
        case float() if isfinite(value):
            return float.__float__(value)
        case float():
            raise WrongAnswerError(f"a memory that is no JSON: it has the number {float.__repr__(value)}")
        case Mapping():
            return {_key(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    raise WrongAnswerError(
        f"a memory that is no JSON: it has a value of type {type(value).__name__}; "
        "use dict, list, str, int, float, bool and None"
    )


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise WrongAnswerError(
            f"a memory that is no JSON: it has a key of type {type(key).__name__}, not str"
        )
    return str.__str__(key)
