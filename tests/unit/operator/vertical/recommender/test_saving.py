"""When histories are saved: when they are due, when a shard is handed over, and when the process ends."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import recommended, vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.vertical.recommender.checkpoint_objects import owner_vpa
from trimtab.operator.vertical.recommender.checkpoint_store import WriteReport
from trimtab.operator.vertical.recommender.checkpoint_writer import (
    LAST_SAVE_SECONDS,
    CheckpointSchedule,
    CheckpointWriter,
)
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

BASE = NamespacedName("shop", "base")
INTERVAL, TIMEOUT = 600.0, 20.0


class World:
    """A writer of one VPA with samples, and a store that notes what is written."""

    def __init__(self, *, samples: int = 1) -> None:
        self.clock = VirtualClock()
        self.recommender = Recommender([vpa("base")])
        self.recommender.observe([member("db-0")])
        for _ in range(samples):
            self.recommender.scrape({"db-0": Load(200, 2**30)})
        self.shard = 3
        self.held = [3]
        owner: Any = SimpleNamespace(count=1, held=lambda: tuple(self.held), share=lambda _key: self.shard)
        self.states = ShardedClusterStates(lambda: self.recommender.state, owner)
        self.states.sync_shards()
        self.may_write = True
        self.failure: Exception | None = None
        self.report = WriteReport()
        self.seconds = 0.0
        self.written: list[tuple[float, list[str], float, bool]] = []
        self.kept: list[set[NamespacedName]] = []
        self.warned: list[tuple[str, str]] = []
        store: Any = self
        self.writer = CheckpointWriter(
            self.clock,
            self.states,
            store,
            INTERVAL,
            TIMEOUT,
            lambda name, text: self.warned.append((str(name), text)),
        )

    def keep(self, vpas: Any) -> None:
        self.kept.append(set(vpas))

    async def write(self, checkpoints: Any, seconds: float, *, is_last: bool = False) -> WriteReport:
        names = [checkpoint.metadata.name for checkpoint in checkpoints]
        self.written.append((self.clock.monotonic(), names, seconds, is_last))
        await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        self.report.done |= {owner_vpa(checkpoint) for checkpoint in checkpoints}
        return self.report

    async def save(self) -> list[str]:
        before = len(self.written)
        await self.writer.save_due((BASE,))
        return [name for _, names, _, _ in self.written[before:] for name in names]

    def run(self, scenario: Any) -> None:
        self.clock.run(scenario())


def test_a_history_is_saved_once_per_interval():
    world = World()

    async def scenario() -> None:
        assert await world.save() == ["base-app"]
        assert await world.save() == []
        await asyncio.sleep(INTERVAL)
        assert await world.save() == ["base-app"]
        await asyncio.sleep(INTERVAL - 1)
        assert await world.save() == []
        assert {(seconds, is_last) for _, _, seconds, is_last in world.written} == {(TIMEOUT, False)}
        assert world.kept[0] == {BASE}

    world.run(scenario)


def test_a_history_that_is_not_complete_is_not_saved():
    world = World()

    async def scenario() -> None:
        await world.writer.save_due(())
        assert [names for _, names, _, _ in world.written] == [[]]
        world.states.drop_all()
        assert await world.save() == [], "its shard was lost"

    world.run(scenario)


def test_a_dry_run_saves_nothing():
    world = World()
    world.may_write = False

    async def scenario() -> None:
        await world.save()
        await world.writer.close()
        assert world.written == []

    world.run(scenario)


def test_a_failed_write_is_due_again_and_a_collision_is_a_warning():
    world = World()
    world.report.undone.add(BASE)
    world.report.collisions[BASE] = "rename one of the VPAs"

    async def scenario() -> None:
        assert await world.save() == ["base-app"]
        assert world.warned == [("shop/base", "rename one of the VPAs")]
        assert await world.save() == ["base-app"]
        world.report = WriteReport()
        await world.save()
        assert await world.save() == []

    world.run(scenario)


@pytest.mark.parametrize(
    ("samples", "container", "is_due"),
    [
        pytest.param(1, "app", False, id="every recommended container has samples"),
        pytest.param(1, "log", True, id="another one is recommended, too"),
        pytest.param(0, "app", True, id="no container has samples"),
    ],
)
def test_a_vpa_is_due_until_all_its_containers_have_samples(samples, container, is_due):
    world = World(samples=samples)
    state = world.recommender.state.vpas["shop/base"]
    state.recommendation = vpa(recommendation=recommended("1Gi", container=container)).status.recommendation

    async def scenario() -> None:
        await world.save()
        assert bool(await world.save()) is is_due

    world.run(scenario)


def test_a_lost_shard_is_saved_once_more_in_the_background():
    world = World()
    world.seconds = 4.0

    async def scenario() -> None:
        await world.save()
        world.writer.flush_shard(1)
        assert not world.writer.is_flushing(1), "it has no VPA"
        world.writer.flush_shard(3)
        assert world.writer.is_flushing(3)
        await asyncio.sleep(3)
        assert world.writer.is_flushing(3)
        await asyncio.sleep(2)
        assert not world.writer.is_flushing(3)
        assert world.written[-1] == (4.0, ["base-app"], LAST_SAVE_SECONDS, True)
        world.writer.flush_shard(3)
        assert not world.writer.is_flushing(3), "its history is loaded again first"
        assert await world.save() == ["base-app"], "and is new"

    world.run(scenario)


def test_the_end_waits_for_shards_that_are_being_saved_and_saves_the_others():
    world = World()

    async def scenario() -> None:
        await world.save()
        await world.writer.close()
        assert world.written[-1][1:] == (["base-app"], LAST_SAVE_SECONDS, True)
        world.seconds = 4.0
        world.writer.flush_shard(3)
        await world.writer.close()
        assert not world.writer.is_flushing(3)
        assert world.clock.monotonic() >= 4.0
        assert world.written[-1][1] == []

    world.run(scenario)


@pytest.mark.parametrize(
    ("failure", "seconds", "text"),
    [
        (errors.TransportError("no answer"), 0.0, "is not saved: no answer"),
        (None, LAST_SAVE_SECONDS + 5, "is not saved: it took too long"),
    ],
)
def test_a_last_save_that_fails_or_hangs_is_logged_and_ends(failure, seconds, text, caplog):
    world = World()

    async def scenario() -> None:
        await world.save()
        world.failure, world.seconds = failure, seconds
        await world.writer.close()
        assert world.clock.monotonic() == (0.0 if failure else 10.0)

    world.run(scenario)
    assert text in caplog.text


def test_a_history_is_there_from_its_load_until_its_shard_is_lost():
    world = World()

    async def scenario() -> None:
        await world.writer.save_due(())
        assert not world.writer.has_history(BASE)
        await world.save()
        assert world.writer.has_history(BASE)
        world.writer.flush_shard(3)
        assert not world.writer.has_history(BASE)
        await world.writer.wait_flushed()

    world.run(scenario)


def test_after_losing_the_lease_nothing_is_saved():
    world = World()

    async def scenario() -> None:
        await world.save()
        world.writer.discard()
        await world.writer.close()
        assert world.written[-1][1] == []
        assert await world.save() == ["base-app"], "a new leader's first save"

    world.run(scenario)


def test_a_due_checkpoint_is_saved_at_once_and_then_spread_over_the_interval():
    clock = VirtualClock()
    schedule = CheckpointSchedule(clock, 600.0)
    vpas = [NamespacedName("shop", f"v{number}") for number in range(40)]
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    clock.advance(299)
    assert schedule.due(vpas) == []
    clock.advance(151)
    assert 0 < len(schedule.due(vpas)) < len(vpas)
    clock.advance(150)
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    clock.advance(599)
    assert schedule.due(vpas) == []
    clock.advance(1)
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    schedule.keep(vpas[:1])
    assert schedule.due(vpas) == vpas[1:], "what is dropped is new again"
