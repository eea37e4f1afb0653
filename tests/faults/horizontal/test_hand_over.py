"""A fail-over forgets nothing: windows and rates go on as if one process had led all the time.

The tests before these let the stand-by start, or lose the Lease, just before it took over: what it then took for the
last sign of life of the leader happened to be recent. A stand-by that has waited for an hour is the usual case.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.horizontal.copies import PERIOD, Copy, holder, is_about_leases, leads, moved, running
from tests.faults.horizontal.scene import becomes, held, load
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from tests.support.transport import Break, status
from trimtab.cluster.transport import Request

WINDOW = 300.0
RATE = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}}


def window(seconds: float) -> dict[str, object]:
    return {"scaleDown": {"stabilizationWindowSeconds": int(seconds)}}


def undated() -> Any:
    """Return no date for samples: each copy would compare it with its own clock, which here may be wrong."""
    return None


async def peaked(stage: Stage, within: float = 2 * PERIOD) -> float:
    """Let the load rise to 9 replicas and fall to 5; return when it fell."""
    load(stage, 900)
    await becomes(stage, 9, within=within)
    await stage.follow("web")
    load(stage, 500)
    await stage.clock.sleep(PERIOD + 1)
    return stage.clock.monotonic() - PERIOD


async def seconds_at(stage: Stage, replicas: int, since: float, most: float) -> float:
    """Return how long after `since` the workload left these replicas."""
    while await stage.replicas("web") == replicas:
        await stage.clock.sleep(1)
        assert stage.clock.monotonic() - since < most
    return stage.clock.monotonic() - since


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("waited", [0, 60, 200, 400, 3600])
@in_virtual_time
async def test_the_window_lasts_however_long_the_stand_by_waited(stage, waited, end):
    """A stand-by that waited longer than the window used to scale down 16 s after the peak (RH-H1)."""
    await held(stage, behavior=window(WINDOW))
    first, second = Copy(stage, "first"), Copy(stage, "the second")
    first.start()
    was = await leads(stage)
    async with running(second):
        await stage.clock.sleep(2 * PERIOD + waited)
        peak = await peaked(stage)
        await (first.kill() if end == "kill" else first.stop())
        await moved(stage, was)
        assert WINDOW - 2 * PERIOD <= await seconds_at(stage, 9, peak, 2 * WINDOW) <= WINDOW + 3 * PERIOD
        assert await stage.replicas("web") == 5


@in_virtual_time
async def test_a_rate_policy_holds_over_a_fail_over(stage):
    """2 pods in 600 s gave 4 pods in 80 s (RH-H1)."""
    policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
    await held(stage, behavior={"scaleUp": policy})
    first = Copy(stage, "first")
    first.start()
    was = await leads(stage)
    async with running(Copy(stage, "the second")):
        await stage.clock.sleep(3600)
        load(stage, 5000)
        await becomes(stage, 7, within=2 * PERIOD)
        await stage.clock.sleep(PERIOD)
        await first.kill()
        await moved(stage, was)
        await stage.clock.sleep(400)
        assert await stage.replicas("web") == 7
        await becomes(stage, 9, within=250)


@pytest.mark.parametrize("shards", [1, 2])
@in_virtual_time
async def test_a_decision_under_way_when_the_lease_is_lost_freezes_no_memory(stage, shards):
    """The answer came after the Lease was lost, and our own old memory was believed from then on (RH-H4)."""
    await held(stage, behavior=window(120))
    async with running(Copy(stage, "first", shards=shards)) as first:
        await stage.clock.sleep(3 * PERIOD)
        first.line.is_hanging = lambda one: "external.metrics" in one.path
        first.cut_off_from_its_lease()
        async with running(Copy(stage, "the second", shards=shards)):
            await stage.clock.sleep(25)
            first.line.is_hanging = lambda _: False
            peak = await peaked(stage, within=60)
            assert await stage.replicas("web") == 9
            first.mend()
        assert 120 - 2 * PERIOD <= await seconds_at(stage, 9, peak, 300) <= 120 + 3 * PERIOD


@pytest.mark.parametrize("ahead", [-600, -100, 100, 600])
@pytest.mark.parametrize("end", ["kill", "stop"])
@in_virtual_time
async def test_a_leader_whose_clock_was_wrong_moves_no_window_of_the_next(stage, ahead, end):
    """A clock that was ahead stopped all growth for as long (RH-M3); one that was behind cuts windows short."""
    await held(stage, behavior={"scaleUp": {"stabilizationWindowSeconds": 0}, **window(WINDOW)})
    first = Copy(stage, "first", ahead=ahead)
    stage.metrics.now = undated
    first.start()
    was = await leads(stage)
    async with running(Copy(stage, "the second")):
        await stage.clock.sleep(100)
        peak = await peaked(stage)
        await (first.kill() if end == "kill" else first.stop())
        await moved(stage, was)
        load(stage, 1200)
        await becomes(stage, 12, within=2 * PERIOD + 1)
        await stage.follow("web")
        load(stage, 900)
        again = stage.clock.monotonic()
        assert await seconds_at(stage, 12, again, 2 * WINDOW) >= WINDOW - 2 * PERIOD
        assert await stage.replicas("web") >= 9 or stage.clock.monotonic() - peak >= WINDOW - PERIOD


@pytest.mark.parametrize("ahead", [-600, -100, 100])
@in_virtual_time
async def test_the_window_of_a_leader_with_a_wrong_clock_is_neither_longer_nor_shorter(stage, ahead):
    await held(stage, behavior=window(WINDOW))
    stage.metrics.now = undated
    first = Copy(stage, "first", ahead=ahead)
    first.start()
    was = await leads(stage)
    async with running(Copy(stage, "the second")):
        await stage.clock.sleep(100)
        peak = await peaked(stage)
        await first.kill()
        await moved(stage, was)
        lasted = await seconds_at(stage, 9, peak, 3 * WINDOW)
        assert WINDOW - 2 * PERIOD <= lasted <= WINDOW + 3 * PERIOD


@in_virtual_time
async def test_a_clock_that_is_set_while_another_leads_moves_no_memory_of_the_other(stage):
    """What the other stored was moved by what our clock was set meanwhile: 108 s of 300 (RH-L1)."""
    await held(stage, behavior=window(WINDOW))
    stage.metrics.now = undated
    async with running(Copy(stage, "first", ahead=200.0)) as first:
        await stage.clock.sleep(2 * PERIOD)
        was = await holder(stage)
        first.cut_off_from_its_lease()
        async with running(Copy(stage, "the second")):
            await moved(stage, was)
            peak = await peaked(stage)
            first.clock.ahead = 0.0
            first.mend()
        await stage.clock.sleep(5)
        assert await holder(stage) == was
        lasted = await seconds_at(stage, 9, peak, 2 * WINDOW)
        assert WINDOW - 2 * PERIOD <= lasted <= WINDOW + 3 * PERIOD


@in_virtual_time
async def test_a_lost_answer_to_the_write_that_takes_the_lease_begins_a_new_epoch(stage):
    """The next look found our own renewal and went on with the memory from before the other copy led."""
    await held(stage, behavior=window(120))
    async with running(Copy(stage, "first")) as first:
        await stage.clock.sleep(2 * PERIOD)
        was = await holder(stage)
        first.cut_off_from_its_lease()
        async with running(Copy(stage, "the second")):
            await moved(stage, was)
            load(stage, 900)
            await becomes(stage, 9, within=2 * PERIOD)
            await stage.follow("web")
            peak = stage.clock.monotonic()
            load(stage, 500)
            await stage.clock.sleep(PERIOD + 1)
            first.mend()
            lost = once(lambda one: one.method == "PUT" and is_about_leases(one))
            first.line.loses_answer = lost
        await stage.clock.sleep(5)
        assert await holder(stage) == was
        assert 120 - PERIOD <= await seconds_at(stage, 9, peak, 300) <= 120 + 2 * PERIOD


def once(is_meant: Callable[[Request], bool]) -> Callable[[Request], bool]:
    """Return what is true of the first request that is meant, and of no other."""
    met: list[Request] = []

    def is_first(request: Request) -> bool:
        if met or not is_meant(request):
            return False
        met.append(request)
        return True

    return is_first


@in_virtual_time
async def test_a_scale_whose_status_was_fenced_counts_when_the_epoch_goes_on(stage):
    """The lease ran out between the two writes and was regained by the same copy, which knew nothing of its step."""
    await held(stage, behavior=RATE)
    async with running(Copy(stage, "first")) as first:
        await leads(stage)
        await stage.clock.sleep(2 * PERIOD)
        slow: list[float] = []

        def seconds(request: Request) -> float:
            if slow or not (request.method == "PATCH" and request.path.endswith("/scale")):
                return 0.0
            slow.append(stage.clock.monotonic())
            first.cut_off_from_its_lease()
            return 11.5

        first.line.answers_after = seconds
        load(stage, 5000)
        await becomes(stage, 7, within=2 * PERIOD)
        await stage.clock.sleep(14)
        first.mend()
        await stage.follow("web")
        await stage.clock.sleep(300)
        assert await stage.replicas("web") == 7
        assert "ReplicasChangedElsewhere" not in [reason for reason, _ in await stage.events()]


@in_virtual_time
async def test_a_lagging_target_at_a_hand_over_is_read_by_owner_too(stage, caplog):
    """The first sync of an OwnerReference HPA ended in an error and a traceback."""
    await held(stage, selectionStrategy="OwnerReference")
    first, second = Copy(stage, "first"), Copy(stage, "the second")
    first.start()
    was = await leads(stage)
    async with running(second):
        await stage.clock.sleep(2 * PERIOD)
        second.line.answer = lambda one: status(503) if one.path.endswith("/deployments") else None
        second.line.drop_all()
        load(stage, 900)
        await becomes(stage, 9, within=2 * PERIOD)
        await first.stop()
        await moved(stage, was)
        await stage.clock.sleep(5)
        second.mend()
        load(stage, 1500)
        await becomes(stage, 15, within=60)
    assert "not decided in this sync" not in caplog.text


@in_virtual_time
async def test_a_step_in_doubt_keeps_its_moment_through_a_conflict(stage):
    """The memory of the doubted step was dropped, and the step counted as of the last leader's renewal."""
    await held(stage, behavior=RATE)
    first = Copy(stage, "first")
    first.start()
    await leads(stage)
    await stage.clock.sleep(2 * PERIOD)
    await first.kill()
    await stage.clock.sleep(900)
    load(stage, 5000)
    second = Copy(stage, "the second")
    second.line.break_write = lambda _, one: Break.LOSE_ANSWER if one.path.endswith("/scale") else None
    second.line.answer = lambda one: (
        status(503) if one.method == "GET" and one.path.endswith("/scale") else None
    )
    async with running(second):
        await becomes(stage, 7, within=60)
        await stage.clock.sleep(8)
        second.line.break_write = lambda _number, _request: None
        await stage.follow("web")
        conflict = once(lambda one: one.method == "PATCH" and one.path.endswith("/status"))
        second.line.answer = lambda one: status(409, "Conflict") if conflict(one) else None
        await stage.clock.sleep(200)
        assert await stage.replicas("web") == 7


@pytest.mark.parametrize("end", ["kill", "stop"])
@in_virtual_time
async def test_a_window_that_holds_growth_is_begun_again_once_at_most(stage, end):
    """A recommendation above the current size is not repeated over a hand-over: without `behavior` it would raise."""
    await held(stage, behavior={"scaleUp": {"stabilizationWindowSeconds": int(WINDOW)}})
    first, second = Copy(stage, "first"), Copy(stage, "the second")
    first.start()
    was = await leads(stage)
    async with running(second):
        await stage.clock.sleep(WINDOW + 100)
        load(stage, 900)
        rose = stage.clock.monotonic()
        await stage.clock.sleep(WINDOW - 60)
        await (first.kill() if end == "kill" else first.stop())
        await moved(stage, was)
        took = await seconds_at(stage, 5, rose, 2 * WINDOW)
        assert WINDOW - 2 * PERIOD <= took <= 2 * WINDOW


@pytest.mark.parametrize("is_native", [False, True], ids=["our own kind", "native"])
def test_a_replaced_object_forgets_no_rate(is_native):
    """`kubectl replace` drops the annotation that carries a native HPA's memory; it was not stored again."""

    async def scenario(stage: Stage) -> None:
        await held(stage, behavior=RATE)
        first = Copy(stage, "first")
        first.start()
        was = await leads(stage)
        async with running(Copy(stage, "the second")):
            await stage.clock.sleep(100)
            load(stage, 5000)
            await becomes(stage, 7, within=40)
            grew = stage.clock.monotonic()
            await stage.clock.sleep(60)
            known = await stage.read_hpa("web")
            bare = {key: known["metadata"][key] for key in ("name", "namespace", "resourceVersion")}
            body = {**{key: known[key] for key in ("apiVersion", "kind", "spec")}, "metadata": bare}
            await stage.client.update(stage.resource.untyped(), "web", stage.namespace, body)
            await stage.clock.sleep(60)
            await first.kill()
            await moved(stage, was)
            assert await seconds_at(stage, 7, grew, 2000) >= 600 - PERIOD

    play_on_lab(scenario, native=is_native)
