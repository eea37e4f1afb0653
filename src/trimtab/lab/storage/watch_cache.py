"""What happened to one resource: a bounded ring of events, and the streams that follow it.

A stream gets its own bounded queue; one that does not keep up is cut with 410 and must list again, exactly like a
client of a real server whose watch cache moved on. Each event is encoded once per representation, however many
streams carry it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from trimtab.lab.storage.store import Entry

Action = Literal["ADDED", "MODIFIED", "DELETED"]
#: Events kept per resource for watches that resume and for lists at an older version.
HISTORY = 8192
#: Events a stream may lag behind before it is cut.
BACKLOG = 16384


class WatchCacheEvent:
    """One committed write: what it was, the object after it (or last seen, when deleted) and before it."""

    __slots__ = ("_lines", "action", "entry", "previous", "version")

    def __init__(self, action: Action, entry: "Entry", previous: "Entry | None", version: int) -> None:
        self.action = action
        self.entry = entry
        self.previous = previous
        self.version = version
        self._lines: dict[str, bytes] = {}

    def line(self, action: str, form: str | None, render: Callable[["Entry"], bytes]) -> bytes:
        """Return this change as one line of a watch stream, encoding it only once per form."""
        if form is None:
            return event_line(action, render(self.entry))
        key = action + form
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = event_line(action, render(self.entry))
        return found


def event_line(action: str, raw: bytes) -> bytes:
    """Frame an encoded object as one line of a watch stream."""
    return b'{"type":"' + action.encode() + b'","object":' + raw + b"}\n"


class WatchStream:
    """One follower of a resource, limited to a namespace or to all of them."""

    def __init__(self, namespace: str, backlog: int) -> None:
        self.namespace = namespace
        self.is_cut = False
        self._backlog = backlog
        self._queue: deque[WatchCacheEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def push(self, change: WatchCacheEvent) -> None:
        """Queue a change, or cut the stream when it lags too far behind."""
        if self.is_cut:
            return
        if len(self._queue) >= self._backlog:
            self._queue.clear()
            self.is_cut = True
        else:
            self._queue.append(change)
        self.wake()

    def cut(self) -> None:
        """End the stream after what is already queued."""
        self.is_cut = True
        self.wake()

    def wake(self) -> None:
        """Let the waiting reader look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def drain(self) -> Iterator[WatchCacheEvent]:
        """Yield what has been queued so far."""
        while self._queue:
            yield self._queue.popleft()

    async def wait(self, seconds: float | None) -> bool:
        """Wait until there may be something to read; return False when the time is up first."""
        if self._queue or self.is_cut:
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._expire, self._waiter) if seconds is not None else None
        try:
            await self._waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiter = None
        return bool(self._queue) or self.is_cut

    @staticmethod
    def _expire(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)


class WatchCache:
    """The recent changes of one resource and their followers."""

    def __init__(self, keep: int = HISTORY) -> None:
        self._changes: deque[WatchCacheEvent] = deque(maxlen=keep)
        #: Everything after this version is still in the ring.
        self.oldest = 0
        #: In the order of their arrival, which a set would not keep: who hears first decides what happens next.
        self._streams: dict[str, dict[WatchStream, None]] = {}

    def record(self, change: WatchCacheEvent) -> None:
        """Remember a change and hand it to its followers."""
        if len(self._changes) == self._changes.maxlen:
            self.oldest = self._changes[0].version
        self._changes.append(change)
        namespace = change.entry.namespace
        for key in ("", namespace) if namespace else ("",):
            for stream in self._streams.get(key, ()):
                stream.push(change)

    def since(self, version: int) -> list[WatchCacheEvent]:
        """Return the changes after `version`; the caller has checked `oldest`."""
        found: list[WatchCacheEvent] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def follow(self, namespace: str, backlog: int = BACKLOG) -> WatchStream:
        """Start a stream of the changes from now on."""
        stream = WatchStream(namespace, backlog)
        self._streams.setdefault(namespace, {})[stream] = None
        return stream

    def unfollow(self, stream: WatchStream) -> None:
        """End a stream."""
        followers = self._streams.get(stream.namespace)
        if followers is not None:
            followers.pop(stream, None)
            if not followers:
                del self._streams[stream.namespace]

    def cut_all(self) -> None:
        """End every stream, as when the resource is no longer served."""
        for followers in self._streams.values():
            for stream in followers:
                stream.cut()

    @property
    def streams(self) -> int:
        """Count the open streams."""
        return sum(len(followers) for followers in self._streams.values())

    def forget(self, version: int) -> None:
        """Drop the past up to `version`, as etcd's compaction does; used to show clients a 410."""
        while self._changes and self._changes[0].version <= version:
            self._changes.popleft()
        self.oldest = max(self.oldest, version)
