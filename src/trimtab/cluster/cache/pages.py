"""A list in pages, the next of which is made while this one arrives.

The server takes as long to make a page as we take to read it, so asking ahead nearly halves the time of the first lists.
The continue token stands at the beginning of a page, so the next can be asked for before the rest of this one is there;
one page ahead and no more, so that no more than two are ever held.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache.codec import ListPage
from trimtab.cluster.cache.list_decoder import ListDecoder
from trimtab.cluster.transport.transport import Response
from trimtab.model.core.meta import ListMeta

T = TypeVar("T")
Ask = Callable[[str, Callable[[bytes], None]], Coroutine[Any, Any, Response]]
"""Asks for the page that a continue token stands for (an empty one is the first), to be taken in while it arrives."""


async def read_pages(act: str, kind: type[T], ask: Ask) -> AsyncGenerator[ListPage[T], None]:
    """Yield the pages of a list."""
    flight: _PageFetch[T] | None = _PageFetch(kind, ask, "")
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
    """A page that was asked for, and the one after it from the moment that its token is known and its turn has come."""

    def __init__(self, kind: type[T], ask: Ask, token: str) -> None:
        self.next: _PageFetch[T] | None = None
        self._kind = kind
        self._ask = ask
        self._items = ListDecoder(kind, self._read_head)
        self._token = ""
        self._is_waited_for = False
        self._answer = asyncio.ensure_future(ask(token, self._items.feed))

    async def land(self, act: str) -> ListPage[T]:
        """Return the page; from now on the one after it may be asked for."""
        self._is_waited_for = True
        self._look_ahead()
        answer = await self._answer
        if answer.body:
            self._items.feed(answer.body)  # from a transport that returns it whole
            await asyncio.sleep(0)  # so that the next request leaves before this page is taken in
        page = self._items.finish_page(act)
        del self._items  # it knows us: a circle that only the collector of garbage would open
        self._token = page.continue_token
        self._look_ahead()
        return page

    def drop(self) -> None:
        """Forget answers that nobody waits for any more, and their failures too."""
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
            self.next = _PageFetch(self._kind, self._ask, self._token)
