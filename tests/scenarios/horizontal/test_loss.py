"""A metric is lost and comes back: what its policy makes of that, end to end, over a restart too."""

import json

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.objects import NO_WINDOW, external_metric
from trimtab.cluster.resource import Json
from trimtab.model.hpa.metric_annotations import ON_LOSS


async def two_queues(stage: Stage, policy: Json, *, replicas: int = 5) -> None:
    """Put up a workload on two queues: `mine`, which will be lost, asks for five, `other` for two."""
    stage.metrics.set_external(stage.namespace, "mine", "50")
    stage.metrics.set_external(stage.namespace, "other", "20")
    metrics = [external_metric("mine", average="10"), external_metric("other", average="10")]
    annotations = {}
    if stage.native:
        annotations[ON_LOSS.name] = json.dumps({"mine": policy})
    else:
        metrics[0]["onLoss"] = policy
    await stage.bare_deployment("web", replicas)
    await stage.hpa("web", metrics=metrics, behavior=NO_WINDOW, annotations=annotations)


def lose(stage: Stage) -> None:
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{stage.namespace}/mine"
    stage.metrics.raw[path] = {"items": []}


async def lost(stage: Stage) -> tuple[str, str]:
    return (await stage.conditions("web"))["MetricLost"]


async def next_size(stage: Stage, actor: Actor, *, after: float = 15.0) -> int:
    await stage.step(actor, after=after)
    await stage.follow("web")
    return await stage.replicas("web")


def test_the_last_good_value_counts_for_its_time_then_holds_and_the_first_answer_ends_it(play):
    async def scenario(stage: Stage) -> None:
        await two_queues(stage, {"policy": "LastGood", "maxAgeSeconds": 60})
        async with stage.running() as actor:
            assert await next_size(stage, actor) == 5
            lose(stage)
            await stage.scale("web", 3)  # somebody lowers it; the last good value brings it back
            await stage.follow("web")
            assert await next_size(stage, actor) == 5
            assert await lost(stage) == ("True", "LastGoodValue")
            await stage.scale("web", 3)
            await stage.follow("web")
            assert (
                await next_size(stage, actor, after=61) == 3
            )  # neither raised by the old value nor lowered to two
            assert await lost(stage) == ("True", "LastGoodValueTooOld")
            stage.metrics.raw.clear()
            assert await next_size(stage, actor) == 5
            assert await lost(stage) == ("False", "EveryMetricRead")
        told = [reason for reason, _ in await stage.events()]
        assert told.count("MetricFound") == 1
        assert "MetricLost" in told

    play(scenario)


def test_the_last_good_value_survives_a_restart(play):
    async def scenario(stage: Stage) -> None:
        await two_queues(stage, {"policy": "LastGood", "maxAgeSeconds": 120})
        async with stage.running() as actor:
            await next_size(stage, actor)
            lose(stage)
            await next_size(stage, actor)
        async with stage.running() as actor:
            await stage.scale("web", 2)
            await stage.follow("web")
            assert await next_size(stage, actor) == 5
            assert await lost(stage) == ("True", "LastGoodValue")
            assert await next_size(stage, actor, after=121) == 5
            assert await lost(stage) == ("True", "LastGoodValueTooOld")

    play(scenario)


def test_an_ignored_metric_leaves_the_decision_to_the_others(play):
    async def scenario(stage: Stage) -> None:
        await two_queues(stage, {"policy": "Ignore"})
        async with stage.running() as actor:
            assert await next_size(stage, actor) == 5
            lose(stage)
            assert await next_size(stage, actor) == 2
            assert await lost(stage) == ("True", "MetricIgnored")
            assert (await stage.conditions("web"))["ScalingActive"] == ("True", "ValidMetricFound")
            # The metric that failed keeps its place: kubectl pairs metrics with their values by position.
            current = (await stage.read_hpa("web"))["status"]["currentMetrics"]
            assert [metric.get("type", "") for metric in current] == ["", "External"]

    play(scenario)


def test_fall_back_replicas_are_one_proposal_among_others(play):
    async def scenario(stage: Stage) -> None:
        await two_queues(stage, {"policy": "Replicas", "replicas": 4})
        async with stage.running() as actor:
            lose(stage)
            assert await next_size(stage, actor) == 4
            assert await lost(stage) == ("True", "FallBackReplicas")
            stage.metrics.set_external(stage.namespace, "other", "70")
            assert await next_size(stage, actor) == 7

    play(scenario)


def test_every_metric_lost_and_ignored_holds(play):
    async def scenario(stage: Stage) -> None:
        await two_queues(stage, {"policy": "Ignore"})
        async with stage.running() as actor:
            stage.metrics.fail["external.metrics.k8s.io"] = 503
            assert await next_size(stage, actor) == 5
            assert (await stage.conditions("web"))["ScalingActive"] == ("False", "FailedGetExternalMetric")

    play(scenario)
