"""Replicas share shards by their Leases: each shard once, none lost, all handed over, in virtual time."""

import asyncio

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.leases.fake_leases import LEASES, FakeLeases, User
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family, shard_of


class World:
    def __init__(self, clock):
        self.clock = clock
        self.api = FakeLeases()
        self.tasks = {}

    def replica(self, name, count, users=1, **options):
        client = Client(self.clock, AsgiTransport(self.api), seed=len(self.tasks))
        shards = Family(client, "trimtab", "hpa", name, count, **options)
        components = [User() for _ in range(users)]
        for user in components:
            shards.serve(user)
        self.tasks[name] = asyncio.create_task(shards.run())
        return shards, *components

    async def stop(self, name):
        task = self.tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(scenario):
    clock = VirtualClock()

    async def main():
        world = World(clock)
        try:
            return await scenario(world)
        finally:
            for name in list(world.tasks):
                await world.stop(name)

    return clock.run(main())


def test_a_single_replica_holds_all_shards_and_tells_every_component():
    async def scenario(world):
        shards, first, second = world.replica("a", 4, users=2)
        assert not shards.may_write()
        assert shards.time_left() == 0.0
        await world.clock.sleep(10)
        assert shards.held() == (0, 1, 2, 3)
        assert shards.may_write()
        assert 0 < shards.time_left() <= 10
        assert first.shards == second.shards == {0, 1, 2, 3}
        assert shards.health() == {}
        shard = shards.of("shop/web")
        assert (shard.number, shard) == (shard_of("shop", 4), shards[shard.number])
        assert shard.epoch is not None
        await world.clock.sleep(60)
        assert shards.held() == (0, 1, 2, 3)
        assert [change for change, _ in first.told] == ["gained"] * 4
        await world.stop("a")
        assert {world.api.holder(f"hpa-{number}") for number in range(4)} == {""}
        assert {world.api.holder(f"hpa-member-{number}") for number in range(16)} == {""}
        assert shard.epoch is None
        assert shard.time_left() == 0.0

    run(scenario)


class Meeting(FakeLeases):
    """Lets lists of two processes wait for each other, so that both see the Leases as they were before either wrote."""

    def __init__(self):
        super().__init__()
        self.lists = 0
        self.met = asyncio.Event()

    async def __call__(self, scope, receive, send):
        if scope["method"] == "GET" and scope["path"] == LEASES and not self.met.is_set():
            self.lists += 1
            if self.lists == 2:
                self.met.set()
            await self.met.wait()
        await super().__call__(scope, receive, send)


def test_replicas_with_different_numbers_that_take_shards_at_once_never_both_work():
    async def scenario(world):
        world.api = Meeting()
        (old, _), (new, user) = (world.replica(name, count) for name, count in (("a", 4), ("b", 3)))
        worked = set()
        for _ in range(400):
            await world.clock.sleep(0.05)
            assert not (old.may_write() and new.may_write())
            worked |= {name for name, shards in (("a", old), ("b", new)) if shards.may_write()}
        assert worked, "neither of them worked"
        assert user.shards == set(new.held())

    run(scenario)


def test_replicas_share_evenly_and_the_rest_takes_over_when_one_ends():
    async def scenario(world):
        replicas = {name: world.replica(name, 5) for name in ("a", "b")}
        for _ in range(30):
            await world.clock.sleep(1)
            held = [shard for shards, _ in replicas.values() for shard in shards.held()]
            assert len(held) == len(set(held))
        assert sorted(len(shards.held()) for shards, _ in replicas.values()) == [2, 3]
        assert sorted(held) == [0, 1, 2, 3, 4]
        for shards, user in replicas.values():
            assert set(shards.held()) == user.shards
        await world.stop("a")
        await world.clock.sleep(10)
        assert replicas["b"][0].held() == (0, 1, 2, 3, 4)

    run(scenario)


def test_a_late_replica_gets_its_share_after_writes_in_flight_have_ended():
    async def scenario(world):
        shards, user = world.replica("a", 4)
        await world.clock.sleep(10)
        user.busy = {0, 1, 2, 3}
        late, _ = world.replica("b", 4)
        await world.clock.sleep(5)
        assert len(shards.held()) == 2
        assert len(user.shards) == 2
        given = set(range(4)) - set(shards.held())
        assert late.held() == ()
        assert {world.api.holder(f"hpa-{number}") for number in given} == {"a/4"}
        assert all(shards[number].time_left() == 0.0 for number in given)
        assert all(shards[number].lock.may_write() and shards[number].is_closing for number in given)
        user.busy = set()
        await world.clock.sleep(5)
        assert set(late.held()) == given
        await world.clock.sleep(30)
        assert (len(shards.held()), len(late.held())) == (2, 2)

    run(scenario)


def test_one_busy_component_of_two_delays_a_hand_over():
    async def scenario(world):
        _, idle, busy = world.replica("a", 2, users=2)
        await world.clock.sleep(10)
        busy.busy = {0, 1}
        late, _ = world.replica("b", 2)
        await world.clock.sleep(5)
        assert late.held() == ()
        busy.busy, idle.busy = set(), set()
        await world.clock.sleep(5)
        assert len(late.held()) == 1

    run(scenario)


@pytest.mark.parametrize("old", [2, 6])
def test_replicas_of_another_number_of_shards_are_waited_for(old):
    """The old ones handed over a share of their shards, which nobody took until they ended."""

    async def scenario(world):
        before, _ = world.replica("old", old)
        await world.clock.sleep(10)
        assert len(before.held()) == old
        after, _ = world.replica("new", 4)
        for _ in range(40):
            await world.clock.sleep(1)
            # Objects of one are in other shards of the other, so that only one of them may write.
            assert not after.may_write()
            assert before.held() == tuple(range(old))
        await world.stop("old")
        await world.clock.sleep(20)
        assert after.held() == (0, 1, 2, 3)

    run(scenario)


@pytest.mark.parametrize("count", [4, 12])
def test_a_holder_keeps_its_shards_and_takes_none_while_another_number_is_seen(count):
    async def scenario(world):
        shards, _ = world.replica("a", count)
        await world.clock.sleep(30)
        world.api.hold("hpa-1", "other/9")
        await world.clock.sleep(20)
        assert shards.held() == tuple(number for number in range(count) if number != 1)
        assert shards.waits_for == "other/9"

    run(scenario)


def test_a_replica_that_cannot_see_the_leases_keeps_its_own_and_takes_none():
    async def scenario(world):
        shards, _ = world.replica("a", 3)
        await world.clock.sleep(10)
        world.api.fault = lambda request: (
            Answer(500, status(500)) if request.method == "GET" and request.path == LEASES else None
        )
        await world.clock.sleep(25)
        assert shards.health() == {}
        await world.clock.sleep(10)
        assert shards.held() == (0, 1, 2)
        assert "listing leases trimtab" in shards.health()["leases"]
        late, _ = world.replica("b", 3)
        await world.clock.sleep(20)
        assert late.held() == ()
        world.api.fault = None
        await world.clock.sleep(20)
        assert shards.health() == {}
        assert (len(shards.held()), len(late.held())) in {(2, 1), (1, 2)}

    run(scenario)


def test_a_lost_shard_is_told():
    async def scenario(world):
        shards, user = world.replica("a", 2)
        await world.clock.sleep(10)
        world.api.fault = lambda request: Answer(500, status(500))
        await world.clock.sleep(20)
        assert shards.held() == ()
        assert user.shards == set()
        assert [change for change, _ in user.told] == ["gained", "gained", "lost", "lost"]
        world.api.fault = None
        await world.clock.sleep(30)
        assert user.shards == {0, 1}

    run(scenario)


def test_a_replica_without_a_member_slot_hands_its_shards_over():
    async def scenario(world):
        shards, user = world.replica("a", 2)
        await world.clock.sleep(10)
        for number in range(16):
            world.api.hold(f"hpa-member-{number}", f"other-{number}/2")
        await world.clock.sleep(10)
        assert shards.held() == ()
        assert user.shards == set()
        assert {world.api.holder(f"hpa-{number}") for number in range(2)} == {""}
        # Nobody takes them all the same.
        await world.clock.sleep(60)
        assert shards.held() == (0, 1)

    run(scenario)


def test_annotations_are_those_of_shards_and_not_of_members():
    async def scenario(world):
        world.replica("a", 2, annotations={"format": "2"})
        await world.clock.sleep(10)
        marked = {
            path.rpartition("/")[2]
            for path, lease in world.api.by_path.items()
            if lease["metadata"].get("annotations", {}).get("format") == "2"
        }
        assert marked == {"hpa-0", "hpa-1"}

    run(scenario)


def test_replicas_choose_different_shards_first():
    async def scenario(world):
        replicas = [world.replica(f"r{number}", 12)[0] for number in range(6)]
        await world.clock.sleep(60)
        return {shards.identity: shards.held() for shards in replicas}

    held = run(scenario)
    assert sorted(number for numbers in held.values() for number in numbers) == list(range(12))
    assert {len(numbers) for numbers in held.values()} == {2}


def test_only_what_is_above_the_quota_is_handed_over():
    async def scenario(world):
        shards, user = world.replica("a", 5)
        await world.clock.sleep(10)
        late, _ = world.replica("b", 5)
        await world.clock.sleep(20)
        lost = [shard for change, shard in user.told if change == "lost"]
        assert (len(lost), len(user.told)) in {(2, 7), (3, 8)}
        assert sorted((len(shards.held()), len(late.held()))) == [2, 3]
        assert set(late.held()) == set(lost)

    run(scenario)


def test_replicas_that_start_together_share_evenly_within_seconds():
    async def scenario(world):
        replicas = []
        for number in range(4):
            replicas.append(world.replica(f"r{number}", 4))
            await world.clock.sleep(3)
        await world.clock.sleep(10)
        assert [len(shards.held()) for shards, _ in replicas] == [1, 1, 1, 1]

    run(scenario)


def test_a_replica_takes_one_shard_per_look():
    async def scenario(world):
        shards, _ = world.replica("a", 4)
        for count in (1, 2, 3, 4):
            await world.clock.sleep(1)
            assert len(shards.held()) == count
            await world.clock.sleep(1)

    run(scenario)


def test_a_shard_that_nobody_takes_for_a_lease_is_taken_beyond_the_quota_and_kept():
    """A member that renews its own Lease and no other, as under rules that do not name all of them."""

    async def scenario(world):
        for number in range(3):
            world.api.hold(f"hpa-member-{number}", f"idle-{number}/4")
        shards, _ = world.replica("a", 4)
        await world.clock.sleep(14)
        assert len(shards.held()) == 1
        await world.clock.sleep(20)
        assert shards.held() == (0, 1, 2, 3)
        await world.clock.sleep(60)
        assert shards.held() == (0, 1, 2, 3)
        # Another member joins: the shards are shared again.
        world.replica("b", 4)
        await world.clock.sleep(10)
        assert len(shards.held()) == 1

    run(scenario)
