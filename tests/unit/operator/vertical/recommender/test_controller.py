"""The recommender as a component: what it keeps of a lease, what it shows, and what it waits for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.resource import STATEFUL_SETS
from trimtab.model.crds import all_crds
from trimtab.operator.control_loop import NOT_STARTED
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.recommender.controller import Recommender
from trimtab.operator.vertical.wiring import VerticalRuntime, make_recommender
from trimtab_lab.apiserver.server import Server

SHARD = 0


async def prepare(client: Client) -> None:
    """Create a StatefulSet with a VPA."""
    for crd in all_crds():
        await client.create(CRDS, crd)
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    labels = {"app": "db"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "none"}]}}
    spec = {"serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    await client.create(STATEFUL_SETS.untyped(), {"metadata": {"name": "db"}, "spec": spec}, "shop")
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    await client.create(VPAS.untyped(), {"metadata": {"name": "base"}, "spec": {"targetRef": target}}, "shop")


def play(scenario: Callable[[Recommender, VirtualClock], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            await prepare(client)
            settings = Settings.of(components=("recommender",))
            site = VerticalRuntime(Runtime(clock, client, settings))
            recommender = make_recommender(site)
            await site.view.wait_synced()
            try:
                await scenario(recommender, clock)
            finally:
                await site.runtime.close()

    clock.run(main())


def test_a_new_leader_starts_from_checkpoints():
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        assert recommender.model_of("shop/base") is None, "no shard is held before the first step"
        await recommender.step()
        known = recommender.model_of("shop/base")
        assert known is not None
        await recommender.step()
        assert recommender.model_of("shop/base") is known
        recommender.lease_acquired()
        await recommender.step()
        assert recommender.recommendation("shop/base") is not None
        assert recommender.recommendation("shop/none") is None
        assert recommender.model_of("shop/base") not in {None, known}
        assert recommender.model_of("shop/none") is None

    play(scenario)


def test_a_shard_is_busy_while_a_status_or_a_checkpoint_is_written(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        parts: dict[str, Any] = {"is_flushing": recommender._checkpoints, "is_busy": recommender._states}
        for busy in ((), ("is_flushing",), ("is_busy",), ("is_flushing", "is_busy")):
            for name, part in parts.items():
                monkeypatch.setattr(part, name, lambda shard, found=name in busy: found and shard == SHARD)
            assert recommender.is_shard_busy(SHARD) is bool(busy)
            assert not recommender.is_shard_busy(SHARD + 1)

    play(scenario)


def test_the_page_of_estimates_is_that_of_the_replica_that_decides(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        await recommender.step()
        page = recommender.pages()["/estimates"]
        for name in ("shop/base", "shop/none", "base", ""):
            assert page(name) is None, "no estimator answered"
        ownership = recommender._deps.ownership
        monkeypatch.setattr(ownership, "describe_owner", lambda name: f"{name} is held by b")
        with pytest.raises(HeldByAnotherReplica, match="shop/base is held by b"):
            page("shop/base")

    play(scenario)


def test_kills_are_compared_with_checkpoints_by_the_interval_of_the_loop(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        periods: list[int] = []
        samples = recommender._samples
        monkeypatch.setattr(samples, "add_ooms", lambda *arguments: periods.append(arguments[-1]))
        await recommender.step()
        assert periods == [60_000_000_000]

    play(scenario)


def test_problems_are_those_of_the_last_step(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        assert recommender.health() == {"recommender": NOT_STARTED}
        await recommender.step()
        assert recommender.health() == {}
        monkeypatch.setattr(recommender._samples, "add_usage", _nothing)
        recommender._deps.usage.failures["shop"] = "503"
        recommender._statuses.failures["shop/base"] = "409"
        monkeypatch.setattr(recommender._statuses, "write", _nothing)
        await recommender.step()
        want = {"usage of shop": "503", "status of shop/base": "409"}
        assert recommender.health() == want

    play(scenario)


async def _nothing(*_arguments: Any) -> None:
    """Write nothing."""


def test_each_step_is_measured(monkeypatch):
    async def scenario(recommender: Recommender, clock: VirtualClock) -> None:
        build = recommender._builder.build

        def slowly(*arguments: Any) -> Any:
            clock.advance(4)
            return build(*arguments)

        monkeypatch.setattr(recommender._builder, "build", slowly)
        await recommender.step()
        name = "vpa_recommender_execution_latency_seconds_sum"
        seconds = {
            sample.labels["step"]: sample.value
            for family in recommender._metrics.steps.collect()
            for sample in family.samples
            if sample.name == name
        }
        assert seconds == {
            "LoadVPAs": 0.0,
            "LoadPods": 0.0,
            "LoadMetrics": 0.0,
            "DeleteRemovedPods": 0.0,
            "UpdateVPAs": 4.0,
            "MaintainCheckpoints": 0.0,
            "GarbageCollect": 0.0,
            "total": 4.0,
        }

    play(scenario)


def test_the_watch_of_evictions_ends_with_the_component():
    async def scenario(recommender: Recommender, clock: VirtualClock) -> None:
        await recommender.start()
        watching = recommender._watching
        assert watching is not None
        await clock.sleep(1)
        assert not watching.done()
        await recommender.close()
        assert watching.done()

    play(scenario)


def test_a_component_that_never_started_can_be_closed(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        closed: list[str] = []

        async def close(name: str) -> None:
            closed.append(name)

        monkeypatch.setattr(recommender._history, "close", lambda: close("history"))
        monkeypatch.setattr(recommender._checkpoints, "close", lambda: close("checkpoints"))
        await recommender.close()
        assert closed == ["history", "checkpoints"]
        monkeypatch.setattr(recommender._deps.ownership, "may_write", lambda: False)
        await recommender.close()
        assert closed == ["history", "checkpoints", "history"], "the next leader saves what it has"

    play(scenario)


def test_a_pause_ends_when_a_history_is_read(monkeypatch):
    async def scenario(recommender: Recommender, _clock: VirtualClock) -> None:
        waited = asyncio.Event()

        async def wait_loaded() -> None:
            waited.set()

        monkeypatch.setattr(recommender._history, "wait_loaded", wait_loaded)
        wakers = [asyncio.ensure_future(waker) for waker in recommender.wakers()]
        await asyncio.wait(wakers, return_when=asyncio.FIRST_COMPLETED)
        for waker in wakers:
            waker.cancel()
        await asyncio.gather(*wakers, return_exceptions=True)
        assert waited.is_set()

    play(scenario)
