"""The recent changes of a resource, and the streams that follow them.

A stream has a bounded queue. A stream that does not keep up ends with 410, like a client of a real server whose watch
cache moved on. Each event is encoded once per form, however many streams carry it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trimtab_lab.storage.store import Entry

Action = Literal["ADDED", "MODIFIED", "DELETED"]
#: Events kept per resource for watches that resume and for lists at an older version.
HISTORY = 8192
#: Events a stream may lag behind before it expires.
BACKLOG = 16384


class WatchCacheEvent:
    """A stored write: the object after it (or last, when deleted) and before it."""

    __slots__ = ("_lines", "action", "entry", "previous", "version")

    def __init__(self, action: Action, entry: "Entry", previous: "Entry | None", version: int) -> None:
        self.action = action
        self.entry = entry
        self.previous = previous
        self.version = version
        self._lines: dict[str, bytes] = {}

    def line(self, action: str, form: str | None, render: Callable[["Entry"], bytes]) -> bytes:
        """Return this change as a line of a watch stream, encoded once per form."""
        if form is None:
            return event_line(action, render(self.entry))
        key = action + form
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = event_line(action, render(self.entry))
        return line


def event_line(action: str, raw: bytes) -> bytes:
    """Return an encoded object as a line of a watch stream."""
    return b'{"type":"' + action.encode() + b'","object":' + raw + b"}\n"


class WatchStream:
    """A queue of changes in one namespace, or in all."""

    def __init__(self, namespace: str, backlog: int) -> None:
        self.namespace = namespace
        self.is_expired = False
        self._backlog = backlog
        self._queue: deque[WatchCacheEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def push(self, change: WatchCacheEvent) -> None:
        """Queue a change, or expire the stream when it lags too far behind."""
        if self.is_expired:
            return
        if len(self._queue) >= self._backlog:
            self._queue.clear()
            self.is_expired = True
        else:
            self._queue.append(change)
        self._wake()

    def expire(self) -> None:
        """End the stream after the changes that are already queued."""
        self.is_expired = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None:
            _finish(self._waiter)

    def drain(self) -> Iterator[WatchCacheEvent]:
        """Yield the queued changes."""
        while self._queue:
            yield self._queue.popleft()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for changes, and return False if the time is up first."""
        if self._queue or self.is_expired:
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _finish, self._waiter) if seconds is not None else None
        try:
            await self._waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiter = None
        return bool(self._queue) or self.is_expired


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class WatchCache:
    """The recent changes of a resource and its open streams."""

    def __init__(self, keep: int = HISTORY) -> None:
        self._changes: deque[WatchCacheEvent] = deque(maxlen=keep)
        #: All changes after this version are cached.
        self.oldest = 0
        #: In the order of their start, which a set would not keep: the first stream to wake decides what happens next.
        self._streams: dict[str, dict[WatchStream, None]] = {}

    def add(self, change: WatchCacheEvent) -> None:
        """Cache a change and push it to the streams."""
        if len(self._changes) == self._changes.maxlen:
            self.oldest = self._changes[0].version
        self._changes.append(change)
        namespace = change.entry.namespace
        for key in ("", namespace) if namespace else ("",):
            for stream in self._streams.get(key, ()):
                stream.push(change)

    def since(self, version: int) -> list[WatchCacheEvent]:
        """Return the changes after `version`. The caller has compared it with `oldest`."""
        changes: list[WatchCacheEvent] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def watch(self, namespace: str, backlog: int = BACKLOG) -> WatchStream:
        """Start a stream of the changes from now on."""
        stream = WatchStream(namespace, backlog)
        self._streams.setdefault(namespace, {})[stream] = None
        return stream

    def stop(self, stream: WatchStream) -> None:
        """Remove a stream."""
        streams = self._streams.get(stream.namespace)
        if streams is not None:
            streams.pop(stream, None)
            if not streams:
                del self._streams[stream.namespace]

    def expire_all(self) -> None:
        """End every stream, as when the resource is no longer served."""
        for streams in self._streams.values():
            for stream in streams:
                stream.expire()

    @property
    def stream_count(self) -> int:
        """Return the number of open streams."""
        return sum(len(streams) for streams in self._streams.values())
