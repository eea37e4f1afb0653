"""Features together (section 6 of the specification), and what every process must do whatever the feature."""

import asyncio

import pytest

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.scenarios.horizontal.test_tolerance import NATIVE_V1
from tests.support.clock import in_virtual_time
from tests.support.objects import (
    NAMESPACES,
    NO_WINDOW,
    cpu_metric,
    external_metric,
    object_metric,
    tolerances,
)
from tests.support.transport import Break, status
from trimtab.cluster.resource import STATEFUL_SETS, Json, Resource
from trimtab.decide.horizontal import explain
from trimtab.operator.horizontal.kinds import KUBE_CONTROLLER_MANAGER, RivalControllerError

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


def test_a_target_is_found_in_whichever_version_its_kind_is_served(play):
    """RH-M1: kube-controller-manager scales a target whose reference names a version that is no longer served."""

    async def scenario(stage: Stage) -> None:
        farms = await _farms(stage)
        body = {
            "apiVersion": "test.dev/v1",
            "kind": "Farm",
            "metadata": {"name": "web"},
            "spec": {"replicas": 1},
        }
        await stage.client.create(farms, body, stage.namespace)
        state = {"status": {"replicas": 1, "selector": "app=farm"}}
        await stage.client.patch(farms, "web", stage.namespace, state, subresource="status")
        fill(stage, 300)
        reference = {"apiVersion": "test.dev/v1beta1", "kind": "Farm", "name": "web"}
        await stage.hpa("web", scaleTargetRef=reference, metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.step(actor)
            farm = await stage.client.get(farms, "web", stage.namespace)
            assert farm["spec"]["replicas"] == 3

    play(scenario)


def test_a_conflict_on_a_target_of_an_old_version_is_read_again(play):
    """RH-M1: the watch knows Deployments by group and kind, but a second look asked for apps/v1beta2."""

    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        fill(stage, 300)
        reference = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "web"}
        await stage.hpa("web", scaleTargetRef=reference, metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            left = [1]

            def conflict_once(_number, request):
                if not request.path.endswith("/scale") or not left[0]:
                    return None
                left[0] -= 1
                return Break.CONFLICT

            actor.line.break_write = conflict_once
            await stage.step(actor)
            assert (await stage.conditions("web"))["AbleToScale"][0] == "True"
        assert await stage.replicas("web") == 3
        assert await stage.event_count("FailedGetScale") == 0

    play(scenario)


def test_an_object_metric_describes_an_object_of_any_version(play):
    """RH-M1: the metrics API knows the resource and the group of the object, and no version."""

    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        stage.metrics.set_object(stage.namespace, "deployments.apps", "front", "hits", "300")
        described = ("apps/v1beta1", "Deployment", "front")
        await stage.hpa("web", metrics=[object_metric("hits", described, average="100")])
        async with stage.running() as actor:
            await stage.step(actor)
        assert await stage.replicas("web") == 3

    play(scenario)


@pytest.mark.parametrize("selector", [None, "", " "], ids=["no selector", "an empty one", "a blank one"])
def test_a_target_without_a_selector_stops_no_other_hpa(play, selector):
    """N1: an empty label query matches every pod of the namespace, so it was everyone's rival."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="200m")
        await stage.hpa("web", metrics=[cpu_metric(100)])
        farms = await _farms(stage)
        body = {
            "apiVersion": "test.dev/v1",
            "kind": "Farm",
            "metadata": {"name": "bare"},
            "spec": {"replicas": 1},
        }
        await stage.client.create(farms, body, stage.namespace)
        state = {"status": {"replicas": 1} | ({} if selector is None else {"selector": selector})}
        await stage.client.patch(farms, "bare", stage.namespace, state, subresource="status")
        reference = {"apiVersion": "test.dev/v1", "kind": "Farm", "name": "bare"}
        await stage.hpa("bare", scaleTargetRef=reference, metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            assert (await stage.conditions("bare"))["ScalingActive"] == ("False", "InvalidSelector")
            assert (await stage.conditions("web"))["ScalingActive"][0] == "True"
        assert await stage.replicas("web") == 4

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


def test_a_dry_run_tells_and_does_not_scale(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        fill(stage, 300)
        annotations = {"autoscaling.trimtab.dev/mode": "DryRun"}
        await stage.hpa("web", metrics=[external_metric("queue", average="100")], annotations=annotations)
        async with stage.running() as actor:
            await stage.steps(actor, 3)
            assert not [one for one in actor.line.writes if one.is_scale]
        assert await stage.replicas("web") == 1
        hpa = await stage.read_hpa("web")
        assert hpa["status"]["desiredReplicas"] == 3
        assert (await stage.conditions("web"))["AbleToScale"] == ("True", "DryRun")

    play(scenario)


def test_a_dry_run_of_the_process_writes_no_status(play):
    """A live operator resumes from the memory and the conditions in the status: they stay those of whoever acts."""

    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        fill(stage, 300)
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        before = await stage.read_hpa("web")
        async with stage.running(dry_run=True) as actor:
            await stage.steps(actor, 3)
            assert actor.line.writes == []
            (autoscaler,) = actor.operator.hpas
            record = autoscaler.records[-1]
            assert record.is_dry_run
            assert record.status_error is None
            able = record.decision.status.condition("AbleToScale")
            assert able is not None
            assert able.reason == "DryRun"
            assert (record.decision.current, record.decision.desired) == (1, 3)
        assert await stage.read_hpa("web") == before
        assert await stage.replicas("web") == 1

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


async def written_by_the_controller_manager(stage: Stage, namespace: str) -> None:
    path = f"{stage.resource.path(namespace, 'web')}/status"
    body = b'{"status":{"desiredReplicas":3}}'
    headers = {"Content-Type": "application/merge-patch+json"}
    await stage.send("PATCH", path, [("fieldManager", KUBE_CONTROLLER_MANAGER)], headers, body)


def test_the_clusters_own_controller_is_noticed(play):
    """N2: with rights over the watched namespace alone, and only once it wrote lately."""

    async def scenario(stage: Stage) -> None:
        if not stage.native:
            return
        await stage.bare_deployment("web", 3)
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        await written_by_the_controller_manager(stage, stage.namespace)
        with pytest.raises(RivalControllerError, match="two controllers on one object fight"):
            async with stage.running():
                pass
        await stage.pass_time(10 * 60)
        async with stage.running() as actor:
            assert actor.operator.health() == {}

    play(scenario)


@in_virtual_time
async def test_a_rival_in_a_namespace_that_is_not_watched_refuses_nothing(stage):
    if not stage.native:
        return
    await stage.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    await stage.bare_deployment("web", 3)
    made = await stage.hpa("web", metrics=[external_metric("queue", average="100")])
    other = {"metadata": {"name": "web"}, "spec": made["spec"]}
    await stage.client.create(stage.resource.untyped(), other, "elsewhere")
    await written_by_the_controller_manager(stage, "elsewhere")
    async with stage.running() as actor:
        assert actor.operator.health() == {}
        assert [one.key for one in actor.operator.hpas] == [f"{stage.namespace}/web"]


@in_virtual_time
async def test_native_hpas_wait_until_a_rival_can_be_ruled_out(stage):
    """N2: a list that fails is named by readyz and asked again; until then no native HPA is decided."""
    if not stage.native:
        return
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    await stage.hpa("web", metrics=[cpu_metric(50)])
    actor = Actor(stage, stage.settings())
    actor.line.answer = lambda request: (
        status(403, "Forbidden") if request.path.endswith("/horizontalpodautoscalers") else None
    )
    running = asyncio.ensure_future(actor.run())
    try:
        await stage.pass_time(60)
        assert "cannot be seen" in actor.operator.health()["native"]
        assert not actor.line.writes
        actor.line.answer = lambda request: None
        await stage.pass_time(60)
        assert actor.operator.health() == {}
        assert await stage.replicas("web") == 4
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@in_virtual_time
async def test_a_deleted_namespace_stops_no_native_hpa_of_the_others_after_a_restart(stage, caplog):
    """A deleted namespace loses its RoleBindings, so that nothing may be listed there."""
    if not stage.native:
        return
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    await stage.hpa("web", metrics=[cpu_metric(50)])
    actor = Actor(stage, stage.settings(watch_namespaces=("doomed", stage.namespace)))
    actor.line.answer = lambda request: (
        status(403, "Forbidden") if "/namespaces/doomed/" in request.path else None
    )
    running = asyncio.ensure_future(actor.run())
    try:
        await stage.pass_time(60)
        assert await stage.replicas("web") == 4
        assert actor.operator.health() == {}
        assert "cannot be seen" in actor.operator.warnings()["native HPAs of doomed"]
        logged = [record for record in caplog.records if "native HPAs of doomed" in record.getMessage()]
        assert len(logged) == 1
        actor.line.answer = lambda request: None
        await stage.pass_time(60)
        assert "native HPAs of doomed" not in actor.operator.warnings()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("annotation", "value"), [("mode", "dryrun"), ("mode", "Off"), ("selection-strategy", "ownerreference")]
)
@in_virtual_time
async def test_a_misspelt_annotation_holds_and_says_so(stage, caplog, annotation, value):
    """N13: the brake of roll-back.md did not brake when it was misspelt."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    name = f"autoscaling.trimtab.dev/{annotation}"
    await stage.hpa("web", metrics=[cpu_metric(50)], annotations={name: value})
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        assert not [one for one in actor.line.writes if one.is_scale]
        (autoscaler,) = actor.operator.hpas
        told = str(explain(autoscaler.records[-1]))
        assert f"held: annotation {name} is '{value}', which is not known" in told
        message = (await stage.read_hpa("web"))["status"]["conditions"][0]["message"]
        assert (await stage.conditions("web"))["AbleToScale"] == ("False", "UnknownAnnotation")
        assert f"annotation {name} is '{value}', which is not known" in message
        assert "would scale from 2 to 4" in message
        facts = [getattr(one, "facts", {}) for one in caplog.records if one.message == "nothing is scaled"]
        assert [one["why"].startswith(f"annotation {name} is") for one in facts] == [True]
        caplog.clear()
        await stage.client.patch(
            stage.resource.untyped(), "web", stage.namespace, {"metadata": {"annotations": {name: None}}}
        )
        await stage.steps(actor, 2)
    assert await stage.replicas("web") == 4


OLD_ANNOTATION = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"
STRATEGY = "autoscaling.trimtab.dev/selection-strategy"


@pytest.mark.parametrize(
    ("annotations", "field", "places"),
    [
        pytest.param(
            {STRATEGY: "OwnerReference", OLD_ANNOTATION: "LabelSelector"},
            None,
            f"annotation {STRATEGY} is 'OwnerReference' and annotation {OLD_ANNOTATION} is 'LabelSelector'",
            id="two annotations",
        ),
        pytest.param(
            {STRATEGY: "OwnerReference"},
            "LabelSelector",
            f"annotation {STRATEGY} is 'OwnerReference' and field spec.selectionStrategy is 'LabelSelector'",
            id="an annotation and the field, on a server that keeps it",
        ),
    ],
)
@in_virtual_time
async def test_two_different_strategies_hold_and_say_so(stage, annotations, field, places):
    """The first one counted, and nobody said that there is another."""
    if field and stage.native and stage.prunes:
        return
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    spec = {"selectionStrategy": field} if field else {}
    await stage.hpa("web", metrics=[cpu_metric(50)], annotations=annotations, **spec)
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        assert not [one for one in actor.line.writes if one.is_scale]
        (autoscaler,) = actor.operator.hpas
        assert f"held: {places}" in str(explain(autoscaler.records[-1]))
        message = (await stage.read_hpa("web"))["status"]["conditions"][0]["message"]
        assert (await stage.conditions("web"))["AbleToScale"] == ("False", "UnknownAnnotation")
        assert message.startswith(places)
        body = {"metadata": {"annotations": dict.fromkeys(annotations)}}
        await stage.client.patch(stage.resource.untyped(), "web", stage.namespace, body)
        await stage.steps(actor, 2)
    assert await stage.replicas("web") == 4


@in_virtual_time
async def test_one_strategy_in_two_annotations_is_one(stage):
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    annotations = dict.fromkeys((STRATEGY, OLD_ANNOTATION), "OwnerReference")
    await stage.hpa("web", metrics=[cpu_metric(50)], annotations=annotations)
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        (autoscaler,) = actor.operator.hpas
        assert autoscaler.records[-1].decision.trace.strategy == "OwnerReference"
    assert await stage.replicas("web") == 4


@in_virtual_time
async def test_a_misspelt_strategy_is_of_no_account_while_its_gate_is_off(stage):
    await stage.deployment("web", 2)
    stage.use_cpu(web="90m")
    annotations = {"autoscaling.trimtab.dev/selection-strategy": "ownerreference"}
    await stage.hpa("web", metrics=[cpu_metric(50)], annotations=annotations)
    async with stage.running(feature_gates="") as actor:
        await stage.steps(actor, 1)
    assert await stage.replicas("web") == 4
