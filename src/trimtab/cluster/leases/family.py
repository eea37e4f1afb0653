"""The Leases `NAME-0` to `NAME-15` of a program, which divide its work among replicas. One leader is shard 0 of 1.

A hash of its namespace assigns an object to one of N shards, so that all replicas agree without communication. A holder's
name ends with its N. Who takes a shard lists the Leases afterwards, and uses it only if no live Lease shows another N.
Replicas with N > 1 count each other by the Leases `NAME-member-0` to `NAME-member-15`. The proof that no two replicas
decide about an object is in docs/decisions/at-most-one-replica-decides-about-an-object.md.
"""

import asyncio
import logging
from asyncio import timeout
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, Protocol

from trimtab.clock import Clock, start_task
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.lanes import LEASES as LEASE_LANE
from trimtab.cluster.leases.fence import Epoch
from trimtab.cluster.leases.lease import FailureLog, LeaseLock, LeaseTimes, Written
from trimtab.cluster.resource import LEASES, Json

log = logging.getLogger(__name__)

MOST_SHARDS: Final = 16
"""More shards cost more renewals than they save. RBAC rules name all Leases of a family."""

_SILENT_SECONDS: Final = 30.0
"""Seconds without reading the Leases after which a replica is not ready, because it could not take over."""


def rank(key: str, number: int) -> bytes:
    """Return the weight of `number` for `key`. The highest weight wins (rendezvous hashing)."""
    return blake2b(f"{number}/{key}".encode(), digest_size=8).digest()


def shard_of(namespace: str, count: int) -> int:
    """Return the shard of a namespace. One more shard moves a share of each, and nothing else."""
    return max(range(count), key=lambda number: rank(namespace, number))


def quota(shards: int, members: int, position: int) -> int:
    """Return the quota of the living member at `position`. The first members take the remainder."""
    whole, rest = divmod(shards, members)
    return whole + (1 if position < rest else 0)


class ShardUser(Protocol):
    """A component that works on the held shards."""

    def shard_gained(self, shard: int) -> None:
        """Start to work on a shard."""
        ...

    def shard_lost(self, shard: int) -> None:
        """Stop to work on a shard."""
        ...

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a write for the shard is in flight."""
        ...


class Shard:
    """One shard in this replica, and the `Fence` of its writes."""

    def __init__(self, number: int, lock: LeaseLock) -> None:
        self.number = number
        self.lock = lock
        self.is_closing = False
        self.is_open = False
        """Whether the components know that it is held."""
        self.free_since: float | None = None
        self._epoch: Epoch | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this replica has the Lease and keeps it, confirmed or not."""
        return self.lock.may_write() and not self.is_closing

    @property
    def epoch(self) -> Epoch | None:
        """Return the epoch of the shard, or None if this replica may not write for it."""
        return self._epoch if self.may_write() else None

    def open(self, clock: Clock) -> None:
        """Use the shard from now on. Its clock starts here, and memories are resumed."""
        self.lock.is_confirmed = True
        self._epoch = Epoch(clock)

    def may_write(self) -> bool:
        """Return whether a write for this shard may be sent now."""
        return self.time_left() > 0

    def time_left(self) -> float:
        """Return for how many seconds writes are allowed."""
        return self.lock.time_left() if self.lock.is_confirmed and not self.is_closing else 0.0


class Family:
    """All shards of a program. `run` holds this replica's part of them until cancelled, and then releases it."""

    name = "leases"

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        count: int = 1,
        *,
        times: LeaseTimes | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if not 1 <= count <= MOST_SHARDS:
            raise ValueError(f"--shards: {count} is not possible; use 1 to {MOST_SHARDS}")
        self.count = count
        self.identity = f"{identity}/{count}"
        self._client = client.in_lane(LEASE_LANE)
        self._clock = client.clock
        self._failures = FailureLog(self._clock)
        self._namespace = namespace
        self._name = name
        self._times = times or LeaseTimes()
        self._annotations = annotations or {}
        self._users: list[ShardUser] = []
        self._looked_at = self._clock.monotonic()
        self._problem = ""
        self.waits_for = ""
        """The holder with another N that keeps this replica from taking a shard. Empty if there is none."""
        self._living: list[str] = []
        self._beyond = 0
        """How many shards beyond its quota this replica took, because they stayed free."""
        self._handing_over: dict[int, asyncio.Task[None]] = {}
        self._all = [Shard(number, self._lock(f"{number}")) for number in range(MOST_SHARDS)]
        self._shards = self._all[:count]
        self._members = [self._lock(f"member-{number}") for number in range(MOST_SHARDS if count > 1 else 0)]

    def _lock(self, ending: str) -> LeaseLock:
        return LeaseLock(
            self._client,
            self._namespace,
            f"{self._name}-{ending}",
            self.identity,
            times=self._times,
            annotations={} if ending.startswith("member") else self._annotations,
        )

    def serve(self, user: ShardUser) -> None:
        """Notify `user` of every shard that is gained or lost."""
        self._users.append(user)

    def shard_of(self, key: str) -> int:
        """Return the number of the shard of `namespace/name`, or of a namespace."""
        return shard_of(key.partition("/")[0], self.count)

    def of(self, key: str) -> Shard:
        """Return the shard of `namespace/name`."""
        return self._shards[self.shard_of(key)]

    def __getitem__(self, number: int) -> Shard:
        return self._shards[number]

    def held(self) -> tuple[int, ...]:
        """Return the shards that this replica may write for."""
        return tuple(shard.number for shard in self._shards if shard.may_write())

    def may_write(self) -> bool:
        """Return whether this replica may write for any shard."""
        return any(shard.may_write() for shard in self._shards)

    def time_left(self) -> float:
        """Return for how many seconds that holds."""
        return max(shard.time_left() for shard in self._shards)

    def health(self) -> dict[str, str]:
        """Return what keeps this replica from taking over, by name. A replica that waits for others is ready."""
        silence = self._clock.monotonic() - self._looked_at
        has_all = self.count == 1 and self.may_write()
        return (
            {"leases": self._problem} if self._problem and silence > _SILENT_SECONDS and not has_all else {}
        )

    async def run(self) -> None:
        """Hold shards until cancelled, then release them."""
        try:
            while True:
                await self.step()
                # Jitter, so that two candidates rarely write at the same time.
                jitter = 1.0 + 0.2 * self._client.sender.random.random()
                await self._clock.sleep(min(self._times.retry * jitter / 1.2, self._next_expiry()))
        finally:
            await self._leave()

    async def step(self) -> None:
        """Renew what is held, look at all Leases, and take or give shards."""
        held = [lock for lock in self._locks() if lock.may_write()]
        results = await asyncio.gather(*(lock.write() for lock in held))
        self._tell()
        if self.count == 1 and self.may_write() and set(results) == {Written.RENEWED}:
            return  # nobody can take it unseen
        if await self.look():
            self._tell()
            await self._confirm()
            await self._balance()

    async def look(self) -> bool:
        """List all Leases, consistently. Return whether it succeeded."""
        try:
            async with timeout(self._times.renew_deadline / 2):
                listed = await self._client.list(LEASES.untyped(), ListOptions(self._namespace))
        except (errors.ClusterError, TimeoutError) as error:
            self._problem = f"leases of {self._namespace}: {str(error) or 'no answer in time'}"
            self._failures.failed(self._problem)
            return False
        self._failures.succeeded()
        self._problem, self._looked_at = "", self._clock.monotonic()
        found: dict[str, Json] = {lease["metadata"]["name"]: lease for lease in listed.items}
        for lock in [*(shard.lock for shard in self._all), *self._members]:
            lock.observe(found.get(lock.name))
        for shard in self._shards:
            is_free = not (shard.lock.may_write() or shard.is_closing or shard.lock.is_taken)
            shard.free_since = (shard.free_since or self._looked_at) if is_free else None
        return True

    async def take(self, shard: Shard) -> None:
        """Take a shard. Use it only if no replica with another N is seen afterwards."""
        if self._others() or await shard.lock.write() is not Written.TAKEN:
            return
        # Its fence stays shut until a look confirms it, this one or that of a later step.
        if await self.look():
            await self._confirm()

    async def _confirm(self) -> None:
        """Open the shards that were taken before the last look, or release them if it saw another N."""
        others = self._others()
        for shard in self._shards:
            if not shard.is_held or shard.lock.is_confirmed:
                continue
            if others:
                await shard.lock.release()
            else:
                shard.open(self._clock)
        self._tell()

    def _others(self) -> list[str]:
        """Return the holders with another N that may use a shard."""
        holders = [shard.lock.holder for shard in self._all if shard.lock.is_taken]
        return [holder for holder in holders if _count_of(holder) not in (None, self.count)]

    async def _balance(self) -> None:
        """Take one free shard, or give what is above the quota."""
        wanted = await self._quota()
        held = [shard for shard in self._shards if shard.is_held]
        free = [shard for shard in self._shards if shard.free_since is not None]
        others = self._others()
        self._wait_for(others[0] if others else "")
        if wanted is None or (others and not held):
            return
        if len(held) > wanted:
            self._hand_over(held, len(held) - wanted)
            return
        is_beyond = len(held) == wanted
        if is_beyond:
            now, longest = self._clock.monotonic(), self._times.duration
            free = [shard for shard in free if now - (shard.free_since or now) >= longest]
        if free:
            # A Lease that is ours already was taken by a write without an answer.
            shard = min(self._preferred(free), key=lambda shard: not shard.lock.is_ours)
            await self.take(shard)
            self._beyond += is_beyond and shard.is_held

    async def _quota(self) -> int | None:
        """Return how many shards this replica may hold, or None if that is unknown."""
        if self.count == 1:
            return 1
        slot = await self._keep_membership()
        if slot is None:
            return self._beyond if all(member.is_taken for member in self._members) else None
        counted = [
            number
            for number, member in enumerate(self._members)
            if number == slot or (member.is_taken and _count_of(member.holder) == self.count)
        ]
        living = [self._members[number].holder for number in counted]
        if living != self._living:
            self._living, self._beyond = living, 0
        return quota(self.count, len(counted), counted.index(slot)) + self._beyond

    async def _keep_membership(self) -> int | None:
        """Hold a member Lease. Return its number, or None if this replica has none."""
        ours = [number for number, member in enumerate(self._members) if member.may_write()]
        if ours:
            return ours[0]
        free = [number for number, member in enumerate(self._members) if not member.is_taken]
        free.sort(key=lambda number: rank(self.identity, number), reverse=True)
        number = min(free, key=lambda number: not self._members[number].is_ours, default=None)
        if number is None or await self._members[number].write() is not Written.TAKEN:
            return None
        return number

    def _wait_for(self, holder: str) -> None:
        if holder and holder != self.waits_for:
            log.info("taking no shard while a replica with another --shards holds some: %s", holder)
        self.waits_for = holder

    def _hand_over(self, held: list[Shard], number: int) -> None:
        for shard in self._preferred(held)[len(held) - number :]:
            shard.is_closing = True
            self._handing_over[shard.number] = start_task(
                f"the hand-over of shard {shard.number}", self._give(shard)
            )
        self._tell()

    async def _give(self, shard: Shard) -> None:
        """Wait for the writes in flight, then release the Lease. If they do not end, the Lease expires."""
        try:
            # A write under way ends by its own deadline, which is within the time that is left of the Lease.
            while self.is_busy(shard.number) and shard.lock.may_write():
                await self._clock.sleep(0.05)
            await shard.lock.release()
        finally:
            shard.is_closing = False
            self._handing_over.pop(shard.number, None)

    def is_busy(self, number: int) -> bool:
        """Return whether a write for a shard is in flight."""
        return any(user.is_shard_busy(number) for user in self._users)

    async def _leave(self) -> None:
        for task in self._handing_over.values():
            task.cancel()
        await asyncio.gather(*self._handing_over.values(), return_exceptions=True)
        await asyncio.gather(*(lock.release() for lock in self._locks()))
        self._tell()

    def _locks(self) -> list[LeaseLock]:
        """Return the Leases that this replica renews while it holds them."""
        return [*(shard.lock for shard in self._shards if not shard.is_closing), *self._members]

    def _next_expiry(self) -> float:
        return min(
            (lock.time_left() for lock in self._locks() if lock.may_write()), default=self._times.retry
        )

    def _preferred(self, shards: list[Shard]) -> list[Shard]:
        """Order shards by this replica's preference, so that replicas choose different ones."""
        return sorted(shards, key=lambda shard: rank(self.identity, shard.number), reverse=True)

    def _tell(self) -> None:
        """Notify the components of shards that opened or closed."""
        for shard in self._shards:
            if shard.may_write() == shard.is_open:
                continue
            shard.is_open = not shard.is_open
            log.info(
                "lease %s/%s: %s",
                self._namespace,
                shard.lock.name,
                "leading" if shard.is_open else "not leading",
            )
            for user in self._users:
                (user.shard_gained if shard.is_open else user.shard_lost)(shard.number)


def _count_of(holder: str) -> int | None:
    """Return the N of a holder. A name that no replica writes has none."""
    ending = holder.rpartition("/")[2]
    return int(ending) if ending.isdigit() else None
