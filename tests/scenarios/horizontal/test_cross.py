"""Features together (section 6 of the specification), and what every process must do whatever the feature."""

from datetime import timedelta

import pytest

from tests.scenarios.horizontal.bodies import NO_WINDOW, cpu_metric, external_metric, tolerances
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.test_tolerance import NATIVE_V1
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.resources import STATEFUL_SETS
from trimtab.operator.horizontal.native import RivalControllerError, refuse_rival_controller

QUEUE_VALUE = external_metric("queue", value="100")
ALL_FOUR: Json = {
    "minReplicas": 0,
    "metrics": [cpu_metric(100), external_metric("queue", average="100", shard="a")],
    "behavior": tolerances(up="0.05"),
    "selectionStrategy": "OwnerReference",
}


def fill(stage: Stage, load: int) -> None:
    stage.metrics.set_external(stage.namespace, "queue", str(load))


def test_cross_1_by_owner_and_a_value_metric_after_leaving_zero(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1, is_slow=True)
        await stage.pod("foreign", {"app": "web"})
        fill(stage, 0)
        await stage.hpa(
            "web",
            minReplicas=0,
            metrics=[QUEUE_VALUE],
            behavior=NO_WINDOW,
            selectionStrategy="OwnerReference",
        )
        async with stage.running() as actor:
            await stage.steps(actor, 1, "web")
            assert await stage.replicas("web") == 0
            fill(stage, 200)
            await stage.step(actor)
            await stage.follow("web")
            for _ in range(3):
                await stage.step(actor)
                assert await stage.replicas("web") == 2

    play(scenario)


def test_cross_3_a_tolerance_of_one_keeps_it_from_zero(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        fill(stage, 0)
        await stage.hpa("web", minReplicas=0, metrics=[QUEUE_VALUE], behavior=tolerances(down="1"))
        async with stage.running() as actor:
            await stage.steps(actor, 4, "web")
        assert await stage.replicas("web") == 2

    play(scenario)


def test_cross_6_two_hpas_on_a_workload_without_pods_are_not_ambiguous(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        fill(stage, 0)
        zero: Json = {"minReplicas": 0, "metrics": [external_metric("queue", average="100")]}
        await stage.hpa("web", **zero, behavior=NO_WINDOW)
        async with stage.running() as actor:
            await stage.steps(actor, 2, "web")
            assert await stage.replicas("web") == 0
            await stage.hpa("other", target="web", **zero, behavior=NO_WINDOW)
            await stage.steps(actor, 2, "web")
            assert (await stage.conditions("web"))["ScalingActive"][1] == "ValidMetricFound"

    play(scenario)


def test_cross_5_a_resized_pod_shifts_the_utilization_of_all_requests_together(play):
    """160m of 200m are 80 %; once one of the two pods asks for 300m, 160m of 400m are 40 %."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="80m")
        await stage.hpa("web", metrics=[cpu_metric(80)], behavior=NO_WINDOW)
        async with stage.running() as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 2
            leader = (await stage.pods_of("web"))[0]
            container = {"name": "app", "resources": {"requests": {"cpu": "300m"}}}
            await stage.client.resize(leader, stage.namespace, {"containers": [container]})
            await stage.step(actor)
            current = (await stage.read_hpa("web"))["status"]["currentMetrics"][0]["resource"]["current"]
            assert current["averageUtilization"] == 40
            assert await stage.replicas("web") == 1

    play(scenario)


def test_cross_7_a_v1_client_that_edits_an_hpa_with_all_four_features_loses_none(play):
    async def scenario(stage: Stage) -> None:
        if not stage.native:
            return  # only the server's own HPAs are served in v1
        await stage.deployment("web", 2)
        await stage.pod("foreign", {"app": "web"})
        stage.use_cpu(web="104m", foreign="1")
        stage.metrics.set_external(stage.namespace, "queue", "0", shard="a")
        stage.metrics.set_external(stage.namespace, "queue", "9000", shard="b")
        await stage.hpa("web", **ALL_FOUR)
        before = await stage.read_hpa("web")
        async with stage.running() as actor:
            await stage.step(actor)
            old = await stage.client.get(NATIVE_V1, "web", stage.namespace)
            old["spec"]["maxReplicas"] = 9
            await stage.client.update(NATIVE_V1, "web", stage.namespace, old)
            await stage.step(actor)
            assert await stage.replicas("web") == 2
            stage.use_cpu(web="107m")
            await stage.step(actor)
            assert await stage.replicas("web") == 3
        after = await stage.read_hpa("web")
        # v1 has a field for CPU, so CPU may come back in another place of the list.
        for spec in (before["spec"], after["spec"]):
            spec["metrics"].sort(key=lambda metric: str(metric["type"]))
        assert after["spec"] == before["spec"] | {"maxReplicas": 9}
        assert (await stage.conditions("web"))["ScalingActive"][0] == "True"

    play(scenario)


def test_cross_7_a_restart_keeps_all_four_features(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        await stage.pod("foreign", {"app": "web"})
        stage.use_cpu(web="104m", foreign="1")
        fill(stage, 0)
        await stage.hpa("web", **ALL_FOUR)
        stage.metrics.set_external(stage.namespace, "queue", "0", shard="a")
        for _ in range(2):
            async with stage.running() as actor:
                await stage.steps(actor, 2, "web")
                assert await stage.replicas("web") == 2
        stage.use_cpu(web="107m")
        async with stage.running() as actor:
            await stage.steps(actor, 1, "web")
        assert await stage.replicas("web") == 3

    play(scenario)


def test_a_target_of_a_custom_kind(play):
    async def scenario(stage: Stage) -> None:
        farms = await _farms(stage)
        body = {
            "apiVersion": "test.dev/v1",
            "kind": "Farm",
            "metadata": {"name": "web"},
            "spec": {"replicas": 1},
        }
        await stage.client.create(farms, body, stage.namespace)
        status = {"status": {"replicas": 1, "selector": "app=web"}}
        await stage.client.patch(farms, "web", stage.namespace, status, subresource="status")
        fill(stage, 300)
        reference = {"apiVersion": "test.dev/v1", "kind": "Farm", "name": "web"}
        await stage.hpa(
            "web", scaleTargetRef=reference, metrics=[external_metric("queue", average="100")], maxReplicas=9
        )
        async with stage.running() as actor:
            await stage.step(actor)
            farm = await stage.client.get(farms, "web", stage.namespace)
            assert farm["spec"]["replicas"] == 3

    play(scenario)


async def _farms(stage: Stage) -> Resource[Json]:
    """Install a kind of our own with a scale subresource."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    definition = {
        "metadata": {"name": "farms.test.dev"},
        "spec": {
            "group": "test.dev",
            "scope": "Namespaced",
            "names": {"plural": "farms", "kind": "Farm", "singular": "farm", "listKind": "FarmList"},
            "versions": [version],
        },
    }
    return await stage.install(definition, Resource("test.dev", "v1", "farms", "Farm", Json))


def test_a_stateful_set_is_scaled_too(play):
    async def scenario(stage: Stage) -> None:
        await stage.workloads.stateful_set("db", 1)
        fill(stage, 200)
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        await stage.hpa("db", scaleTargetRef=reference, metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.step(actor)
            found = await stage.client.get(STATEFUL_SETS.untyped(), "db", stage.namespace)
            assert found["spec"]["replicas"] == 2

    play(scenario)


@pytest.mark.parametrize("whole_process", [True, False], ids=["--dry-run", "one object's annotation"])
def test_a_dry_run_tells_and_does_not_scale(play, whole_process):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        fill(stage, 300)
        annotations = {} if whole_process else {"autoscaling.trimtab.dev/mode": "DryRun"}
        await stage.hpa("web", metrics=[external_metric("queue", average="100")], annotations=annotations)
        async with stage.running(dry_run=whole_process) as actor:
            await stage.steps(actor, 3)
            assert not [one for one in actor.line.writes if one.is_scale]
        assert await stage.replicas("web") == 1
        hpa = await stage.read_hpa("web")
        assert hpa["status"]["desiredReplicas"] == 3
        assert (await stage.conditions("web"))["AbleToScale"] == ("True", "DryRun")

    play(scenario)


def test_a_quiet_hpa_costs_no_write(play):
    """I15: an identical status is never written again."""

    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 3)
        fill(stage, 300)
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            before = len(actor.line.writes)
            await stage.steps(actor, 10)
            assert len(actor.line.writes) == before

    play(scenario)


def test_the_clusters_own_controller_is_noticed(play):
    async def scenario(stage: Stage) -> None:
        if not stage.native:
            return
        await stage.bare_deployment("web", 3)
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        long_after = stage.clock.now() + timedelta(minutes=10)
        await refuse_rival_controller(stage.client, long_after)
        path = f"{stage.resource.path(stage.namespace, 'web')}/status"
        body = b'{"status":{"desiredReplicas":3}}'
        headers = {"Content-Type": "application/merge-patch+json"}
        await stage.send("PATCH", path, [("fieldManager", "kube-controller-manager")], headers, body)
        with pytest.raises(RivalControllerError, match="two controllers on one object fight"):
            await refuse_rival_controller(stage.client, stage.clock.now())

    play(scenario)
