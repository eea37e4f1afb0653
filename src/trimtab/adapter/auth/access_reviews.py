"""Asks the cluster who a token is and what a user may do; answers are believed for a few seconds.

When the cluster does not answer, neither do we: an unreachable review is a 503, never a yes (S11).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from trimtab.adapter.errors import Unavailable
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import ClusterError
from trimtab.cluster.transport.transport import Deadlines, Request
from trimtab.model.json import wire

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

LONGEST_SECONDS = 10.0
"""The longest time that a review is believed: a right that was taken away is gone after it."""

_MAX_ENTRIES = 10_000
_DEADLINES = Deadlines().within(5.0)
_JSON = {"Content-Type": "application/json"}


class ReviewCache(Generic[K, T]):
    """Remembers answers for a short time and asks each question once at a time; failures are not remembered."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = min(seconds, LONGEST_SECONDS)
        self._answers: OrderedDict[K, tuple[float, T]] = OrderedDict()
        self._flights: dict[K, asyncio.Task[T]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the remembered answer, or ask."""
        found = self._answers.get(key)
        if found is not None and self._clock.monotonic() < found[0]:
            return found[1]
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(self._ask(key, ask))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        # Shielded: one client that goes away must not take the answer from the others.
        return await asyncio.shield(flight)

    async def _ask(self, key: K, ask: Callable[[], Awaitable[T]]) -> T:
        asked_at = self._clock.monotonic()
        answer = await ask()
        self._answers[key] = (asked_at + self._seconds, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > _MAX_ENTRIES:
            self._answers.popitem(last=False)
        return answer

    def _landed(self, key: K, flight: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()


async def review(client: Client, path: str, body: dict[str, Any], into: type[T]) -> T:
    """Create a review object and return the cluster's answer."""
    act = f"asking {path.rsplit('/', 1)[1]}"
    request = Request("POST", path, (), _JSON, wire.encode(body), _DEADLINES)
    try:
        answer = await client.sender.send_once(act, request)
        return wire.decode(answer.body, into)
    except (ClusterError, wire.WireError) as error:
        raise Unavailable(f"the cluster cannot be asked about this request: {error}") from error
