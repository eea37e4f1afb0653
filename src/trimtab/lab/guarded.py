"""A limit that uvicorn lacks: a client must finish its headers in time."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Seconds a client gets to send its headers, the connection's first ones included (slowloris).
HEADER_SECONDS = 10.0


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol that hangs up on clients that do not finish their headers in time."""

    _guard: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn itself
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._watch_headers()

    def on_message_begin(self) -> None:
        """Start to wait for the headers of a further request."""
        super().on_message_begin()
        self._watch_headers()

    def on_headers_complete(self) -> None:
        """Stop waiting."""
        self._forget()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._forget()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        self._forget()
        self._guard = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
