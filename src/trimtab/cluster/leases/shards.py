"""Divides the work of a program among replicas: N shards with a Lease each.

A rendezvous hash of its namespace assigns an object to a shard (`ShardLayout`), so that all replicas agree without
communication and a change of N moves few objects. Replicas count each other by member Leases, one slot each. A replica
with more shards than its quota stops writing for a shard, waits for its writes in flight, and then releases the Lease.
A replica that starts takes its quota of unowned shards when the replicas that start with it have joined (`StartUp`).
The holder's name ends with the mark of its layout. While other replicas use another layout, during a change of the
flags, no shard is acquired. See docs/decisions/shard-work-by-lease-and-fence-every-write.md.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from trimtab import tasks
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.election import LeaderElector, LeaseTimes
from trimtab.cluster.leases.epoch import Epoch
from trimtab.cluster.leases.failure_log import FailureLog
from trimtab.cluster.leases.layout import MOST_SHARDS, ShardLayout, rank
from trimtab.cluster.leases.start_up import StartUp
from trimtab.cluster.resource import LEASES
from trimtab.cluster.transport.lanes import LEASES as LEASE_LANE

log = logging.getLogger(__name__)


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
    """The Lease of a shard in this replica, and the `Fence` of its writes."""

    def __init__(self, number: int, elector: LeaderElector) -> None:
        self.number = number
        self.elector = elector
        self.is_closing = False
        self.is_unconfirmed = False
        """Whether it was taken and replicas with another layout may have taken shards at the same moment."""

    @property
    def epoch(self) -> Epoch | None:
        """Return the epoch of the shard, or None if this replica may not write for it."""
        return self.elector.epoch if self.may_write() else None

    @property
    def is_held(self) -> bool:
        """Return whether this replica seems to hold the shard."""
        return self.elector.is_leader

    def may_write(self) -> bool:
        """Return whether a write for this shard may be sent now."""
        return not (self.is_closing or self.is_unconfirmed) and self.elector.may_write()

    def time_left(self) -> float:
        """Return for how many seconds writes are allowed."""
        return 0.0 if self.is_closing or self.is_unconfirmed else self.elector.time_left()


class Shards:
    """All shards of a program. `run` holds its quota until cancelled and then releases it."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        layout: ShardLayout,
        *,
        times: LeaseTimes | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if not 1 < layout.count <= MOST_SHARDS:
            raise ValueError(
                f"--shards: {layout.count} is not possible; use up to {MOST_SHARDS}, or 1 for no sharing"
            )
        self.count = count = layout.count
        self.layout = layout
        self._mark = layout.mark
        self.identity = f"{identity}/{self._mark}"
        self._client = client.in_lane(LEASE_LANE)
        self._clock = client.clock
        self._failures = FailureLog(log, self._clock)
        self._namespace = namespace
        self._name = name
        self._times = times or LeaseTimes()
        self._annotations = annotations
        self._users: list[ShardUser] = []
        self._looked_at = self._clock.monotonic()
        self._handing_over: dict[int, asyncio.Task[None]] = {}
        self._start_up = StartUp(self._clock, self._times)
        self._waits_for = 0
        """The mark of replicas with another layout that this one waits for."""
        self._shards = [Shard(number, self._elector("shard", number)) for number in range(count)]
        self._beyond = [self._elector("shard", number) for number in range(count, MOST_SHARDS)]
        """Shards that exist only for replicas with a larger N."""
        self._members = [self._elector("member", number) for number in range(MOST_SHARDS)]

    def serve(self, user: ShardUser) -> None:
        """Notify `user` of every shard that is gained or lost."""
        self._users.append(user)

    def of(self, key: str) -> Shard:
        """Return the shard of `namespace/name`."""
        return self._shards[self.layout.shard_of(key)]

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

    def silence(self) -> float:
        """Return the seconds since the Leases were last read."""
        return self._clock.monotonic() - self._looked_at

    async def run(self) -> None:
        """Hold shards until cancelled, then release them."""
        try:
            while True:
                await self.step()
                jitter = 1.0 + 0.2 * self._client.sender.random.random()
                await self._clock.sleep(self._times.retry * jitter / 1.2)
        finally:
            await self._leave()

    async def step(self) -> None:
        """Renew held shards, read the rest, and acquire or release shards by the quota."""
        await asyncio.gather(
            *(shard.elector.step() for shard in self._shards if shard.is_held and not shard.is_closing)
        )
        can_see = await self._look()
        slot = await self._keep_membership(can_see)
        if not can_see:
            return  # keep the held shards; the other members are unknown now
        if slot is None:
            self._hand_over_uncounted()
            return
        living = [number for number, member in enumerate(self._members) if self._is_one_of_us(member)]
        free = [shard.number for shard in self._shards if not shard.is_held and not shard.elector.is_taken]
        self._start_up.observe([self._members[number].holder for number in living], free)
        await self._confirm()
        if others := self._other_marks():
            self._give_way(max(others))
            return
        self._waits_for = 0
        # Replicas with another layout take no shard while this one holds any, so that none is left for them.
        wanted = quota(self.count, len(living), living.index(slot))
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        if len(held) > wanted:
            self._hand_over(held, len(held) - wanted)
        elif len(held) < wanted:
            await self._take(self._start_up.limit(self._preferred(free), len(held))[: wanted - len(held)])

    async def _look(self) -> bool:
        """List all Leases. Return whether it succeeded."""
        try:
            async with asyncio.timeout(self._times.renew_deadline / 2):
                listed = await self._client.list(LEASES.untyped(), ListOptions(self._namespace))
        except (errors.ClusterError, TimeoutError) as error:
            self._failures.failed(f"leases of {self._namespace}: {str(error) or 'no answer in time'}")
            return False
        self._failures.succeeded()
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
        """Hold a member slot. Return its number, or None if all slots are taken."""
        ours = [number for number, member in enumerate(self._members) if member.is_leader]
        if not ours and can_see:
            free = [number for number, member in enumerate(self._members) if not member.is_taken]
            ours = self._preferred(free)[:1]
        for number in ours:
            await self._members[number].step()
        return next((number for number in ours if self._members[number].is_leader), None)

    async def _take(self, wanted: list[int]) -> None:
        """Take shards. Nothing is written for them until they are confirmed."""
        for number in wanted:
            self._shards[number].is_unconfirmed = True
        await asyncio.gather(*(self._shards[number].elector.step() for number in wanted))
        if await self._look():
            await self._confirm()

    async def _confirm(self) -> None:
        """Use the shards that were taken, or release them if a replica with another layout holds any.

        Two replicas that take shards at the same moment both read the Leases after they wrote theirs, so that at least
        one of them sees the other and releases what it took. If both do, they try again.
        """
        taken = [shard for shard in self._shards if shard.is_unconfirmed]
        has_others = bool(self._other_marks())
        for shard in taken:
            if shard.is_held and has_others:
                await shard.elector.release()
            shard.is_unconfirmed = False
            if shard.is_held:
                self._tell_gained(shard)

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
        """Release everything if other replicas hold all slots."""
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        if held and all(member.is_taken for member in self._members):
            self._hand_over(held, len(held))

    def _other_marks(self) -> set[int]:
        """Return the marks of other layouts that replicas use now."""
        electors = [*(shard.elector for shard in self._shards), *self._beyond]
        holders = [elector.holder for elector in electors if elector.is_taken]
        marks = {int(mark) for holder in holders if (mark := holder.rpartition("/")[2]).isdigit()}
        return marks - {self._mark}

    def _give_way(self, other: int) -> None:
        """Acquire no shard until replicas with another layout are gone. If both hold shards, the larger mark stays."""
        held = [shard for shard in self._shards if shard.is_held and not shard.is_closing]
        if other != self._waits_for:
            self._waits_for = other
            log.info(
                "waiting for replicas with another --shards, --split-namespaces or --shard-seed to stop "
                "(their holder names end with /%d, this one's with /%d)",
                other,
                self._mark,
            )
        if held and self._mark < other:
            self._hand_over(held, len(held))

    async def _release(self, shard: Shard) -> None:
        """Wait for the writes in flight, then release the Lease. If they do not end, the Lease expires."""
        try:
            # A write under way ends by its own deadline, which is within the time that is left of the Lease.
            while self.is_busy(shard.number) and shard.elector.may_write():
                await self._clock.sleep(0.05)
            await shard.elector.release()
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
        held = [shard.elector for shard in self._shards if shard.is_held]
        await asyncio.gather(
            *(elector.release() for elector in [*held, *(m for m in self._members if m.is_leader)])
        )

    def _is_one_of_us(self, member: LeaderElector) -> bool:
        """Return whether a member seems to be alive and uses the same layout."""
        return member.is_leader or (member.is_taken and member.holder.endswith(f"/{self._mark}"))

    def _preferred(self, numbers: list[int]) -> list[int]:
        """Order shards by this replica's preference, so that replicas choose different ones."""
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
        if shard.is_unconfirmed:
            return  # the components are told when it is confirmed
        if held:
            self._tell_gained(shard)
        elif not shard.is_closing:
            self._tell_lost(shard)

    def _tell_gained(self, shard: Shard) -> None:
        for user in self._users:
            user.shard_gained(shard.number)

    def _tell_lost(self, shard: Shard) -> None:
        for user in self._users:
            user.shard_lost(shard.number)
