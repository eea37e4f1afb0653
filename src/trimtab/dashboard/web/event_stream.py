"""Live updates as server-sent events: once a second at most, only what changed, only what the viewer may see."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from trimtab.dashboard.auth.access import Viewer
from trimtab.dashboard.web.http import Header, RefusedError, encoded, raw
from trimtab.dashboard.web.overview import Board
from trimtab.serving.asgi import Receive, Send

MOST_STREAMS: Final = 64
"""Open streams of all viewers together."""
QUIET_LOOKS: Final = 15
"""Looks without news after which a comment is sent, so that nobody between takes the stream for dead."""

HEADERS: Final[tuple[Header, ...]] = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
)


class Streams:
    """Every open stream."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._open = 0
        self._closing = asyncio.Event()

    @property
    def are_open(self) -> bool:
        """Return whether anybody looks."""
        return self._open > 0

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closing.set()

    async def _closed(self) -> None:
        await self._closing.wait()

    async def serve(
        self,
        viewer: Viewer,
        is_open: Callable[[], bool],
        channel: tuple[Receive, Send],
        security: tuple[Header, ...],
    ) -> None:
        """Send what changes until the viewer goes, the session ends or the program stops."""
        if self._open >= MOST_STREAMS:
            raise RefusedError(503, "too many pages are open; close some")
        if not self.are_open:
            self._board.look()  # nobody kept it while nobody looked
        receive, send = channel
        self._open += 1
        gone = asyncio.ensure_future(_gone(receive))
        closing = asyncio.ensure_future(self._closed())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": raw((*security, *HEADERS))})
            async for message in self._messages(viewer, is_open, (gone, closing)):
                await send({"type": "http.response.body", "body": message, "more_body": True})
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._open -= 1
            gone.cancel()
            closing.cancel()

    async def _messages(
        self, viewer: Viewer, is_open: Callable[[], bool], ends: tuple["asyncio.Future[None]", ...]
    ) -> AsyncIterator[bytes]:
        board, look, quiet = self._board, self._board.looks, 0
        yield b"retry: 2000\n\n"
        while is_open():
            waiting = asyncio.ensure_future(board.wait())
            await asyncio.wait((waiting, *ends), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if any(end.done() for end in ends):
                return
            changed, gone = board.since(look, await viewer.visible(board.namespaces()))
            notices = board.notices_since(look)
            look = board.looks
            quiet += 1
            if changed.horizontal or changed.vertical or gone or notices is not None:
                quiet = 0
                rows = {"horizontal": changed.horizontal, "vertical": changed.vertical, "gone": gone}
                yield _event(rows if notices is None else {**rows, "notices": notices})
            elif quiet >= QUIET_LOOKS:
                quiet = 0
                yield b": still here\n\n"


def _event(value: object) -> bytes:
    """Return one message; JSON has no raw line ends, so one data line holds it."""
    return b"event: rows\ndata: " + encoded(value) + b"\n\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
