"""What is not known is not believed: an old copy of a target, a lost answer, an unexpected error, an unwritten status.

Earlier tests lost one answer at a time, let watches come back before the next sync, and used metrics that answered at
once. Each defect here needs two small troubles at the same time.
"""

import asyncio
from typing import Any

import pytest

from tests.faults.horizontal.scene import becomes, first, held, load, working
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.metrics_stub import Send
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, external_metric
from tests.support.transport import Break, status
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request, Response
from trimtab.operator.horizontal.hpa_state import HpaState

REFUSED = TransportError("connection refused")


def is_scale(request: Request, method: str = "PATCH") -> bool:
    return request.method == method and request.path.endswith("/scale")


@pytest.mark.parametrize("lag", [20, 40])
@in_virtual_time
async def test_a_lagging_watch_of_the_target_does_not_take_the_zero_back(stage, lag):
    """The old copy showed one replica, the condition was taken back, and nothing ever woke the workload (RH-H2)."""
    await held(stage, replicas=1, minReplicas=0)
    async with working(stage) as actor:
        await stage.clock.sleep(16)
        actor.line.answer = lambda one: REFUSED if one.path.endswith("/deployments") else None
        actor.line.drop_all()
        load(stage, 0)
        await becomes(stage, 0)
        await stage.follow("web")
        load(stage, 100)
        await stage.clock.sleep(lag)
        actor.line.answer = lambda _: None
        await becomes(stage, 1, within=90)


def test_a_scale_that_nobody_can_look_at_is_neither_written_nor_not(both):
    """The answer to the scale was lost and the look after it failed; that counted as "not written" (RH-H3)."""

    async def scenario(stage: Stage) -> None:
        await held(stage, replicas=1, minReplicas=0)
        async with stage.running() as actor:
            await stage.step(actor)
            load(stage, 0)
            actor.line.break_write = lambda _, one: Break.LOSE_ANSWER if is_scale(one) else None
            actor.line.answer = lambda one: status(503) if is_scale(one, "GET") else None
            await stage.step(actor)
            assert await stage.replicas("web") == 0
            assert (await stage.conditions("web"))["ScaledToZero"][0] == "True"
            actor.line.break_write = lambda _number, _request: None
            await stage.step(actor)
            actor.line.answer = lambda _: None
            await stage.follow("web")
            await stage.step(actor)
            assert "FailedRescale" not in [reason for reason, _ in await stage.events()]
            assert "ReplicasChangedElsewhere" not in [reason for reason, _ in await stage.events()]
            load(stage, 300)
            await stage.step(actor)
            assert await stage.replicas("web") == 3

    both(scenario)


@in_virtual_time
async def test_a_step_that_nobody_could_look_at_counts_for_the_rate(stage):
    policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
    await held(stage, behavior={"scaleUp": policy})
    async with stage.running() as actor:
        await stage.step(actor)
        load(stage, 5000)
        actor.line.break_write = lambda _, one: Break.LOSE_ANSWER if is_scale(one) else None
        actor.line.answer = lambda one: status(503) if is_scale(one, "GET") else None
        await stage.step(actor)
        actor.line.break_write = lambda _number, _request: None
        actor.line.answer = lambda _: None
        await stage.follow("web")
        await stage.steps(actor, 3, "web")
        assert await stage.replicas("web") == 7


@pytest.mark.parametrize(("per_second", "seconds"), [(5, 1.0), (5, 0.3), (2, 1.0)])
@in_virtual_time
async def test_a_target_whose_status_moves_is_scaled_all_the_same(stage, per_second, seconds):
    """Each conflict asked the slow metric again, three times, and then nothing was said until the next sync (RH-M2)."""
    await held(stage)

    async def move() -> None:
        number = 0
        while True:
            number += 1
            await stage.set_status("web", 5 + number % 2)
            await stage.clock.sleep(1 / per_second)

    async with working(stage) as actor:
        await stage.clock.sleep(16)
        stage.metrics.delay["queue-web"] = seconds
        moving = asyncio.ensure_future(move())
        try:
            load(stage, 900)
            await becomes(stage, 9, within=15 + 3 * seconds)
        finally:
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)
        assert actor.count("trimtab_decided_again_total") == 0


def test_a_target_that_never_holds_still_is_told(both):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with stage.running() as actor:
            await stage.step(actor)
            load(stage, 900)
            actor.line.break_write = lambda _, one: Break.CONFLICT if is_scale(one) else None
            await stage.step(actor)
            able = (await stage.conditions("web"))["AbleToScale"]
            assert able == ("False", "FailedUpdateScale")
            events = await stage.events()
            assert any(
                reason == "FailedRescale" and "while it was being scaled" in text for reason, text in events
            )
            actor.line.break_write = lambda _number, _request: None
            await stage.step(actor)
            assert await stage.replicas("web") == 9

    both(scenario)


def test_a_users_size_is_never_overwritten_after_a_conflict(both):
    """F15 holds although a conflict no longer leads to a new decision by itself."""

    async def scenario(stage: Stage) -> None:
        await held(stage)
        done: list[int] = []

        async def set_by_hand(request: Request, send: Send) -> Response:
            if is_scale(request) and b'"replicas":9' in (request.body or b"") and not done:
                done.append(1)
                await stage.scale("web", 30)
            return await send(request)

        async with stage.running() as actor:
            await stage.step(actor)
            load(stage, 900)
            stage.transport.around = set_by_hand
            await stage.step(actor)
            assert done
            # 9 is decided again only on 30, and told as a step from there.
            assert (
                "SuccessfulRescale",
                "New size: 9; reason: All metrics below target",
            ) in await stage.events()

    both(scenario)


BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "a window beyond all floats": {"window": 10**400},
    "a date before all dates": {"timestamp": "0001-01-01T00:00:00+01:00"},
}


@pytest.mark.parametrize("bad", BAD_ANSWERS)
@in_virtual_time
async def test_an_answer_that_nobody_expected_fails_its_metric_alone(stage, bad):
    """One such answer left the HPA undecided until a restart, with the process ready and silent (RH-M4)."""
    await held(stage)
    async with working(stage) as actor:
        await stage.clock.sleep(16)
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{stage.namespace}/queue-web"
        item = {"metricName": "queue-web", "timestamp": stage.metrics.now(), "value": "900"}
        stage.metrics.raw[path] = {"items": [item | BAD_ANSWERS[bad]]}
        await stage.clock.sleep(30)
        assert (await stage.conditions("web"))["ScalingActive"] == ("False", "FailedGetExternalMetric")
        assert actor.count("trimtab_failed_decisions_total") == 0
        del stage.metrics.raw[path]
        load(stage, 900)
        await becomes(stage, 9)


@pytest.mark.parametrize("where", ["fetch", "matching_pods", "observe", "prepare", "apply", "find_cached"])
@in_virtual_time
async def test_an_unexpected_error_anywhere_ends_the_turn_and_is_counted(stage, where, monkeypatch):
    """Whatever goes wrong in one sync, the next one takes every HPA up again."""
    strategy = "OwnerReference" if where == "find_cached" else "LabelSelector"
    await held(stage, selectionStrategy=strategy)
    await held(stage, "other")
    async with working(stage) as actor:
        await stage.clock.sleep(16)
        operator = actor.operator
        owner = {
            "fetch": operator._fetcher,
            "matching_pods": operator._snapshots,
            "observe": operator._snapshots,
            "find_cached": operator._snapshots._owners,
            "prepare": operator._reconciler._writer,
            "apply": operator._reconciler._writer,
        }[where]

        def trip(*_: object) -> None:
            raise RuntimeError("nobody expected this")

        load(stage, 700)
        load(stage, 700, "other")
        with monkeypatch.context() as patch:
            patch.setattr(owner, where, trip)
            await stage.clock.sleep(31)
            assert actor.count("trimtab_failed_decisions_total") > 0
            assert not any(autoscaler.is_busy for autoscaler in operator.hpas)
        await becomes(stage, 7)
        await becomes(stage, 7, "other")


@pytest.mark.parametrize("where", ["queries_for", "register_target", "_cached_queries", "_must_read"])
@in_virtual_time
async def test_an_hpa_that_cannot_be_planned_stops_no_other(stage, where, monkeypatch):
    """The error left the loop, which ended the process, and the stand-by met the same HPA next."""
    await held(stage)
    await held(stage, "other")
    async with working(stage) as actor:
        await stage.clock.sleep(16)
        snapshots = actor.operator._snapshots
        was = getattr(snapshots, where)

        def trip(hpa_state: HpaState, *more: object) -> object:
            if hpa_state.hpa.metadata.name == "web":
                raise RuntimeError("nobody expected this")
            return was(hpa_state, *more)

        with monkeypatch.context() as patch:
            patch.setattr(snapshots, where, trip)
            await stage.edit_hpa("web", maxReplicas=49)
            await stage.edit_hpa("other", maxReplicas=49)
            load(stage, 700)
            load(stage, 700, "other")
            await becomes(stage, 7, "other", within=31)
            assert [one.key for one in actor.operator.hpas if one.is_busy] == []
        await becomes(stage, 7)


@in_virtual_time
async def test_a_scale_in_doubt_still_tells_what_it_noted_as_told(stage):
    await held(stage)
    async with stage.running() as actor:
        await stage.step(actor)
        await stage.edit_hpa("web", selectionStrategy="OwnerReference")
        await stage.caught_up(actor.operator)
        load(stage, 900)
        actor.line.break_write = lambda _, one: Break.LOSE_ANSWER if is_scale(one) else None
        actor.line.answer = lambda one: status(503) if is_scale(one, "GET") else None
        await stage.step(actor)
        actor.line.break_write = lambda _number, _request: None
        actor.line.answer = lambda _: None
        await stage.follow("web")
        await stage.steps(actor, 3, "web")
        assert await stage.event_count("StrategyChanged") == 1


def test_what_is_noted_as_said_was_said(both):
    """The memory was taken over before the status was written; after a conflict the event never came (RH-L4)."""

    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with stage.running() as actor:
            await stage.step(actor)
            await stage.edit_hpa("web", selectionStrategy="OwnerReference")
            await stage.caught_up(actor.operator)
            conflicts = first(
                1, lambda one: status(409, "Conflict") if one.path.endswith("/status") else None
            )
            actor.line.answer = lambda one: conflicts(one) if one.method == "PATCH" else None
            await stage.step(actor)
            await stage.step(actor)
            assert await stage.event_count("StrategyChanged") == 1

    both(scenario)


@in_virtual_time
async def test_a_lost_lease_ends_a_turn_without_a_decision(stage):
    """A turn that outlives its lease neither decides nor keeps anything."""
    await held(stage, metrics=[external_metric("queue-web", average="100")], behavior=NO_WINDOW)

    class Door:
        open = True

        def may_write(self) -> bool:
            return self.open

        def time_left(self) -> float:
            return 10.0 if self.open else 0.0

    door = Door()
    async with working(stage, fence=door) as actor:
        await stage.clock.sleep(16)
        (autoscaler,) = actor.operator.hpas
        before = autoscaler.memory.own
        stage.metrics.delay["queue-web"] = 5.0
        load(stage, 900)

        async def is_busy() -> bool:
            return autoscaler.is_busy

        await stage.wait_for(is_busy)
        door.open = False
        await stage.clock.sleep(10)
        assert [one.key for one in actor.operator.hpas if one.is_busy] == []
        assert autoscaler.memory.own.scale_up == before.scale_up
        assert await stage.replicas("web") == 5
