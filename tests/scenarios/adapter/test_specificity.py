"""SPEC-*: our operator scales on metrics that our adapter serves, told apart by selectors, through the aggregator."""

import pytest

from tests.scenarios.adapter.served import VERSIONS, ServedStage
from tests.scenarios.horizontal.stage import Actor
from tests.support.objects import external_metric, metric_target, pods_metric
from trimtab.cluster.resource import Json

NEW = VERSIONS[0]
AT_ONCE = {
    "stabilizationWindowSeconds": 0,
    "policies": [{"type": "Pods", "value": 50, "periodSeconds": 15}],
}
QUICK = {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE}


def queue_metric(average: str, selector: Json | None = None) -> Json:
    described = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"}
    metric: Json = {"name": "queue_length"} | ({"selector": selector} if selector else {})
    source = {"describedObject": described, "metric": metric, "target": metric_target(average, None)}
    return {"type": "Object", "object": source}


def labelled(**labels: str) -> Json:
    return {"matchLabels": labels}


async def scaled(stage: ServedStage, name: str, replicas: int, *metrics: Json) -> int:
    """Scale a new workload by one round on these metrics, and return its replicas."""
    await stage.bare_deployment(name, replicas)
    await stage.hpa(name, metrics=list(metrics), maxReplicas=50, behavior=QUICK)
    async with stage.running() as actor:
        await stage.step(actor)
    return await stage.replicas(name)


def set_queues(stage: ServedStage) -> None:
    for queue, length in (("some-jobs", "3"), ("other-jobs", "7")):
        stage.set_object("queue_length", length, "statefulsets.apps", "broker", queue=queue)


def test_spec_a1_spec_g3_two_queues_of_one_statefulset_are_told_apart(play):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        some, other = (
            queue_metric("1", labelled(queue="some-jobs")),
            queue_metric("1", labelled(queue="other-jobs")),
        )
        assert await scaled(stage, "some", 1, some) == 3
        assert await scaled(stage, "other", 1, other) == 7

    play(scenario)


@pytest.mark.parametrize(
    ("operator", "values", "want"),
    [("In", ["some-jobs"], 3), ("NotIn", ["some-jobs"], 7), ("Exists", [], 10), ("DoesNotExist", [], 1)],
)
def test_spec_g2_spec_g3_every_operator_of_a_selector_counts(play, operator, values, want):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        expression = {"key": "queue", "operator": operator} | ({"values": values} if values else {})
        metric = queue_metric("1", {"matchExpressions": [expression]})
        name = f"by-{operator.lower()}"
        assert await scaled(stage, name, 1, metric) == want
        active = (await stage.conditions(name))["ScalingActive"]
        assert active == (("True", "ValidMetricFound") if want > 1 else ("False", "FailedGetObjectMetric"))

    play(scenario)


def test_spec_g1_the_status_repeats_metric_selector_and_object(play):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        await scaled(stage, "echo", 3, queue_metric("1", labelled(queue="some-jobs")))
        current = (await stage.read_hpa("echo"))["status"]["currentMetrics"][0]["object"]
        assert current["metric"] == {"name": "queue_length", "selector": labelled(queue="some-jobs")}
        assert current["describedObject"]["name"] == "broker"
        assert current["current"] == {"averageValue": "1"}

    play(scenario)


@pytest.mark.parametrize(("replicas", "wanted"), [(3, 3), (1, 3)], ids=["SPEC-A2 enough", "SPEC-A2 too few"])
def test_an_average_value_is_divided_by_the_replicas(play, replicas, wanted):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        metric = queue_metric("1", labelled(queue="some-jobs"))
        assert await scaled(stage, f"average-{replicas}", replicas, metric) == wanted

    play(scenario)


def test_spec_a3_external_series_are_summed_and_chosen_by_the_selector(play):
    async def scenario(stage: ServedStage) -> None:
        for shop, queue, length in (("a", "1", "4"), ("a", "2", "500m"), ("b", "3", "90")):
            stage.set_external("sqs", length, shop=shop, queue=queue)
        assert await scaled(stage, "summed", 1, external_metric("sqs", average="500m", shop="a")) == 9
        current = (await stage.read_hpa("summed"))["status"]["currentMetrics"][0]["external"]["current"]
        assert current == {"averageValue": "4500m"}

    play(scenario)


def test_a_pods_metric_counts_only_the_series_of_its_selector(play):
    async def scenario(stage: ServedStage) -> None:
        await stage.deployment("workers", 2)
        for pod in await stage.pods_of("workers"):
            for verb, rate in (("GET", "10"), ("POST", "1000")):
                stage.set_object("rps", rate, "pods", pod, verb=verb)
        metric = pods_metric("rps", "5", verb="GET")
        await stage.hpa("workers", metrics=[metric], maxReplicas=50, behavior=QUICK)
        async with stage.running() as actor:
            await stage.step(actor)
        assert await stage.replicas("workers") == 4

    play(scenario)


@pytest.mark.parametrize("kind", ["Object", "Pods", "External"])
def test_spec_n1_an_invalid_selector_fails_at_runtime(play, kind):
    async def scenario(stage: ServedStage) -> None:
        selector = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
        source: Json = {
            "metric": {"name": "queue_length", "selector": selector},
            "target": metric_target("1", None),
        }
        if kind == "Object":
            source["describedObject"] = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"}
        stage.use_native_hpas()  # our own kind refuses such a selector when it is written
        name = f"invalid-{kind.lower()}"
        assert await scaled(stage, name, 2, {"type": kind, kind.lower(): source}) == 2
        assert (await stage.conditions(name))["ScalingActive"] == ("False", f"FailedGet{kind}Metric")

    play(scenario)


def test_spec_d1_the_version_is_followed_down_and_up_while_we_run(play):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        await stage.bare_deployment("versions", 1)
        await stage.hpa("versions", metrics=[queue_metric("1", labelled(queue="some-jobs"))], behavior=QUICK)

        async def asked_by(actor: Actor) -> set[str]:
            actor.line.sent.clear()
            await stage.step(actor, after=16)
            return {one.path.split("/")[3] for one in actor.line.sent if one.path.endswith("/queue_length")}

        async with stage.running() as actor:
            assert await asked_by(actor) == {"v1beta2"}
            await stage.unregister(NEW)
            assert await asked_by(actor) == {"v1beta1"}
            assert await stage.replicas("versions") == 3
            await stage.register(NEW)
            assert await asked_by(actor) == {"v1beta2"}
        assert (await stage.conditions("versions"))["ScalingActive"] == ("True", "ValidMetricFound")

    play(scenario)


def test_an_adapter_that_goes_away_is_held_and_told_and_back_again_is_followed(play):
    async def scenario(stage: ServedStage) -> None:
        set_queues(stage)
        await stage.bare_deployment("outage", 3)
        metric = queue_metric("1", labelled(queue="some-jobs"))
        await stage.hpa("outage", metrics=[metric], behavior=QUICK)
        async with stage.running() as actor:
            await stage.unregister(*VERSIONS)
            await stage.step(actor, after=16)
            assert await stage.replicas("outage") == 3
            assert (await stage.conditions("outage"))["ScalingActive"] == ("False", "FailedGetObjectMetric")
            await stage.register(*VERSIONS)
            stage.set_object("queue_length", "5", "statefulsets.apps", "broker", queue="some-jobs")
            await stage.step(actor, after=16)
            assert await stage.replicas("outage") == 5

    play(scenario)
