"""At no moment two replicas may write for one object, and both rules of the proof are needed for that."""

from tests.unit.cluster.leases.schedules import Play
from trimtab.cluster.leases.family import Family, Shard
from trimtab.cluster.leases.lease import Written

SCHEDULES = 200


def test_no_two_replicas_may_write_for_one_object_and_all_shards_are_held_in_the_end():
    broken = {seed: play.problems[0] for seed in range(SCHEDULES) if (play := Play(seed).run()).problems}
    assert broken == {}


class WithoutLook(Family):
    """Rule (d) is missing: who takes a shard does not look whether a replica with another N took one."""

    async def take(self, shard: Shard) -> None:
        if not self._others() and await shard.lock.write() is Written.TAKEN:
            shard.lock.is_confirmed = True
            self._tell()


def test_a_shard_that_is_used_without_a_look_has_two_deciders():
    assert any("TWO" in str(Play(seed, WithoutLook).run().problems) for seed in range(SCHEDULES))


class RenewsLate(Family):
    """Rule (e) is missing: a late renewal of a Lease that nobody else wrote goes on as if it had been in time."""

    async def step(self) -> None:
        for shard in self._shards:
            lock = shard.lock
            if lock.is_confirmed and lock.is_ours and not lock.may_write():
                lock.is_confirmed = await lock.write() is Written.TAKEN
        await super().step()


def test_a_late_renewal_that_is_no_take_has_two_deciders():
    assert any("TWO" in str(Play(seed, RenewsLate).run().problems) for seed in range(SCHEDULES))


def test_leases_that_somebody_deletes_have_two_deciders_for_a_renewal_at_most():
    """A replica that starts at that moment cannot know the holder. The holder notices at its next renewal."""
    plays = [Play(seed, deletes=True).run() for seed in range(SCHEDULES // 2)]
    assert max(play.together for play in plays) <= 10.0
    assert not [play.problems for play in plays if "STUCK" in str(play.problems)]
