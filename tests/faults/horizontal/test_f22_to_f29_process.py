"""Faults of processes, time and leadership: what holds within one life of the operator holds over all of them."""

import asyncio
from datetime import timedelta

import pytest

from tests.faults.horizontal.scene import held, load
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.transport import Break
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.lease import LeaseTimes
from trimtab.cluster.resource import LEASES, Json

QUICK = LeaseTimes(duration=3, renew_deadline=2, retry=0.5)


async def one_life(stage: Stage, rounds: int, *, after: float = 15) -> None:
    """An operator that is killed after some rounds."""
    actor = Actor(stage, stage.settings())
    await actor.operator.start()
    for _ in range(rounds):
        await stage.step(actor, after=after)
        await stage.follow("web")
    actor.line.crashed.set()
    await actor.close()


def test_f22_a_rate_policy_holds_over_three_kills(both):
    async def scenario(stage: Stage) -> None:
        policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
        await held(stage, behavior={"scaleUp": policy})
        load(stage, 5000)
        for _ in range(4):
            await one_life(stage, 2)
            assert await stage.replicas("web") == 7
        await one_life(stage, 2, after=600)
        assert await stage.replicas("web") > 7

    both(scenario)


@pytest.mark.parametrize(
    "how", [Break.CRASH_AFTER, Break.LOSE_ANSWER], ids=["after the scale", "answer lost"]
)
def test_f22_a_step_that_no_status_tells_of_is_counted_all_the_same(both, how):
    async def scenario(stage: Stage) -> None:
        policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
        await held(stage, behavior={"scaleUp": policy})
        await one_life(stage, 1)
        load(stage, 5000)
        actor = Actor(stage, stage.settings())
        actor.line.break_write = lambda _number, request: how if request.path.endswith("/scale") else None
        await actor.operator.start()
        await stage.step(actor)
        await actor.close()
        for _ in range(3):
            await one_life(stage, 2)
            assert await stage.replicas("web") == 7

    both(scenario)


def test_f23_a_scale_down_window_is_neither_cut_short_nor_begun_again_by_kills(both):
    async def scenario(stage: Stage) -> None:
        await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 120}})
        await one_life(stage, 2)
        load(stage, 100)
        began = stage.clock.monotonic()
        while await stage.replicas("web") == 5:
            await one_life(stage, 1)
            assert stage.clock.monotonic() - began < 300
        took = stage.clock.monotonic() - began
        assert 120 - 15 <= took <= 120 + 30 + (0 if isinstance(stage.clock, VirtualClock) else 30)

    both(scenario)


@pytest.mark.parametrize(
    "how", [Break.CRASH_BEFORE, Break.CONFLICT, Break.UNAVAILABLE], ids=lambda how: how.value
)
@pytest.mark.parametrize("write", [1, 2], ids=["the scale", "the status"])
def test_f24_a_workload_brought_to_zero_wakes_up_whatever_write_failed(both, how, write):
    async def scenario(stage: Stage) -> None:
        await held(stage, minReplicas=0)
        await one_life(stage, 1)
        load(stage, 0)
        actor = Actor(stage, stage.settings())
        actor.line.break_write = lambda number, _request: how if number == write else None
        await actor.operator.start()
        await stage.step(actor)
        await actor.close()
        await stage.follow("web")
        await one_life(stage, 2)
        assert await stage.replicas("web") == 0
        load(stage, 300)
        await one_life(stage, 1)
        assert await stage.replicas("web") == 3

    both(scenario)


class PausedClock:
    """The clock of a process that can be stopped: whoever sleeps on it wakes when the process goes on."""

    def __init__(self, inner):
        self.now, self.monotonic, self._inner = inner.now, inner.monotonic, inner
        self.running = asyncio.Event()
        self.running.set()

    async def sleep(self, seconds):
        await self._inner.sleep(seconds)
        await self.running.wait()


class Candidate:
    """An operator with an election, as one process; `running` stops both."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.clock = PausedClock(stage.clock)
        self._stage = stage
        self._actor = Actor(stage, stage.settings())
        self._client = Client(self.clock, self._actor.line, seed=len(name))
        self.elector = Family(self._client, stage.namespace, "trimtab", name, times=QUICK)
        self.actor = Actor(stage, stage.settings(), fence=self.elector)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.actor.operator.start()
        self._task = asyncio.ensure_future(self.elector.run())

    async def leads(self) -> bool:
        return self.elector.may_write()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.actor.close()

    def accepted(self) -> int:
        return sum(one.status == 200 for one in self.actor.line.writes)


def test_f25_a_leader_that_was_stopped_past_its_lease_writes_nothing(both):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        old, new = Candidate(stage, "old"), Candidate(stage, "newer")
        await old.start()
        await stage.wait_for(old.leads)
        await old.actor.operator.step()
        await new.start()
        old.clock.running.clear()
        await stage.wait_for(new.leads)
        load(stage, 900)
        await new.actor.operator.step()
        assert await stage.replicas("web") == 9
        before = old.accepted()
        load(stage, 100)
        old.clock.running.set()
        for _ in range(5):
            await old.actor.operator.step()
        assert old.accepted() == before
        assert await stage.replicas("web") == 9
        await new.stop()
        await old.stop()

    both(scenario)


def test_f25_a_write_held_up_past_the_lease_is_refused_by_its_precondition(both):
    """The process is stopped between its look at the fence and its write."""

    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with stage.running() as old, stage.running() as new:
            await stage.step(old)
            going = asyncio.Event()
            held_up: list[str] = []

            async def hold_up(request, send):
                if request.path.endswith("/scale") and b'"replicas":7' in (request.body or b""):
                    held_up.append(request.path)
                    await going.wait()
                return await send(request)

            stage.transport.around = hold_up
            load(stage, 700)
            late = asyncio.ensure_future(old.operator.step())

            async def is_held_up() -> bool:
                return bool(held_up)

            await stage.wait_for(is_held_up)
            load(stage, 900)
            await stage.step(new)
            assert await stage.replicas("web") == 9
            going.set()
            await late
            assert [one.status for one in old.line.writes if one.is_scale] in ([409], [409, 200])
            assert await stage.replicas("web") == 9

    both(scenario)


@pytest.mark.parametrize("edit", ["deleted", "holder edited"])
@in_virtual_time
async def test_f26_a_lease_that_somebody_meddled_with_has_one_leader_again(stage, edit):
    await held(stage)
    one = Candidate(stage, "one")
    await one.start()
    await stage.wait_for(one.leads)
    if edit == "deleted":
        await stage.client.delete(LEASES, "trimtab-0", stage.namespace)
    else:
        body = {"spec": {"holderIdentity": "somebody"}}
        await stage.client.patch(LEASES.untyped(), "trimtab-0", stage.namespace, body)
    await stage.pass_time(20)
    assert await one.leads()
    load(stage, 900)
    await one.actor.operator.step()
    assert await stage.replicas("web") == 9
    await one.stop()


class JumpingClock:
    """A wall clock that somebody sets; intervals stay what they are."""

    def __init__(self, inner):
        self._inner, self.ahead = inner, 0.0
        self.monotonic, self.sleep = inner.monotonic, inner.sleep

    def now(self):
        return self._inner.now() + timedelta(seconds=self.ahead)


@pytest.mark.parametrize("jump", [3600, -3600], ids=["an hour ahead", "an hour back"])
@in_virtual_time
async def test_f27_a_wall_clock_that_is_set_moves_no_window(stage, jump):
    stage.clock = JumpingClock(stage.clock)
    await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 120}})
    stage.metrics.now = lambda: stage.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        load(stage, 100)
        await stage.step(actor)
        stage.clock.ahead = jump
        for _ in range(6):
            await stage.step(actor)
            assert await stage.replicas("web") == 5
        await stage.steps(actor, 3)
        assert await stage.replicas("web") == 1


@in_virtual_time
async def test_f27_times_stored_by_a_clock_that_was_ahead_do_not_hold_for_ever(stage):
    stage.clock = JumpingClock(stage.clock)
    stage.metrics.now = lambda: stage.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 120}})
    stage.clock.ahead = 3600
    await one_life(stage, 2)
    stage.clock.ahead = 0.0
    load(stage, 100)
    async with stage.running() as actor:
        await stage.steps(actor, 11)
    assert await stage.replicas("web") == 1


@in_virtual_time
async def test_f28_an_event_loop_that_stood_still_finds_the_fence_closed(stage):
    await held(stage)
    one = Candidate(stage, "one")
    await one.start()
    await stage.wait_for(one.leads)
    await one.actor.operator.step()
    before = one.accepted()
    load(stage, 900)

    def stand_still(request):
        if "queue-web" in request.path:
            one.clock.running.clear()
            assert isinstance(stage.clock, VirtualClock)
            stage.clock.advance(30)

    one.actor.line.answer = stand_still
    one.actor.operator._batches.reconcile_all(one.actor.operator.hpas)
    await one.actor.operator._reconciler.wait_idle()
    assert one.accepted() == before
    one.clock.running.set()
    await one.stop()


@in_virtual_time
async def test_f29_a_stop_in_the_middle_of_a_cycle_ends_soon_and_releases_the_lease(stage):
    await held(stage)
    stage.metrics.hang.add("external.metrics.k8s.io")
    one = Candidate(stage, "one")
    await one.start()
    await stage.wait_for(one.leads)
    busy = asyncio.ensure_future(one.actor.operator.step())
    await stage.pass_time(1)
    began = stage.clock.monotonic()
    await one.stop()
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    assert stage.clock.monotonic() - began <= 5
    lease: Json = await stage.client.get(LEASES.untyped(), "trimtab-0", stage.namespace)
    assert not lease["spec"].get("holderIdentity")
