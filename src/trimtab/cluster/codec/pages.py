"""Reads a list in pages and requests the next page while the current one arrives.

The server takes as long to build a page as the client takes to read it, so that prefetching nearly halves the time of
the first lists. The continue token is at the beginning of a page. At most one page is prefetched, so that at most two
are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from trimtab.cluster.codec.list_decoder import ListDecoder, Reduce
from trimtab.cluster.codec.objects import ListPage
from trimtab.cluster.transport.transport import Response
from trimtab.model.core.meta import ListMeta

T = TypeVar("T")
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
