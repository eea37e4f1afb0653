"""Z-*: to zero and back (KEP-2021), end to end."""

from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric
from tests.support.transport import status
from trimtab.cluster import errors
from trimtab.model.feature_gates import FeatureGates

pytestmark = pytest.mark.versions

QUEUE = external_metric("queue", average="100")
EXTERNAL = "external.metrics.k8s.io"
IS_ZERO = ("True", "ScaledToZero")
NOT_ZERO = ("False", "NotScaledToZero")
PAUSED = ("False", "ScalingDisabled")


async def set_up(stage: Stage, replicas: int, load: int, *, is_slow: bool = False, **spec: Any) -> None:
    await stage.deployment("web", replicas, is_slow=is_slow)
    fill(stage, load)
    usual: dict[str, Any] = {"minReplicas": 0, "maxReplicas": 10, "metrics": [QUEUE], "behavior": NO_WINDOW}
    spec = usual | spec
    await stage.hpa("web", **{name: value for name, value in spec.items() if value is not None})


def fill(stage: Stage, load: int) -> None:
    stage.metrics.set_external(stage.namespace, "queue", str(load))


async def rounds(stage: Stage, actor: Actor, times: int = 2) -> int:
    await stage.steps(actor, times, "web")
    return await stage.replicas("web")


async def zero_condition(stage: Stage) -> tuple[str, str] | None:
    return (await stage.conditions("web")).get("ScaledToZero")


async def by_user(stage: Stage, replicas: int) -> None:
    await stage.scale("web", replicas)
    await stage.follow("web")


def test_z_i1_reaches_zero_with_condition_and_event(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
        assert await zero_condition(stage) == IS_ZERO
        assert ("SuccessfulRescale", "New size: 0; reason: All metrics below target") in await stage.events()

    play(scenario)


def test_z_i2_a_raised_minimum_wakes_it_once(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            await stage.edit_hpa("web", minReplicas=1)
            assert await rounds(stage, actor) == 1
            assert await zero_condition(stage) == NOT_ZERO
            before = await stage.event_count("SuccessfulRescale")
            assert await rounds(stage, actor, 4) == 1
            assert await stage.event_count("SuccessfulRescale") == before

    play(scenario)


def test_z_i3_up_to_zero_and_up_again(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 500)
        async with stage.running() as actor:
            seen = []
            for load in (500, 0, 400):
                fill(stage, load)
                seen.append((await rounds(stage, actor, 3), await zero_condition(stage)))
        assert seen == [(5, NOT_ZERO), (0, IS_ZERO), (4, NOT_ZERO)]

    play(scenario)


def test_z_i4_cpu_alone_cannot_wake_a_workload_so_zero_is_refused(play):
    async def scenario(stage: Stage) -> None:
        with pytest.raises(errors.Invalid) as refused:
            await stage.hpa("web", minReplicas=0, metrics=[cpu_metric(50)])
        wanted = "must specify at least one Object or External metric to support scaling to zero replicas"
        assert wanted in str(refused.value)

    play(scenario)


def test_z_i4_a_server_with_the_gate_off_refuses_zero():
    async def scenario(stage: Stage) -> None:
        with pytest.raises(errors.Invalid) as refused:
            await stage.hpa("web", minReplicas=0, metrics=[QUEUE])
        assert "spec.minReplicas" in str(refused.value)
        assert "must be greater than or equal to 1" in str(refused.value)

    play_on_lab(scenario, native=True, gates=FeatureGates(hpa_scale_to_zero=False))


def test_z_e1_a_value_target(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, metrics=[external_metric("queue", value="50")], maxReplicas=3)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            assert await zero_condition(stage) == IS_ZERO
            fill(stage, 200)
            assert await rounds(stage, actor, 1) == 3

    play(scenario)


def test_a_poison_message_neither_keeps_a_workload_awake_nor_wakes_it(play_own):
    """Review of strangers, 7: KEDA's activationThreshold."""

    async def scenario(stage: Stage) -> None:
        metric = external_metric("queue", average="50")
        active = {**metric, "external": {**metric["external"], "activation": "5"}}
        await set_up(stage, 1, 0, metrics=[active], maxReplicas=3)
        fill(stage, 5)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            assert await zero_condition(stage) == IS_ZERO
            assert await rounds(stage, actor) == 0
            fill(stage, 6)
            assert await rounds(stage, actor, 1) == 1

    play_own(scenario)


def test_z_e2_with_the_gate_off_never_below_one(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 2, 0)
        async with stage.running(feature_gates="HPAScaleToZero=false") as actor:
            assert await rounds(stage, actor, 4) == 1
        assert await zero_condition(stage) is None

    play(scenario)


@pytest.mark.parametrize("load", [100, 1], ids=["edge 4 exactly at target", "the least there is"])
def test_tolerance_does_not_count_at_zero(play, load):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, load)
            assert await rounds(stage, actor, 1) == 1

    play(scenario)


@pytest.mark.parametrize("gates", ["", "HPAScaleToZero=false"], ids=["gate on", "gate off"])
def test_edges_1_and_2_a_zero_that_is_not_ours_is_a_pause(play, gates):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 0, 500)
        async with stage.running(feature_gates=gates) as actor:
            assert await rounds(stage, actor) == 0
            assert (await stage.conditions("web"))["ScalingActive"] == PAUSED
            await stage.edit_hpa("web", minReplicas=1)
            assert await rounds(stage, actor) == 0
            assert not [path for path in stage.metrics.asked if "queue" in path]

    play(scenario)


def test_z_a1_the_condition_says_whose_zero_it_is(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            assert await zero_condition(stage) == IS_ZERO
            fill(stage, 100)
            assert await rounds(stage, actor) == 1
            await by_user(stage, 0)
            assert await rounds(stage, actor) == 0
            assert await zero_condition(stage) == NOT_ZERO
            await by_user(stage, 1)
            fill(stage, 0)
            assert await rounds(stage, actor) == 0
            assert await zero_condition(stage) == IS_ZERO

    play(scenario)


def test_z_a2_edge_7_a_lowered_minimum_lets_it_go_to_zero(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 3, 0, minReplicas=1)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 1
            await stage.edit_hpa("web", minReplicas=0)
            assert await rounds(stage, actor) == 0
            await stage.edit_hpa("web", minReplicas=2)
            assert await rounds(stage, actor, 1) == 2

    play(scenario)


def test_edge_5_a_minimum_raised_at_zero_is_told_as_a_limit(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, behavior=None)
        async with stage.running(downscale_stabilization=timedelta(0)) as actor:
            assert await rounds(stage, actor) == 0
            await stage.edit_hpa("web", minReplicas=2)
            assert await rounds(stage, actor, 1) == 2
            assert (await stage.conditions("web"))["ScalingLimited"] == ("True", "TooFewReplicas")

    play(scenario)


def test_z_a2_a_pause_outlasts_every_edit_of_the_minimum(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 100)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 1
            await by_user(stage, 0)
            for minimum in (1, 0, 2):
                await stage.edit_hpa("web", minReplicas=minimum)
                assert await rounds(stage, actor) == 0
            await by_user(stage, 1)
            assert await rounds(stage, actor) == 2

    play(scenario)


def test_z_f1_a_metrics_api_that_comes_back_wakes_it_unaided(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            stage.metrics.fail[EXTERNAL] = 503
            fill(stage, 300)
            assert await rounds(stage, actor) == 0
            conditions = await stage.conditions("web")
            assert conditions["ScalingActive"] == ("False", "FailedGetExternalMetric")
            assert conditions["ScaledToZero"] == IS_ZERO
            stage.metrics.fail.clear()
            assert await rounds(stage, actor) == 3

    play(scenario)


def test_z_k1_a_restart_at_zero_resumes_from_the_condition(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
        fill(stage, 300)
        async with stage.running() as actor:
            assert await rounds(stage, actor, 1) == 3

    play(scenario)


def test_z_n1_no_fall_back_to_zero_while_pods_start(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, metrics=[external_metric("queue", value="100")], is_slow=True)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, 200)
            await stage.step(actor)
            started = await stage.replicas("web")
            assert started == 2
            await stage.follow("web")
            for _ in range(4):
                await stage.step(actor)
                assert await stage.replicas("web") == started

    play(scenario)


def test_z_n2_a_percent_policy_leaves_zero_with_one(play):
    async def scenario(stage: Stage) -> None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        behavior = NO_WINDOW | {"scaleUp": {"policies": [percent]}}
        await set_up(stage, 1, 0, behavior=behavior)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, 400)
            assert await rounds(stage, actor, 1) == 1
            assert await rounds(stage, actor, 3) == 4

    play(scenario)


def test_edge_18_scale_up_that_is_disabled_stays_at_zero(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, behavior=NO_WINDOW | {"scaleUp": {"selectPolicy": "Disabled"}})
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, 400)
            assert await rounds(stage, actor) == 0
            assert (await stage.conditions("web"))["ScalingLimited"] == ("True", "ScaleUpLimit")

    play(scenario)


def test_z_n3_a_zero_of_the_user_after_a_zero_of_ours_is_a_pause(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, 300)
            await by_user(stage, 3)
            assert await rounds(stage, actor) == 3
            assert await zero_condition(stage) == NOT_ZERO
            await by_user(stage, 0)
            assert await rounds(stage, actor) == 0
            assert (await stage.conditions("web"))["ScalingActive"] == PAUSED

    play(scenario)


@pytest.mark.parametrize("code", [503, 409, 403])
def test_z_n4_a_status_that_cannot_be_written_after_the_scale(play, code):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            seen: list[str] = []

            def refuse_after_scale(request):
                if request.method == "PATCH":
                    seen.append(request.path)
                is_after = any(path.endswith("/scale") for path in seen)
                return status(code, "no") if is_after and request.path.endswith("/status") else None

            actor.line.answer = refuse_after_scale
            assert await rounds(stage, actor, 1) == 0
        fill(stage, 300)
        async with stage.running() as actor:
            assert await rounds(stage, actor, 1) == 3

    play(scenario)


def test_z_n5_a_raised_minimum_while_the_metrics_are_down(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            stage.metrics.fail[EXTERNAL] = 500
            await stage.edit_hpa("web", minReplicas=2)
            assert await rounds(stage, actor, 1) == 2

    play(scenario)


def test_z_d1_on_off_on_at_zero_resumes(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
        fill(stage, 300)
        async with stage.running(feature_gates="HPAScaleToZero=false") as actor:
            assert await rounds(stage, actor, 3) == 0
            assert (await stage.conditions("web"))["ScalingActive"] == PAUSED
        async with stage.running() as actor:
            assert await rounds(stage, actor, 1) == 3

    play(scenario)


def test_edge_11_one_valid_metric_is_enough_to_wake_it(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, metrics=[QUEUE, cpu_metric(50)])
        await by_user(stage, 1)
        stage.use_cpu(web="0")
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 0
            fill(stage, 250)
            assert await rounds(stage, actor, 1) == 3

    play(scenario)


def test_edge_12_a_failing_metric_forbids_zero(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 1, 0, metrics=[cpu_metric(50), QUEUE])
        stage.metrics.fail["metrics.k8s.io"] = 503
        async with stage.running() as actor:
            assert await rounds(stage, actor, 3) == 1

    play(scenario)


def test_edge_26_the_default_window_delays_zero(play):
    async def scenario(stage: Stage) -> None:
        await set_up(stage, 2, 0, behavior=None)
        async with stage.running() as actor:
            for _ in range(5):
                await stage.steps(actor, 1, "web", after=60)
                assert await stage.replicas("web") == 2
            await stage.steps(actor, 2, "web", after=60)
            assert await stage.replicas("web") == 0

    play(scenario)
