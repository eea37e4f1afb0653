"""A single watch: its request, its deadline, its lines, and its failures.

A watch requests a timeout of 35 to 45 s and waits 10 s more. client-go requests 5 to 10 minutes, so that a stalled
connection leaves it blind for as long. Here it is detected within a minute, for one cheap request per resource and
40 s. The server sends a bookmark before each end, so that the version to resume from stays recent.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.codec.objects import WatchEvent, event_decoder
from trimtab.cluster.resource import Resource
from trimtab.cluster.transport import LineTooLongError, Request, lines
from trimtab.model.json import wire

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchPace:
    """The duration of watches, in seconds."""

    shortest: float = 35.0
    longest: float = 45.0
    grace: float = 10.0
    """How long to wait after the timeout for the server to end the watch."""
    short: float = 5.0
    """A watch that ends sooner, without an event, is a failure."""
    proof: float = 7.0
    """The duration of the first watch after a failure. Its end verifies that the cache is up to date."""


class WatchBrokenError(Exception):
    """A watch ended early. `list_again` says that resuming is not safe."""

    def __init__(self, message: str, *, list_again: bool = False) -> None:
        super().__init__(message)
        self.list_again = list_again


class Watch(Generic[T]):
    """Opens successive watches on a resource."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        selection: ListOptions,
        pace: WatchPace,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._on_open = on_open
        self._clock = client.clock
        self._resource = resource
        self.selection = selection
        self._pace = pace
        self._decode = event_decoder(resource.struct)
        self._act = f"watching {resource.describe(selection.namespace, None)}"
        self._progressed = False
        self._opened_at: float | None = None
        self._ended_at = 0.0
        self._heard_at = 0.0
        self._proof_was_silent = False
        self.ran_its_time = False

    def progressed(self) -> None:
        """Record that an event was new. A stream of old events does not count as a working watch."""
        self._progressed = True

    @property
    def worked(self) -> bool:
        """Return whether the last watch was open for a while, so that its end is no sign of a failing server."""
        return self._opened_at is not None and self._ended_at - self._opened_at >= self._pace.short

    async def events(self, version: str, *, is_doubtful: bool = False) -> AsyncGenerator[WatchEvent[T], None]:
        """Yield the events after `version` until the watch ends. Raise if it ended early.

        A watch on a cache that `is_doubtful` is short, because only its end verifies that no event was missed. If it
        ends before a slow server sent anything, the next watch is long, because the server may only lag.
        """
        asked = round(self._client.sender.random.uniform(self._pace.shortest, self._pace.longest))
        is_proof = is_doubtful and not self._proof_was_silent
        if is_proof:
            asked = min(asked, round(self._pace.proof))
        started = self._heard_at = self._clock.monotonic()
        self._progressed = self.ran_its_time = False
        self._opened_at = None
        try:
            async with asyncio.timeout(asked + self._pace.grace):
                async with aclosing(self._stream(self._request(version, asked))) as events:
                    async for event in events:
                        yield event
        except TimeoutError:
            self._proof_was_silent = is_proof
            self._check_silence()
        finally:
            self._ended_at = self._clock.monotonic()
        self._check_length(asked, self._clock.monotonic() - started)

    async def _stream(self, request: Request) -> AsyncGenerator[WatchEvent[T], None]:
        async with self._client.sender.watch(self._act, request) as stream:
            self._opened_at = self._clock.monotonic()
            self._on_open()
            try:
                async for line in lines(stream, request.max_line):
                    self._heard_at = self._clock.monotonic()
                    event = self._decode(line)
                    event.size = len(line) + 1
                    if event.status is not None:
                        raise errors.error_from_status(self._act, event.status)
                    yield event
            except (wire.WireError, LineTooLongError) as error:
                # The object of the event is unknown, so only a new list is safe.
                raise WatchBrokenError(f"{self._act}: {error}", list_again=True) from error

    def _check_silence(self) -> None:
        silence = self._clock.monotonic() - self._heard_at
        if silence > self._pace.grace:
            raise WatchBrokenError(f"{self._act}: nothing was heard for {silence:.0f} s")

    def _check_length(self, asked: float, lasted: float) -> None:
        self.ran_its_time = lasted >= asked - 1.0
        if self.ran_its_time:
            self._proof_was_silent = (
                False  # the server is heard again, so a short watch proves something again
            )
        if lasted < self._pace.short and not self._progressed:
            raise WatchBrokenError(
                f"{self._act}: the server ended the watch after {lasted:.1f} s without an event"
            )

    def _request(self, version: str, seconds: float) -> Request:
        query: list[tuple[str, Any]] = [
            *self.selection.query(),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", f"{seconds:.0f}"),
        ]
        path = self._resource.path(self.selection.namespace)
        return Request("GET", path, query, self.selection.headers())
