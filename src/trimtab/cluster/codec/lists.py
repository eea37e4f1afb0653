"""Reads lists: decodes their items while they arrive, and requests the next page meanwhile.

The usage of 10,000 pods is 4 MB of text, twice that while its chunks are joined, and the largest allocation of a sync.
`ListDecoder` holds only text that is not decoded yet. An informer's decoder reduces the objects of each slice at once,
so that whole objects exist for a slice and not for a page. See
docs/decisions/cache-only-needed-pod-fields-and-stream-lists.md.

The server takes as long to build a page as the client takes to read it, so that prefetching nearly halves the time of
the first lists. The continue token is at the beginning of a page. At most one page is prefetched, so that at most two
are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.cluster.codec.objects import ListPage, decode_page, list_type, read_head
from trimtab.cluster.errors import error_from_status, read_failure
from trimtab.cluster.transport import Response
from trimtab.model.core.meta import ListMeta
from trimtab.model.json import wire

T = TypeVar("T")

SLICE = 64 * 1024
"""Bytes that are decoded at once, enough to make the cost of a call negligible."""

LONGEST_HEAD = 8192
"""Maximum bytes before the first item. A continue token has a few hundred."""

_BEGIN = b'"items":['
_BETWEEN = b'},{"metadata":{'
"""The separator of two items. A string cannot contain it, because its quotes are escaped."""

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


Reduce = Callable[[Any], Any]
"""Returns what is kept of a decoded object, or None."""


class ListDecoder(Generic[T]):
    """Decodes a list chunk by chunk. Calls `on_head` with the list's metadata as soon as it has arrived."""

    def __init__(
        self,
        kind: type[T],
        on_head: Callable[[ListMeta], None] | None = None,
        reduce: Reduce | None = None,
    ) -> None:
        self._kind = kind
        self._on_head = on_head
        self._reduce = reduce
        self._head: ListMeta | None = None
        self._found: list[T] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._received = 0
        self._enough = SLICE
        self._is_sliced = True

    def feed(self, piece: bytes) -> None:
        """Add a chunk. Never raises, because errors are reported at the end."""
        self._pieces.append(piece)
        self._size += len(piece)
        self._received += len(piece)
        if self._is_sliced and self._head is None:
            self._begin()
        if self._size >= self._enough and self._is_sliced:
            self._take_slice()

    def finish(self, act: str) -> list[T]:
        """Return all items. Raise WireError if an item is invalid or the response is a failure or no list."""
        text = self._rest(act)
        rest = wire.decode(text, list_type(self._kind))
        require_items(text)
        return self._all(rest.items or ())

    def finish_page(self, act: str) -> ListPage[T]:
        """Return the page. Invalid items are listed in it."""
        head = self._head or ListMeta()
        rest = decode_page(act, self._rest(act), self._kind)
        return ListPage(
            self._all(rest.items),
            head.resource_version or rest.resource_version,
            head.continue_ or rest.continue_token,
            rest.unreadable,
            self._received,
        )

    def _all(self, last: Sequence[T]) -> list[T]:
        """Return the items and drop our reference to them."""
        self._keep(last)
        found, self._found = self._found, []
        return found

    def _keep(self, items: Sequence[T]) -> None:
        if self._reduce is None:
            self._found += items
        else:
            self._found += [kept for kept in map(self._reduce, items) if kept is not None]

    def _rest(self, act: str) -> bytes:
        """Return the remaining text as a list."""
        text = b"".join(self._pieces)
        self._pieces.clear()
        if self._head is not None:
            return b"{" + _BEGIN + text
        if failure := read_failure(text):
            raise error_from_status(act, failure)
        return text

    def _begin(self) -> None:
        """Read the text before the items. A list of another layout is decoded at its end."""
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
        """Decode the complete items that have arrived."""
        text = b"".join(self._pieces)
        end = text.rfind(_BETWEEN)
        if end >= 0:
            try:
                items = _decoder(self._kind).decode(b"[" + text[: end + 1] + b"]")
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._is_sliced = False
            else:
                self._keep(items)
                text = text[end + 2 :]
        self._hold(text)

    def _hold(self, text: bytes) -> None:
        self._pieces, self._size = [text], len(text)
        self._enough = max(SLICE, 2 * len(text)) if len(text) >= SLICE else SLICE


def require_items(text: bytes) -> None:
    """Raise WireError if a list has no member `items`. Decoding takes any other object for an empty list."""
    if b'"items"' not in text:
        raise wire.WireError("the answer is not a list: it has no items")


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    if kind not in _DECODERS:
        _DECODERS[kind] = wire.decoder(list[kind])
    return _DECODERS[kind]


Ask = Callable[[str, Callable[[bytes], None]], Coroutine[Any, Any, Response]]
"""Requests the page of a continue token. The empty token is the first page."""


async def read_pages(
    act: str, kind: type[T], ask: Ask, reduce: Reduce | None = None
) -> AsyncGenerator[ListPage[T], None]:
    """Yield the pages of a list, with what `reduce` keeps of their objects."""
    flight: _PageFetch[T] | None = _PageFetch(kind, ask, "", reduce)
    try:
        while flight is not None:
            page = await flight.land(act)
            flight = flight.next
            yield page
            del page  # the next one is not to wait beside it
    finally:
        if flight is not None:
            flight.drop()


class _PageFetch(Generic[T]):
    """A requested page, and the request of the next page once its token is known."""

    def __init__(self, kind: type[T], ask: Ask, token: str, reduce: Reduce | None) -> None:
        self.next: _PageFetch[T] | None = None
        self._kind = kind
        self._ask = ask
        self._reduce = reduce
        self._items = ListDecoder(kind, self._read_head, reduce)
        self._token = ""
        self._is_waited_for = False
        self._answer = asyncio.ensure_future(ask(token, self._items.feed))

    async def land(self, act: str) -> ListPage[T]:
        """Return the page. The next page may be requested from now on."""
        self._is_waited_for = True
        self._look_ahead()
        answer = await self._answer
        if answer.body:
            self._items.feed(answer.body)  # from a transport that returns it whole
            await asyncio.sleep(0)  # so that the next request leaves before this page is taken in
        page = self._items.finish_page(act)
        del self._items  # breaks a reference cycle
        self._token = page.continue_token
        self._look_ahead()
        return page

    def drop(self) -> None:
        """Cancel the remaining requests and ignore their failures."""
        self._answer.cancel()
        if self._answer.done() and not self._answer.cancelled():
            self._answer.exception()
        if self.next is not None:
            self.next.drop()

    def _read_head(self, head: ListMeta) -> None:
        self._token = head.continue_
        self._look_ahead()

    def _look_ahead(self) -> None:
        if self._is_waited_for and self._token and self.next is None:
            self.next = _PageFetch(self._kind, self._ask, self._token, self._reduce)
