"""How checkpoints become history, and what the recommender waits for."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.clock import VirtualClock
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.input.checkpoints import save_checkpoints
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint
from trimtab.operator.vertical.recommender.bootstrap import HistoryBootstrap
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.history_loader import HistoryFailure

BASE = NamespacedName("shop", "base")
SOON = 5.0


def checkpoint(container: str) -> VerticalPodAutoscalerCheckpoint:
    """Save an hour of usage, as of a container of this name."""
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    recommender.scrape({"db-0": Load(200, 2**30)}, minutes=60)
    (saved,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    return msgspec.structs.replace(
        saved,
        metadata=msgspec.structs.replace(saved.metadata, name=f"base-{container}"),
        spec=msgspec.structs.replace(saved.spec, container_name=container),
    )


class Loader:
    """Reads the history of a namespace until it is told that the read has ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.counts: dict[str, int] = {}
        self.is_closed = False

    def want(self, _namespace: str, _keys: Any) -> None:
        """Begin nothing: this loader never finds a history."""

    def take(self, _namespace: str) -> None:
        return None

    async def finished(self, namespaces: Iterable[str]) -> None:
        assert set(namespaces) == {"shop"}
        await self.ended.wait()

    async def close(self) -> None:
        self.is_closed = True


class World:
    """A bootstrap of one VPA with these checkpoints."""

    def __init__(self, *stored: VerticalPodAutoscalerCheckpoint, loader: Any = None) -> None:
        self.clock = VirtualClock()
        self.refused: dict[str, str] = {}
        self._stored = stored
        everything: Any = SimpleNamespace(count=1, held=lambda: (0,), share=lambda _: 0)
        self.states = ShardedClusterStates(ClusterState, everything)
        self.states.sync_shards()
        (self.state,) = self.states
        self.state.add_or_update_vpa(vpa("base"), Selector.parse("app=db"))
        view: Any = SimpleNamespace(pods=())
        itself: Any = self
        self.bootstrap = HistoryBootstrap(view, self.states, itself, itself, loader)

    async def read(self, vpas: list[NamespacedName]) -> Any:
        return {name: list(self._stored) for name in vpas}

    async def load(self) -> Any:
        control: Any = SimpleNamespace(claims={})
        nothing: Any = None
        return await self.bootstrap.load(control, [BASE], nothing, self.clock.now())

    def loaded(self) -> set[str]:
        self.clock.run(self.load())
        return set(self.state.vpas["shop/base"].initial)


def test_a_rejected_checkpoint_hides_no_other(caplog):
    good, other = checkpoint("app"), checkpoint("log")
    bad = msgspec.structs.replace(
        checkpoint("odd"), metadata=msgspec.structs.replace(good.metadata, name="another")
    )
    world = World(good, bad, other)
    assert world.loaded() == {"app", "log"}
    assert "'base-odd'; delete it" in caplog.text


def test_a_rejected_checkpoint_says_nothing_about_what_was_saved():
    bad = checkpoint("odd")
    renamed = msgspec.structs.replace(bad, metadata=msgspec.structs.replace(bad.metadata, name="another"))
    world = World(renamed)
    assert world.loaded() == set()
    assert world.bootstrap.saved_until(BASE) == 0


def test_kills_count_from_the_newest_checkpoint_on():
    old, new = checkpoint("app"), checkpoint("log")
    assert new.status.last_update_time is not None
    earlier = msgspec.structs.replace(
        old.status, last_update_time=new.status.last_update_time.replace(year=2020)
    )
    for stored in (
        (msgspec.structs.replace(old, status=earlier), new),
        (new, msgspec.structs.replace(old, status=earlier)),
    ):
        world = World(*stored)
        assert world.loaded() == {"app", "log"}
        assert world.bootstrap.saved_until(BASE) == times.to_ns(new.status.last_update_time)
    world.state.retire_vpa("shop/base")
    world.states.drop_all()
    world.states.sync_shards()
    world.clock.run(world.load())
    assert world.bootstrap.saved_until(BASE) == 0, "the VPA is gone"


async def ends(waiting: Any, clock: VirtualClock) -> bool:
    """Return whether something ends soon."""
    task = asyncio.ensure_future(waiting)
    await clock.sleep(SOON)
    is_done: bool = task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return is_done


def test_the_recommender_waits_for_histories_that_are_being_read():
    async def main() -> None:
        assert not await ends(world.bootstrap.wait_loaded(), world.clock), "nobody waits for a history"
        progress = await world.load()
        assert progress.waiting == {"shop"}
        assert not world.state.vpas["shop/base"].initial
        assert not await ends(world.bootstrap.wait_loaded(), world.clock), "it is being read"
        loader.ended.set()
        assert await ends(world.bootstrap.wait_loaded(), world.clock)
        await world.bootstrap.close()
        assert loader.is_closed

    loader = Loader()
    world = World(checkpoint("app"), loader=loader)
    world.clock.run(main())


@pytest.mark.parametrize("times_loaded", [1, 2])
def test_without_prometheus_nothing_is_waited_for(times_loaded):
    world = World(checkpoint("app"))

    async def main() -> None:
        for _ in range(times_loaded):
            assert (await world.load()).waiting == frozenset()
        assert not await ends(world.bootstrap.wait_loaded(), world.clock)
        await world.bootstrap.close()

    world.clock.run(main())
    assert set(world.state.vpas["shop/base"].initial) == {"app"}


class Failing(Loader):
    """A loader whose reads all fail."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = 0

    def want(self, _namespace: str, _keys: Any) -> None:
        self.wanted += 1

    def take(self, _namespace: str) -> Any:
        return HistoryFailure("down")


def test_a_history_that_cannot_be_read_is_replaced_by_checkpoints_once():
    loader = Failing()
    world = World(checkpoint("app"), loader=loader)

    async def main() -> None:
        progress = await world.load()
        assert (progress.waiting, progress.failed) == (frozenset(), {"shop": "down"})
        world.bootstrap._missing.add(BASE)
        progress = await world.load()
        assert progress.failed == {}

    world.clock.run(main())
    assert set(world.state.vpas["shop/base"].initial) == {"app"}
    assert loader.wanted == 1


def test_a_vpa_whose_shard_was_lost_hides_none_after_it():
    world = World(checkpoint("app"))
    gone = NamespacedName("shop", "a-gone")

    async def read(vpas: list[NamespacedName]) -> Any:
        world.state.vpas.pop("shop/a-gone")
        return {BASE: [checkpoint("app")]}

    async def main() -> None:
        world.state.add_or_update_vpa(vpa("a-gone"), Selector.parse("app=db"))
        control: Any = SimpleNamespace(claims={})
        nothing: Any = None
        await world.bootstrap.load(control, [gone, BASE], nothing, world.clock.now())

    world.read = read  # type: ignore[method-assign]  # the shard is lost while the list is read
    world.clock.run(main())
    assert set(world.state.vpas["shop/base"].initial) == {"app"}
