"""When a process with shards begins and ends to watch the namespaces of a shard."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.cache.parts import ShardedShare, Share
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.leases.fence import Fence, NoFence
from trimtab.operator.process import make_family
from trimtab.operator.settings.settings import Settings
from trimtab.operator.share_keeper import ShareKeeper, share_of
from trimtab_lab.apiserver.server import Server

KEEP_SECONDS = 30.0


class World:
    """A keeper whose shards say what a test says, and which notes what is watched when."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.busy: set[int] = set()
        self.changes: list[tuple[float, str, int]] = []
        self.served: list[Any] = []
        shards: Any = SimpleNamespace(
            serve=self.served.append,
            is_busy=self.busy.__contains__,
        )
        share: Any = SimpleNamespace(
            enter=lambda shard: self.changes.append((self.clock.monotonic(), "enter", shard)),
            leave=lambda shard: self.changes.append((self.clock.monotonic(), "leave", shard)),
        )
        client: Any = SimpleNamespace(clock=self.clock)
        self.keeper = ShareKeeper(client, shards, share)


def test_a_keeper_follows_its_shards():
    world = World()
    assert world.served == [world.keeper]
    assert not world.keeper.is_shard_busy(0)


def test_a_lost_shard_is_watched_a_while_longer():
    world = World()

    async def main() -> None:
        world.keeper.shard_gained(2)
        await asyncio.sleep(10)
        world.keeper.shard_lost(2)
        world.keeper.shard_lost(2)
        await asyncio.sleep(KEEP_SECONDS * 3)
        world.keeper.shard_gained(2)
        world.keeper.shard_lost(2)
        await asyncio.sleep(KEEP_SECONDS * 3)

    world.clock.run(main())
    again = 10 + KEEP_SECONDS * 3
    assert world.changes == [
        (0.0, "enter", 2),
        (10 + KEEP_SECONDS, "leave", 2),
        (again, "enter", 2),
        (again + KEEP_SECONDS, "leave", 2),
    ]


def test_a_shard_that_comes_back_in_time_is_not_left():
    world = World()

    async def main() -> None:
        world.keeper.shard_gained(1)
        world.keeper.shard_lost(1)
        await asyncio.sleep(KEEP_SECONDS - 1)
        world.keeper.shard_gained(1)
        await asyncio.sleep(KEEP_SECONDS * 3)

    world.clock.run(main())
    assert [change for _, change, _ in world.changes] == ["enter", "enter"]


def test_a_shard_is_left_after_its_last_write():
    world = World()

    async def main() -> None:
        world.busy.update({1, 2})
        world.keeper.shard_lost(1)
        await asyncio.sleep(KEEP_SECONDS + 5)
        assert world.changes == []
        world.busy.discard(1)
        await asyncio.sleep(1)

    world.clock.run(main())
    ((left_at, change, shard),) = world.changes
    assert (change, shard) == ("leave", 1)
    assert KEEP_SECONDS + 5 <= left_at <= KEEP_SECONDS + 6


@pytest.mark.parametrize(
    ("components", "shards", "is_sharded"),
    [
        (("horizontal",), 2, True),
        (("recommender",), 2, True),
        (("horizontal", "recommender", "roles"), 2, True),
        (("recommender", "updater"), 2, False),
        (("horizontal", "admission"), 2, False),
        (("horizontal",), 1, False),
        (("recommender",), 1, False),
    ],
)
def test_only_a_process_whose_components_all_share_their_work_watches_its_shards(
    components, shards, is_sharded
):
    clock = VirtualClock()
    settings = Settings.of(components=components, shards=max(shards, 2), watch_namespaces=("a", "b"))

    async def main() -> Share:
        async with Server(clock, seed=1) as server:
            client = Client(clock, InProcessTransport(server), seed=1)
            fence: Fence = make_family(client, settings, "one") if shards > 1 else NoFence()
            return share_of(client, fence, settings)

    assert isinstance(clock.run(main()), ShardedShare) is is_sharded
