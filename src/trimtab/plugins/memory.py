"""The check of the memories that plug-ins return, which become part of annotations and checkpoints."""

from typing import Any

import msgspec

from trimtab.plugins.errors import WrongAnswerError


def check_memory(memory: Any, *, largest: int) -> Any:
    """Return a memory as plain JSON, or raise WrongAnswerError if it is none or has more bytes than `largest`."""
    if memory is None:
        return None
    try:
        text = msgspec.json.encode(memory)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise WrongAnswerError(f"a memory that is no JSON: {error}") from error
    if len(text) > largest:
        raise WrongAnswerError(f"a memory of {len(text)} bytes; {largest} are possible")
    return msgspec.json.decode(text)
