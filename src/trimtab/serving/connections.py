"""Limits of a server's clients, and the connections that share them.

A server gives each phase of a connection a deadline (`protocol`). Until a deadline passes, clients that stall or send without
end hold connections and memory. `Connections` bounds both. Where a limit is reached, a connection that waits for its client ends:
the one that has waited longest, or the one with the largest body. The newcomer gets its place. A share per address would not
do, because all reviews of a webhook may come from one address.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one server's clients."""

    head_bytes: int = 32 * 1024
    """Size of a request's line and headers, trailers included."""
    head_lines: int = 256
    """Number of headers. Each takes about 200 bytes, however short it is."""
    head_seconds: float = 10.0
    """Time for them to arrive, also on a new connection (slowloris)."""
    body_seconds: float = 10.0
    """Time for a body to arrive."""
    send_seconds: float = 30.0
    """Time for a client to read what the server has buffered for it."""
    idle_seconds: int = 60
    body_bytes: int = 32 * 1024 * 1024
    """Bytes of the bodies of all requests together. What one request may send is the application's limit."""
    connections: int = 256
    """Concurrent connections. Over TLS each takes 0.28 MiB, so 256 take 72 MiB."""
    per_address: int | None = None
    """Connections of one address. None behind a proxy or on loopback, where all clients share an address."""


LOG_SECONDS = 60.0


def _never_made() -> None:
    """End a connection that does not exist yet."""


@dataclass(slots=True, eq=False)
class ClientConnection:
    """A client's connection, from accept to its end."""

    address: str
    waiting_since: float | None
    """Since when it waits for its client. None while the server works on a request."""
    body_bytes: int = 0
    end: Callable[[], object] = field(default=_never_made)


class OncePerMinute:
    """Decides whether a line is logged that clients could cause at any rate."""

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether the last line is a minute old. Count this one if so."""
        if self._logged_at is not None and now - self._logged_at < LOG_SECONDS:
            return False
        self._logged_at = now
        return True


class Connections:
    """The connections of one server."""

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.ended = 0
        """How many connections ended or were refused because of a limit that they share."""
        self.malformed = 0
        """How many requests were not HTTP."""
        self.malformed_log = OncePerMinute()
        self._open: dict[ClientConnection, None] = {}
        self._per_address: Counter[str] = Counter()
        self._body_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def open(self, address: str, now: float) -> ClientConnection | None:
        """Count a new connection. Return None if there is no place for it."""
        if not self._has_room(address):
            self.ended += 1
            return None
        connection = ClientConnection(address, now)
        self._open[connection] = None
        self._per_address[address] += 1
        return connection

    def close(self, connection: ClientConnection) -> None:
        """Stop counting a connection. A second call does nothing."""
        if connection not in self._open:
            return
        self.release(connection)
        del self._open[connection]
        self._per_address -= Counter({connection.address: 1})  # drops an address without connections

    def hold(self, connection: ClientConnection, size: int) -> None:
        """Count bytes of a body.

        If all bodies are too large together, end the largest that is not complete.
        """
        if connection not in self._open:
            return
        connection.body_bytes += size
        self._body_bytes += size
        while self._body_bytes > self.limits.body_bytes:
            incomplete = [
                other for other in self._open if other.body_bytes and other.waiting_since is not None
            ]
            self._end(max(incomplete, key=lambda other: other.body_bytes, default=connection))

    def release(self, connection: ClientConnection) -> None:
        """Stop counting the body of a request that was answered."""
        self._body_bytes -= connection.body_bytes
        connection.body_bytes = 0

    def _has_room(self, address: str) -> bool:
        most = self.limits.per_address
        if most is not None and self._per_address.get(address, 0) >= most:
            return self._end_stalest(other for other in self._open if other.address == address)
        return len(self._open) < self.limits.connections or self._end_stalest(self._open)

    def _end_stalest(self, candidates: Iterable[ClientConnection]) -> bool:
        """End the connection that has waited longest for its client. Connections at work do not count."""
        waiting = [
            (other.waiting_since, place, other)
            for place, other in enumerate(candidates)
            if other.waiting_since is not None
        ]
        if waiting:
            self._end(min(waiting)[2])
        return bool(waiting)

    def _end(self, connection: ClientConnection) -> None:
        self.ended += 1
        self.close(connection)
        connection.end()
