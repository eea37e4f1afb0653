"""A list in pages, the next of which is under way while this one is taken in.

The server takes as long to make a page as we take to read it, so asking ahead nearly halves the time of the first lists.
Only one page is asked ahead, and its bytes wait in the socket: no more than one page of objects is ever held.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

from trimtab.cluster.codec import Page, decode_page, read_token
from trimtab.cluster.transport import Response

T = TypeVar("T")
Ask = Callable[[str], Coroutine[Any, Any, Response]]
"""Asks for the page that a continue token stands for; an empty one is the first."""


async def read_pages(act: str, kind: type[T], ask: Ask) -> AsyncGenerator[Page[T], None]:
    """Yield the pages of a list."""
    flight = asyncio.ensure_future(ask(""))
    try:
        while True:
            body = (await flight).body
            token = read_token(body)
            if token:
                flight = asyncio.ensure_future(ask(token))
                await asyncio.sleep(0)  # so that it leaves now, not when we next wait
            page = decode_page(act, body, kind)
            del body
            yield page
            if not page.continue_token:
                return
            if not token:
                flight = asyncio.ensure_future(ask(page.continue_token))
            del page  # the next one is not to be decoded beside it
    finally:
        _drop(flight)


def _drop(flight: asyncio.Task[Response]) -> None:
    """Forget an answer that nobody waits for any more, and its failure too."""
    flight.cancel()
    if flight.done() and not flight.cancelled():
        flight.exception()
