"""SPEC-*: which series of a metric count (KEP-117), end to end."""

import pytest

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.scenarios.horizontal.test_tolerance import NATIVE_V1
from tests.support.clock import in_virtual_time
from tests.support.objects import (
    NO_WINDOW,
    external_metric,
    metric_target,
    object_metric,
    pods_metric,
)
from trimtab.cluster import errors


def asked(actor: Actor, part: str) -> list[dict[str, str]]:
    """Return the query parameters of the metric questions whose path has this part."""
    return [
        dict(one.query)
        for one in actor.line.sent
        if "metrics.k8s.io" in one.path and part in one.path.replace("%2A", "*")
    ]


async def after_one_round(stage: Stage, name: str = "web") -> int:
    async with stage.running() as actor:
        await stage.step(actor)
    return await stage.replicas(name)


def test_spec_g1_status_repeats_what_was_asked_for(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 2)
        stage.metrics.set_object(stage.namespace, "services", "front", "hits", "20", path="a")
        stage.metrics.set_external(stage.namespace, "queue", "20", shard="q")
        metrics = [
            object_metric("hits", average="10", path="a"),
            external_metric("queue", average="10", shard="q"),
        ]
        await stage.hpa("web", metrics=metrics)
        async with stage.running() as actor:
            await stage.step(actor)
        hpa = await stage.read_hpa("web")
        assert [one["type"] for one in hpa["spec"]["metrics"]] == ["Object", "External"]
        current = hpa["status"]["currentMetrics"]
        assert current[0]["object"]["metric"] == {"name": "hits", "selector": {"matchLabels": {"path": "a"}}}
        assert current[0]["object"]["describedObject"]["name"] == "front"
        assert current[1]["external"]["metric"]["selector"] == {"matchLabels": {"shard": "q"}}
        assert current[1]["external"]["current"]["averageValue"] == "10"

    play(scenario)


def test_spec_g2_selectors_reach_the_custom_metrics_api(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        stage.metrics.set_object(stage.namespace, "services", "front", "hits", "1", verb="GET")
        (pod,) = await stage.pods_of("web")
        stage.metrics.set_object(stage.namespace, "pods", pod, "rate", "1", verb="GET")
        await stage.hpa(
            "web",
            metrics=[object_metric("hits", value="1", verb="GET"), pods_metric("rate", "1", verb="GET")],
        )
        async with stage.running() as actor:
            await stage.step(actor)
            assert asked(actor, "/services/front/hits") == [{"metricLabelSelector": "verb=GET"}]
            assert asked(actor, "/pods/*/rate") == [
                {"labelSelector": "app=web", "metricLabelSelector": "verb=GET"}
            ]
        assert (await stage.conditions("web"))["ScalingActive"] == ("True", "ValidMetricFound")

    play(scenario)


def test_spec_a1_one_of_two_queues(play):
    async def scenario(stage: Stage) -> None:
        for name, length in (("mine", "30"), ("other", "900")):
            stage.metrics.set_external(stage.namespace, "queue", length, queue=name)
        await stage.bare_deployment("web", 1)
        await stage.hpa("web", metrics=[external_metric("queue", average="10", queue="mine")])
        assert await after_one_round(stage) == 3

    play(scenario)


@pytest.mark.parametrize(("replicas", "wanted"), [(3, 3), (1, 3)], ids=["SPEC-A2 enough", "SPEC-A2 too few"])
def test_a_backlog_of_three_with_one_per_pod(play, replicas, wanted):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", replicas)
        stage.metrics.set_object(stage.namespace, "services", "front", "backlog", "3")
        await stage.hpa("web", metrics=[object_metric("backlog", average="1")])
        assert await after_one_round(stage) == wanted

    play(scenario)


def test_spec_a3_external_series_are_summed(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        for name in ("a", "b", "c"):
            stage.metrics.set_external(stage.namespace, "queue", "10", shard=name)
        await stage.hpa("web", metrics=[external_metric("queue", average="10")])
        assert await after_one_round(stage) == 3

    play(scenario)


def test_spec_a4_an_object_metric_with_two_values_is_none(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 2)
        for verb in ("GET", "PUT"):
            stage.metrics.set_object(stage.namespace, "services", "front", "hits", "50", verb=verb)
        await stage.hpa("web", metrics=[object_metric("hits", value="10")])
        assert await after_one_round(stage) == 2
        assert (await stage.conditions("web"))["ScalingActive"] == ("False", "FailedGetObjectMetric")
        told = [message for reason, message in await stage.events() if reason == "FailedGetObjectMetric"]
        assert "returned 2 results when we asked for exactly one" in told[0]

    play(scenario)


def test_spec_d1_a_newer_version_of_the_adapter_is_found_within_a_period(play):
    async def scenario(stage: Stage) -> None:
        stage.metrics.versions = ("v1beta1",)
        await stage.bare_deployment("web", 1)
        stage.metrics.set_object(stage.namespace, "services", "front", "backlog", "3")
        await stage.hpa("web", metrics=[object_metric("backlog", average="1")])
        async with stage.running() as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 3
            await stage.follow("web")
            stage.metrics.versions = ("v1beta2",)
            stage.metrics.set_object(stage.namespace, "services", "front", "backlog", "5")
            await stage.step(actor, after=16)
            assert await stage.replicas("web") == 5

    play(scenario)


@pytest.mark.parametrize("kind", ["Object", "Pods", "External"])
def test_spec_n1_an_invalid_selector_fails_its_metric_at_runtime(play, kind):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        metric = {
            "name": "m",
            "selector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]},
        }
        source = {"metric": metric, "target": metric_target("1", None)}
        if kind == "Object":
            source["describedObject"] = {"apiVersion": "v1", "kind": "Service", "name": "front"}
        metrics = [{"type": kind, kind.lower(): source}]
        if not stage.native:
            # Our own definition refuses what autoscaling/v2 only finds out when it asks.
            with pytest.raises(errors.Invalid, match=f"spec.metrics.0..{kind.lower()}.metric.selector"):
                await stage.hpa("web", metrics=metrics)
            return
        await stage.hpa("web", metrics=metrics)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
        assert await stage.replicas("web") == 2
        assert (await stage.conditions("web"))["ScalingActive"] == ("False", f"FailedGet{kind}Metric")

    play(scenario)


def test_edge_16_two_metrics_of_one_name_are_independent(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        for name, length in (("a", "20"), ("b", "40")):
            stage.metrics.set_external(stage.namespace, "queue", length, queue=name)
        both = [external_metric("queue", average="10", queue=name) for name in ("a", "b")]
        await stage.hpa("web", metrics=both)
        assert await after_one_round(stage) == 4
        current = (await stage.read_hpa("web"))["status"]["currentMetrics"]
        assert [one["external"]["current"]["averageValue"] for one in current] == ["20", "40"]

    play(scenario)


def test_a_changed_metric_is_asked_for_at_once(play):
    """The questions belong to the spec; native HPAs have no generation that would say that it changed."""

    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        stage.metrics.set_external(stage.namespace, "old", "10")
        stage.metrics.set_external(stage.namespace, "new", "40")
        await stage.hpa("web", metrics=[external_metric("old", average="10")])
        async with stage.running() as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 1
            await stage.edit_hpa("web", metrics=[external_metric("new", average="10")])
            await stage.step(actor)
            assert await stage.replicas("web") == 4

    play(scenario)


@in_virtual_time
async def test_answers_to_the_old_spec_are_not_taken_for_answers_to_the_new(stage):
    await stage.bare_deployment("web", 4)
    stage.metrics.set_external(stage.namespace, "slow", "10")
    stage.metrics.set_external(stage.namespace, "quick", "40")
    await stage.hpa("web", metrics=[external_metric("slow", average="10")], behavior=NO_WINDOW)
    async with stage.running() as actor:
        stage.metrics.delay["slow"] = 5.0
        actor.operator._batches.reconcile_all(actor.operator.hpas)
        await stage.pass_time(1)
        await stage.edit_hpa("web", metrics=[external_metric("quick", average="10")])
        await actor.operator._reconciler.wait_idle()
        assert [one.status for one in actor.line.writes if one.is_scale] == []
    assert await stage.replicas("web") == 4


def test_spec_c1_a_v1_client_keeps_selectors_and_targets(play):
    async def scenario(stage: Stage) -> None:
        if not stage.native:
            return  # only the server's own HPAs are served in v1
        await stage.bare_deployment("web", 1)
        stage.metrics.set_external(stage.namespace, "queue", "30", queue="mine")
        await stage.hpa("web", metrics=[external_metric("queue", average="10", queue="mine")])
        old = await stage.client.get(NATIVE_V1, "web", stage.namespace)
        old["metadata"]["labels"] = {"touched": "yes"}
        await stage.client.update(NATIVE_V1, "web", stage.namespace, old)
        assert await after_one_round(stage) == 3

    play(scenario)
