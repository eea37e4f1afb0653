"""The checks of what all kinds of plug-ins return: a reason, and a memory.

Reasons become part of conditions and pages, memories of a status or a checkpoint.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any
from unicodedata import category

import msgspec

from trimtab.plugins.errors import WrongAnswerError

LONGEST_REASON = 200
"""Characters of a reason that are kept."""
LARGEST_INTEGER = 2**63 - 1
"""An API server keeps no larger one as it is."""


def check_reason(reason: Any, *, missing: str) -> str:
    """Return a reason as one line, or raise WrongAnswerError, with `missing` if there is none."""
    text = " ".join(str.split(reason)) if isinstance(reason, str) else ""
    if not text:
        raise WrongAnswerError(missing)
    for character in "" if text.isprintable() else text:
        if category(character) in {"Cc", "Cs"}:
            raise WrongAnswerError(
                f"a reason with the character U+{ord(character):04X}, which no JSON or terminal can show"
            )
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"


def check_memory(memory: Any, *, largest: int) -> Any:
    """Return a memory as plain JSON, or raise WrongAnswerError if it is none or has more bytes than `largest`."""
    if memory is None:
        return None
    try:
        plain = _plain(memory)
        text = msgspec.json.encode(plain)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
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
                raise ValueError(f"it has a number beyond {LARGEST_INTEGER}")
            return number
        case float():
            if not isfinite(value):
                raise ValueError(f"it has the number {float.__repr__(value)}")
            return float.__float__(value)
        case Mapping():
            if odd := [key for key in value if not isinstance(key, str)]:
                raise ValueError(f"it has a key of type {type(odd[0]).__name__}, not str")
            return {str.__str__(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    raise ValueError(
        f"it has a value of type {type(value).__name__}; use dict, list, str, int, float, bool and None"
    )
