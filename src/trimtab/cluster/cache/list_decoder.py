"""The items of a list, decoded while it arrives.

The usage of 10,000 pods is 4 MB of text, twice while its pieces are put together, and more than anything else a round
takes for a moment. Here only the text is held that has not been decoded yet (docs/decisions/0151-lists-while-they-arrive.md).
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.cluster.cache.codec import ListPage, decode_page, list_type, read_head
from trimtab.cluster.errors import error_from_status, read_failure
from trimtab.model.core.meta import ListMeta
from trimtab.model.json import wire

T = TypeVar("T")

SLICE = 64 * 1024
"""Bytes that are decoded at once: enough that a call costs nothing beside them."""

LONGEST_HEAD = 8192
"""Bytes before the first item at most; a continue token is a few hundred."""

_BEGIN = b'"items":['
_BETWEEN = b'},{"metadata":{'
"""Where one item ends and the next begins. No string has it, for quotes inside one are written with a backslash."""

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


class ListDecoder(Generic[T]):
    """Takes a list in piece by piece; `on_head` is told what stands before its items as soon as that is there."""

    def __init__(self, kind: type[T], on_head: Callable[[ListMeta], None] | None = None) -> None:
        self._kind = kind
        self._on_head = on_head
        self._head: ListMeta | None = None
        self._found: list[T] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._enough = SLICE
        self._is_sliced = True

    def feed(self, piece: bytes) -> None:
        """Take the next piece; it never raises, because what is wrong with a list is told at its end."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._is_sliced and self._head is None:
            self._begin()
        if self._size >= self._enough and self._is_sliced:
            self._take_slice()

    def finish(self, act: str) -> list[T]:
        """Return all items; raise WireError if one cannot be read, or the failure that came in their place."""
        rest = wire.decode(self._rest(act), list_type(self._kind))
        return self._all(rest.items or ())

    def finish_page(self, act: str) -> ListPage[T]:
        """Return the page that this was; items that cannot be read are named in it."""
        head = self._head or ListMeta()
        rest = decode_page(act, self._rest(act), self._kind)
        return ListPage(
            self._all(rest.items),
            head.resource_version or rest.resource_version,
            head.continue_ or rest.continue_token,
            rest.unreadable,
        )

    def _all(self, last: Sequence[T]) -> list[T]:
        """Hand the items over; whoever still knows where they were taken in does not keep them."""
        found, self._found = self._found, []
        found += last
        return found

    def _rest(self, act: str) -> bytes:
        """Return what is not decoded yet, as a list."""
        text = b"".join(self._pieces)
        self._pieces.clear()
        if self._head is not None:
            return b"{" + _BEGIN + text
        if failure := read_failure(text):
            raise error_from_status(act, failure)
        return text

    def _begin(self) -> None:
        """Read what stands before the items; a list that is written otherwise is decoded at its end."""
        text = b"".join(self._pieces)
        at = text.find(_BEGIN, 0, LONGEST_HEAD)
        if at >= 0:
            self._head = read_head(text[:at])
            self._is_sliced = self._head is not None
        elif len(text) >= LONGEST_HEAD:
            self._is_sliced = False
        if self._head is None:
            return
        self._hold(text[at + len(_BEGIN) :])
        if self._on_head is not None:
            self._on_head(self._head)

    def _take_slice(self) -> None:
        """Decode the whole items that are there."""
        text = b"".join(self._pieces)
        end = text.rfind(_BETWEEN)
        if end >= 0:
            try:
                self._found += _decoder(self._kind).decode(b"[" + text[: end + 1] + b"]")
                text = text[end + 2 :]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._is_sliced = False
        self._hold(text)

    def _hold(self, text: bytes) -> None:
        self._pieces, self._size = [text], len(text)
        self._enough = max(SLICE, 2 * len(text)) if len(text) >= SLICE else SLICE


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    if kind not in _DECODERS:
        _DECODERS[kind] = wire.decoder(list[kind])
    return _DECODERS[kind]
