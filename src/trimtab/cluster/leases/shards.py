"""Several copies of a program share its work: N shards, a Lease for each, and every copy holds a fair number of them.

What belongs to which shard is a rendezvous hash of its name, so that every copy says the same without asking, and a
change of N moves as little as possible. Copies count each other by member Leases, one slot each. Whoever holds more than its quota hands shards
over: it stops writing, lets the writes under way end, and only then releases the Lease. A holder's name ends with its
N: while others share by another number, which a change of the flag brings about, nothing new is taken (decision 0036).
"""

import asyncio
import logging
from collections.abc import Mapping
from hashlib import blake2b
from typing import Protocol

from trimtab import tasks
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.election import LeaderElector, LeaseTimes
from trimtab.cluster.leases.epoch import Epoch
from trimtab.cluster.resource import LEASES

log = logging.getLogger(__name__)

MOST_SHARDS = 16
"""More would cost more renewals than they spread work; the names of all their Leases are in the chart's rights."""


def rank(key: str, number: int) -> bytes:
    """Return how much `key` prefers `number` to others: the highest wins (rendezvous hashing)."""
    return blake2b(f"{number}/{key}".encode(), digest_size=8).digest()


def shard_of(key: str, shards: int) -> int:
    """Return the shard that `key` belongs to."""
    return max(range(shards), key=lambda number: rank(key, number)) if shards > 1 else 0


def quota(shards: int, members: int, position: int) -> int:
    """Return how many shards the member at `position` of the living ones holds; the first ones take the rest."""
    whole, rest = divmod(shards, members)
    return whole + (1 if position < rest else 0)


class ShardUser(Protocol):
    """Whoever works on what the shards hold."""

    def shard_gained(self, shard: int) -> None:
        """Begin with a shard."""
        ...

    def shard_lost(self, shard: int) -> None:
        """Take note that somebody else decides from now on."""
        ...

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether anything is still under way for a shard."""
        ...


class Shard:
    """One shard's Lease as this copy sees it; it is the `Fence` of every write for the shard."""

    def __init__(self, number: int, elector: LeaderElector) -> None:
        self.number = number
        self.elector = elector
        self.is_closing = False

    @property
    def epoch(self) -> Epoch | None:
        """Return the epoch in which we hold it; None if we may not write for it now."""
        return self.elector.epoch if self.may_write() else None

    @property
    def is_held(self) -> bool:
        """Return whether we hold it, as far as we know."""
        return self.elector.is_leader

    def may_write(self) -> bool:
        """Return whether a write for this shard may be sent now."""
        return not self.is_closing and self.elector.may_write()

    def time_left(self) -> float:
        """Return for how many seconds writing is still allowed."""
        return 0.0 if self.is_closing else self.elector.time_left()


class Shards:
    """All shards of a program; `run` keeps a fair number of them until cancelled and then releases them."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        count: int,
        *,
        times: LeaseTimes | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if not 1 < count <= MOST_SHARDS:
            raise ValueError(
                f"--shards: {count} is not possible; use up to {MOST_SHARDS}, or 1 for no sharing"
            )
        self.count = count
        self.identity = f"{identity}/{count}"
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._name = name
        self._times = times or LeaseTimes()
        self._annotations = annotations
        self._users: list[ShardUser] = []
        self._looked_at = self._clock.monotonic()
        self._handing_over: dict[int, asyncio.Task[None]] = {}
        self._shards = [Shard(number, self._elector("shard", number)) for number in range(count)]
        self._beyond = [self._elector("shard", number) for number in range(count, MOST_SHARDS)]
        """Shards that only those have who share by a larger number."""
        self._members = [self._elector("member", number) for number in range(MOST_SHARDS)]

    def serve(self, user: ShardUser) -> None:
        """Tell `user`, too, of every shard that comes and goes."""
        self._users.append(user)

    def of(self, key: str) -> Shard:
        """Return the shard that `key` belongs to."""
        return self._shards[shard_of(key, self.count)]

    def __getitem__(self, number: int) -> Shard:
        return self._shards[number]

    def held(self) -> tuple[int, ...]:
        """Return the shards that we may write for."""
        return tuple(shard.number for shard in self._shards if shard.may_write())

    def may_write(self) -> bool:
        """Return whether we may write for any shard."""
        return any(shard.may_write() for shard in self._shards)

    def time_left(self) -> float:
        """Return for how long that is so."""
        return max(shard.time_left() for shard in self._shards)

    def silence(self) -> float:
        """Return the seconds since the Leases were last seen."""
        return self._clock.monotonic() - self._looked_at

    async def run(self) -> None:
        """Take part until cancelled; release everything on the way out."""
        try:
            while True:
                await self.step()
                jitter = 1.0 + 0.2 * self._client.sender.random.random()
                await self._clock.sleep(self._times.retry * jitter / 1.2)
        finally:
            await self._leave()

    async def step(self) -> None:
        """Renew what we hold, look at the rest, and take or hand over what the quota says."""
        await asyncio.gather(
            *(one.elector.step() for one in self._shards if one.is_held and not one.is_closing)
        )
        can_see = await self._look()
        slot = await self._keep_membership(can_see)
        if not can_see:
            return  # what we hold we keep; who else there is, nobody can say now
        if slot is None:
            self._hand_over_uncounted()
            return
        if others := self._other_counts():
            self._give_way(max(others))
            return
        living = [
            number for number, member in enumerate(self._members) if member.is_leader or member.is_taken
        ]
        wanted = quota(self.count, len(living), living.index(slot))
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        if len(held) > wanted:
            self._hand_over(held, len(held) - wanted)
        elif len(held) < wanted:
            await self._take(wanted - len(held))

    async def _look(self) -> bool:
        """Take in all Leases by one list; return whether it came."""
        try:
            async with asyncio.timeout(self._times.renew_deadline / 2):
                listed = await self._client.list(LEASES.untyped(), ListOptions(self._namespace))
        except (errors.ClusterError, TimeoutError) as error:
            log.warning("leases of %s: %s", self._namespace, str(error) or "no answer in time")
            return False
        self._looked_at = self._clock.monotonic()
        found = {lease["metadata"]["name"]: lease for lease in listed.items}
        for number, member in enumerate(self._members):
            member.observe(found.get(f"{self._name}-member-{number}"))
        for number, elector in enumerate(self._beyond, self.count):
            elector.observe(found.get(f"{self._name}-shard-{number}"))
        for shard in self._shards:
            shard.elector.observe(found.get(f"{self._name}-shard-{shard.number}"))
        return True

    async def _keep_membership(self, can_see: bool) -> int | None:
        """Hold one member slot; return its number, or None if there is none for us."""
        ours = [number for number, member in enumerate(self._members) if member.is_leader]
        if not ours and can_see:
            free = [number for number, member in enumerate(self._members) if not member.is_taken]
            ours = self._preferred(free)[:1]
        for number in ours:
            await self._members[number].step()
        return next((number for number in ours if self._members[number].is_leader), None)

    async def _take(self, number: int) -> None:
        free = [one.number for one in self._shards if not one.is_held and not one.elector.is_taken]
        wanted = self._preferred(free)[:number]
        await asyncio.gather(*(self._shards[one].elector.step() for one in wanted))

    def _hand_over(self, held: list[Shard], number: int) -> None:
        kept = self._preferred([shard.number for shard in held])[: len(held) - number]
        for shard in held:
            if shard.number not in kept:
                shard.is_closing = True
                self._tell_lost(shard)
                self._handing_over[shard.number] = tasks.start(
                    f"the hand-over of shard {shard.number}", self._release(shard)
                )

    def _hand_over_uncounted(self) -> None:
        """Give everything back if all slots are others': they share out among themselves what we still hold."""
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        if held and all(member.is_taken for member in self._members):
            self._hand_over(held, len(held))

    def _other_counts(self) -> set[int]:
        """Return the numbers of shards by which others share at present: theirs hold other HPAs than ours."""
        electors = [*(shard.elector for shard in self._shards), *self._beyond]
        holders = [elector.holder for elector in electors if elector.is_taken]
        counts = {int(count) for holder in holders if (count := holder.rpartition("/")[2]).isdigit()}
        return counts - {self.count}

    def _give_way(self, other: int) -> None:
        """Take nothing until those who share by another number are gone; if we hold some too, the larger number stays."""
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        log.info("others share by %d shards and we by %d: waiting for them to end", other, self.count)
        if held and self.count < other:
            self._hand_over(held, len(held))

    async def _release(self, shard: Shard) -> None:
        """Let the writes under way end, then give the Lease back; if they do not, it runs out by itself."""
        try:
            # A write under way ends by its own deadline, which is within the time that is left of the Lease.
            while self._is_busy(shard.number) and shard.elector.may_write():
                await self._clock.sleep(0.05)
            await shard.elector.release()
        finally:
            shard.is_closing = False
            self._handing_over.pop(shard.number, None)

    def _is_busy(self, number: int) -> bool:
        return any(user.is_shard_busy(number) for user in self._users)

    async def _leave(self) -> None:
        for task in self._handing_over.values():
            task.cancel()
        await asyncio.gather(*self._handing_over.values(), return_exceptions=True)
        held = [one.elector for one in self._shards if one.is_held]
        await asyncio.gather(*(one.release() for one in [*held, *(m for m in self._members if m.is_leader)]))

    def _is_one_of_us(self, member: LeaderElector) -> bool:
        """Return whether a member lives, as far as can be seen, and shares by the same number."""
        return member.is_leader or (member.is_taken and member.holder.endswith(f"/{self.count}"))

    def _preferred(self, numbers: list[int]) -> list[int]:
        """Put first what this copy prefers, so that copies that choose at the same time choose differently."""
        return sorted(numbers, key=lambda number: rank(self.identity, number), reverse=True)

    def _elector(self, kind: str, number: int) -> LeaderElector:
        return LeaderElector(
            self._client,
            self._namespace,
            f"{self._name}-{kind}-{number}",
            self.identity,
            times=self._times,
            annotations=self._annotations if kind == "shard" else None,
            on_change=(lambda held: self._changed(number, held)) if kind == "shard" else None,
        )

    def _changed(self, number: int, held: bool) -> None:
        shard = self._shards[number]
        if not held:
            if not shard.is_closing:
                self._tell_lost(shard)
            return
        for user in self._users:
            user.shard_gained(number)

    def _tell_lost(self, shard: Shard) -> None:
        for user in self._users:
            user.shard_lost(shard.number)
