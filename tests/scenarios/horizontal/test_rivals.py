"""An own HPA beside a native one that somebody else serves: it says so, and leaves the target alone."""

from collections.abc import Callable
from typing import Any

from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric, hpa, target_of
from tests.support.transport import status
from trimtab.cluster.resource import Json
from trimtab.decide.horizontal import explain
from trimtab.operator.horizontal.kinds import NATIVE_HPAS

BESIDE, UNSEEN = "BesideNativeHPA", "NativeHPAsUnseen"
SCALED_OBJECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web", "uid": "u"}


async def rival(stage: Stage, name: str = "other", **metadata: Any) -> None:
    """Make a native HPA that Trimtab does not serve."""
    on = target_of("Deployment", "web")
    body = hpa(name, on=on, api_version="autoscaling/v2", metrics=[cpu_metric(50)])
    body["metadata"] |= metadata
    await stage.client.create(NATIVE_HPAS.untyped(), body, stage.namespace)


async def busy(stage: Stage, **spec: Any) -> None:
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    await stage.hpa("web", metrics=[cpu_metric(50)], **spec)


async def condition(stage: Stage, kind: str) -> Json:
    found: list[Json] = (await stage.read_hpa("web"))["status"]["conditions"]
    return next((one for one in found if one["type"] == kind), {})


def story_of(stage: Stage, actor: Actor) -> str:
    hpa_state = actor.operator.hpas.named(stage.namespace, "web")
    assert hpa_state is not None
    return str(explain(hpa_state.records[-1]))


def is_list(stage: Stage) -> Callable[[Any], bool]:
    path = f"/apis/autoscaling/v2/namespaces/{stage.namespace}/horizontalpodautoscalers"
    return lambda request: bool(request.path == path)


def test_it_does_not_act_and_says_with_whom():
    async def scenario(stage: Stage) -> None:
        await rival(stage)
        await busy(stage)
        async with stage.running() as actor:
            for _ in range(40):
                await stage.step(actor)
            assert await stage.replicas("web") == 2
            told = await condition(stage, BESIDE)
            assert (told["status"], told["reason"]) == ("True", "NativeHPA")
            assert "HorizontalPodAutoscaler.autoscaling other scales the same target" in told["message"]
            assert (await stage.conditions("web"))["ScalingActive"] == ("False", BESIDE)
            assert (await stage.read_hpa("web"))["status"]["reason"] == BESIDE
            story = story_of(stage, actor)
            assert f"{BESIDE}: stays at 2: HorizontalPodAutoscaler.autoscaling other" in story
            assert "remove hpa.autoscaling/other or this autoscaler" in story
            lists = [one for one in actor.line.sent if is_list(stage)(one)]
            assert len(lists) <= 11, "one a minute, and no watch"
            await stage.client.delete(NATIVE_HPAS, "other", stage.namespace)
            await stage.steps(actor, 5)
            assert await stage.replicas("web") == 4
            assert not await condition(stage, BESIDE)
            assert (await stage.conditions("web"))["ScalingActive"][0] == "True"
        assert [reason for reason, _ in await stage.events()].count(BESIDE) == 1

    play_on_lab(scenario)


def test_one_that_comes_later_is_seen_before_the_next_scale():
    async def scenario(stage: Stage) -> None:
        await busy(stage)
        stage.use_cpu(web="50m")
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            await rival(stage)
            await stage.steps(actor, 4)
            assert not await condition(stage, BESIDE)
            stage.use_cpu(web="90m")
            await stage.step(actor)
            assert await stage.replicas("web") == 2
            assert (await condition(stage, BESIDE))["status"] == "True"

    play_on_lab(scenario)


def test_that_of_keda_is_told_with_its_maker():
    async def scenario(stage: Stage) -> None:
        await rival(stage, "keda-hpa-web", ownerReferences=[SCALED_OBJECT])
        await busy(stage)
        async with stage.running() as actor:
            await stage.step(actor)
            told = await condition(stage, BESIDE)
            assert told["reason"] == "ScaledObject"
            assert (
                "HorizontalPodAutoscaler.autoscaling keda-hpa-web of KEDA's ScaledObject web"
                in told["message"]
            )
            story = story_of(stage, actor)
            assert "remove KEDA's ScaledObject web, or this autoscaler" in story

    play_on_lab(scenario)


def test_without_the_right_to_list_them_it_acts_and_says_that_it_cannot_see():
    async def scenario(stage: Stage) -> None:
        await rival(stage)
        await busy(stage)
        async with stage.running() as actor:
            seen = is_list(stage)
            actor.line.answer = lambda request: status(403, "Forbidden") if seen(request) else None
            await stage.step(actor)
            assert await stage.replicas("web") == 4
            told = await condition(stage, UNSEEN)
            assert (told["status"], told["reason"]) == ("True", "NotListed")
            actor.line.answer = lambda _: None
            await stage.steps(actor, 6)
            assert not await condition(stage, UNSEEN)
            assert (await condition(stage, BESIDE))["status"] == "True"

    play_on_lab(scenario)


def test_a_dry_run_decides_and_shows_it():
    async def scenario(stage: Stage) -> None:
        await rival(stage)
        await busy(stage, annotations={"autoscaling.trimtab.dev/mode": "DryRun"})
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.conditions("web"))["AbleToScale"] == ("True", "DryRun")
            assert (await stage.read_hpa("web"))["status"]["desiredReplicas"] == 4
            assert (await condition(stage, BESIDE))["status"] == "True"

    play_on_lab(scenario)


def test_a_workload_that_it_scaled_to_zero_stays_asleep_and_keeps_the_mark():
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        stage.metrics.set_external(stage.namespace, "queue", "0")
        await stage.hpa(
            "web", minReplicas=0, metrics=[external_metric("queue", average="10")], behavior=NO_WINDOW
        )
        async with stage.running() as actor:
            await stage.steps(actor, 2, "web")
            assert await stage.replicas("web") == 0
            await rival(stage)
            await stage.steps(actor, 4)
            stage.metrics.set_external(stage.namespace, "queue", "50")
            await stage.steps(actor, 6)
            assert await stage.replicas("web") == 0
            assert (await condition(stage, "ScaledToZero"))["status"] == "True"
            await stage.client.delete(NATIVE_HPAS, "other", stage.namespace)
            await stage.steps(actor, 6)
            assert await stage.replicas("web") > 0

    play_on_lab(scenario)


def test_where_trimtab_serves_native_hpas_both_are_ours_and_ambiguous():
    async def scenario(stage: Stage) -> None:
        await rival(stage)
        await busy(stage)
        async with stage.running(native_hpas=True, own_hpas=True) as actor:
            await stage.steps(actor, 2)
            assert (await stage.conditions("web"))["ScalingActive"] == ("False", "AmbiguousSelector")
            assert not await condition(stage, BESIDE)
            story = story_of(stage, actor)
            assert f"remove this autoscaler or {stage.namespace}/other: they scale the same target" in story

    play_on_lab(scenario)
