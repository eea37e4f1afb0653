"""Limits the shards that a replica takes while the other replicas start, too.

Replicas that are started together join within seconds of each other. The first of them would take all shards, list the
whole cluster, and hand most of it over again. So a starting replica takes one shard at once and the rest of its quota
when no replica has joined or left for a while. Shards that change hands meanwhile are taken at once.
"""

from collections.abc import Collection

from trimtab.clock import Clock
from trimtab.cluster.leases.election import LeaseTimes

QUIET_PERIODS = 3
"""Periods of reads without a change of the members after which all replicas count as started: 6 s."""


class StartUp:
    """Which free shards a replica may take while it starts. It ends once and for all."""

    def __init__(self, clock: Clock, times: LeaseTimes) -> None:
        self._clock = clock
        self._quiet_seconds = QUIET_PERIODS * times.retry
        self._most_seconds = times.duration
        self._began: float | None = None
        self._changed_at = 0.0
        self._members: frozenset[str] = frozenset()
        self._unowned: set[int] = set()
        self._is_over = False

    def observe(self, members: Collection[str], free: Collection[int]) -> None:
        """Process the names of the living members and the shards that no replica holds."""
        if self._is_over:
            return
        now = self._clock.monotonic()
        if self._began is None:
            self._began = now
            self._unowned = set(free)
        if frozenset(members) != self._members:
            self._members, self._changed_at = frozenset(members), now
        self._unowned.intersection_update(free)
        self._is_over = (
            not self._unowned
            or now - self._changed_at >= self._quiet_seconds
            or now - self._began >= self._most_seconds
        )

    def limit(self, preferred: list[int], held: int) -> list[int]:
        """Return the free shards that may be taken now, of those that are preferred, in their order.

        Of the shards that had no owner when this replica started, a replica without a shard may take one.
        """
        if self._is_over:
            return preferred
        allowed = [number for number in preferred if number not in self._unowned]
        return allowed if allowed or held else preferred[:1]
