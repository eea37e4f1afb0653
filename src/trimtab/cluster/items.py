"""The items of a list, decoded while it arrives.

The usage of 10,000 pods is 4 MB of text, twice while its pieces are put together, and more than anything else a round
takes for a moment. Here only the text is held that has not been decoded yet (docs/decisions/0151-lists-while-they-arrive.md).
"""

from typing import Any, Generic, TypeVar

import msgspec

from trimtab.cluster.codec import list_type
from trimtab.cluster.errors import error_from_status, read_failure
from trimtab.model import wire

T = TypeVar("T")

SLICE = 64 * 1024
"""Bytes that are decoded at once: enough that a call costs nothing beside them."""

_BEGIN = b'"items":['
_BETWEEN = b'},{"metadata":{'
"""Where one item ends and the next begins. No string has it, for quotes inside one are written with a backslash."""

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


class Items(Generic[T]):
    """Takes a list in piece by piece; `finish` returns its items, or says why it is none."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._found: list[T] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._enough = SLICE
        self._has_begun = False
        self._is_sliced = True

    def feed(self, piece: bytes) -> None:
        """Take the next piece; it never raises, because what is wrong with a list is told at its end."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= self._enough and self._is_sliced:
            self._take_slice()

    def finish(self, act: str) -> list[T]:
        """Return all items; raise WireError if they cannot be read, or the failure that came in their place."""
        text = b"".join(self._pieces)
        if not self._has_begun and (failure := read_failure(text)):
            raise error_from_status(act, failure)
        rest = wire.decode(b"{" + _BEGIN + text if self._has_begun else text, list_type(self._kind))
        self._pieces.clear()
        self._found += rest.items or ()
        return self._found

    def _take_slice(self) -> None:
        """Decode the whole items that are there; a list that is written otherwise is decoded at its end."""
        text = b"".join(self._pieces)
        if not self._has_begun:
            _, begin, after = text.partition(_BEGIN)
            self._has_begun = self._is_sliced = bool(begin)
            text = after if begin else text
        end = text.rfind(_BETWEEN) if self._is_sliced else -1
        if end >= 0:
            try:
                self._found += _decoder(self._kind).decode(b"[" + text[: end + 1] + b"]")
                text = text[end + 2 :]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._is_sliced = False
        self._pieces, self._size = [text], len(text)
        self._enough = max(
            SLICE, 2 * len(text)
        )  # an item of many slices is not put together for each of them


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    if kind not in _DECODERS:
        _DECODERS[kind] = wire.decoder(list[kind])
    return _DECODERS[kind]
