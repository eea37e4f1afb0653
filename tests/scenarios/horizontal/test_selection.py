"""SEL-*: which pods count (KEP-5625), end to end."""

import json
from pathlib import Path

import pytest
import yaml

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.scenarios.horizontal.workloads import Controlled
from tests.support.clock import in_virtual_time
from tests.support.objects import cpu_metric, external_metric, memory_metric, owner_of
from tests.support.transport import status
from trimtab.cluster.client import DeleteOptions, ListOptions
from trimtab.cluster.resource import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, Json, Resource

F1: Json = {"minReplicas": 1, "maxReplicas": 5, "metrics": [cpu_metric(50)]}
BY_OWNER: Json = {"selectionStrategy": "OwnerReference"}
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Json)
SEEDS = Path(__file__).parents[2] / "data" / "seeds"
HITS = "horizontal_pod_autoscaler_controller_cache_hits_total"
MISSES = "horizontal_pod_autoscaler_controller_cache_misses_total"


async def f1(stage: Stage) -> None:
    """One pod of the workload at 10m, one pod of a Job with the same labels at 1000m; both ask for 100m."""
    await stage.deployment("web", 1)
    await stage.workloads.job("scrape", {"app": "web"})
    stage.use_cpu(web="10m", scrape="1")
    stage.use_memory(web="10Mi", scrape="1000Mi")


async def owned_through_config_map(stage: Stage) -> None:
    """A pod that the workload owns through an object of a kind that nobody watches."""
    deployment = await stage.client.get(DEPLOYMENTS.untyped(), "web", stage.namespace)
    owner = owner_of("apps/v1", "Deployment", deployment)
    body = {"metadata": {"name": "group", "ownerReferences": [owner]}}
    group = await stage.client.create(CONFIG_MAPS, body, stage.namespace)
    await stage.pod("grouped", {"app": "web"}, owners=[owner_of("v1", "ConfigMap", group)])


async def average(stage: Stage, name: str = "web") -> int:
    hpa = await stage.read_hpa(name)
    return int(hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"])


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [
        pytest.param("OwnerReference", 1, id="SEL-E1 the Job's pod does not count"),
        pytest.param("LabelSelector", 4, id="SEL-E3 the Job's pod counts"),
        pytest.param(None, 4, id="SEL-E5 absent means LabelSelector"),
    ],
)
def test_a_pod_with_the_same_labels(play, strategy, replicas):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **({"selectionStrategy": strategy} if strategy else {}))
        async with stage.running() as actor:
            await stage.step(actor)
        assert await stage.replicas("web") == replicas
        hpa = await stage.read_hpa("web")
        if not (stage.native and stage.prunes):
            assert hpa["spec"].get("selectionStrategy") == strategy

    play(scenario)


def test_sel_e1_the_yaml_of_the_proposal_counts_only_the_pods_of_the_deployment(play_own):
    """KEP-5625's manifests, verbatim but for the HPA's apiVersion: the field is `SelectionStrategy` there."""

    async def scenario(stage: Stage) -> None:
        deployment, job, hpa = yaml.safe_load_all((SEEDS / "hpa-shared-labels.yaml").read_text())
        fragment = yaml.safe_load((SEEDS / "hpa-owner-reference.yaml").read_text())
        hpa |= {"apiVersion": stage.resource.api_version, "spec": hpa["spec"] | fragment["spec"]}
        assert isinstance(stage.workloads, Controlled)
        await stage.workloads.create(DEPLOYMENTS, deployment)
        await stage.workloads.create(JOBS, job)
        stage.use_cpu(test_app="10m", test_job="1")
        await stage.client.create(stage.resource.untyped(), hpa, stage.namespace)
        async with stage.running() as actor:
            await stage.step(actor)
            assert await average(stage, "test-app-hpa") == 10
            assert ("SelectionStrategyActive", "Pod selection strategy 'OwnerReference' is active") in (
                await stage.events()
            )
        assert await stage.replicas("test-app") == 1

    play_own(scenario)


@pytest.mark.parametrize("spelling", ["selectionStrategy", "SelectionStrategy"])
@in_virtual_time
async def test_either_spelling_counts_by_owner_and_a_change_of_it_is_followed(stage, spelling):
    """The lab serves the field in its own HPAs too, as a future API server would."""
    await f1(stage)
    by_owner: Json = {spelling: "OwnerReference"}
    await stage.hpa("web", **F1, **by_owner)
    async with stage.running() as actor:
        await stage.step(actor)
        assert await average(stage) == 10
        stored = "selectionStrategy" if stage.native else spelling  # the lab's own kind stores the small one
        await stage.edit_hpa("web", **{stored: "LabelSelector"})
        await stage.step(actor)
        assert await average(stage) > 10


def test_pods_beyond_those_of_the_target_are_told_until_they_are_gone_or_owners_count(play):
    """Section 1.4: advice, and only where labels alone say what counts."""

    async def scenario(stage: Stage) -> None:
        async def is_gone() -> bool:
            return not await stage.pods_of("scrape")

        await f1(stage)
        stage.use_cpu(web="50m", scrape="50m")
        await stage.hpa("web", **F1)
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.conditions("web"))["SelectorMatchesExtraPods"] == ("True", "SelectorOverlap")
            writes = len(actor.line.writes)
            await stage.step(actor)
            assert len(actor.line.writes) == writes
            await stage.edit_hpa("web", **BY_OWNER)
            await stage.step(actor)
            assert "SelectorMatchesExtraPods" not in await stage.conditions("web")
            await stage.edit_hpa("web", selectionStrategy="LabelSelector")
            await stage.step(actor)
            assert "SelectorMatchesExtraPods" in await stage.conditions("web")
            with_pods = DeleteOptions(propagation="Background")
            await stage.client.delete(JOBS, "scrape", stage.namespace, options=with_pods)
            await stage.wait_for(is_gone)
            await stage.step(actor)
            assert "SelectorMatchesExtraPods" not in await stage.conditions("web")
        assert await stage.replicas("web") == 1

    play(scenario)


def test_sel_e1_no_scale_up_within_a_whole_reaction_window_for_cpu_and_memory(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1 | {"metrics": [cpu_metric(50), memory_metric(50)]}, **BY_OWNER)
        async with stage.running() as actor:
            for _ in range(6):
                await stage.step(actor, after=60)
                assert await stage.replicas("web") == 1

    play(scenario)


def test_sel_e2_a_bare_pod_does_not_enter_the_average(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
            assert await average(stage) == 10

    play(scenario)


def test_sel_e4_by_labels_the_average_includes_the_job(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, selectionStrategy="LabelSelector")
        async with stage.running() as actor:
            await stage.step(actor)
            assert await average(stage) == 505

    play(scenario)


def test_sel_e3_the_first_step_is_limited_and_the_next_reaches_the_maximum(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1)
        async with stage.running() as actor:
            seen = []
            for _ in range(2):
                await stage.step(actor)
                seen.append(await stage.replicas("web"))
        assert seen == [4, 5]

    play(scenario)


@pytest.mark.parametrize(
    ("strategies", "active", "replicas"),
    [
        pytest.param(("OwnerReference", "OwnerReference"), "True", (4, 1), id="SEL-E6 both by owner"),
        pytest.param(("OwnerReference", "LabelSelector"), "False", (1, 1), id="SEL-E6 one by label"),
    ],
)
def test_two_deployments_with_the_same_labels(play, strategies, active, replicas):
    async def scenario(stage: Stage) -> None:
        for name, strategy in zip(("hot", "cold"), strategies, strict=True):
            await stage.deployment(name, 1, labels={"app": "twins"})
            await stage.hpa(name, **F1, selectionStrategy=strategy)
        stage.use_cpu(hot="500m", cold="30m")
        async with stage.running() as actor:
            await stage.steps(actor, 2)
        for name, wanted in zip(("hot", "cold"), replicas, strict=True):
            conditions = await stage.conditions(name)
            assert conditions["ScalingActive"][0] == active
            assert await stage.replicas(name) >= wanted if wanted > 1 else await stage.replicas(name) == 1

    play(scenario)


def test_two_hpas_on_one_target_are_always_ambiguous(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="500m")
        for name in ("one", "other"):
            await stage.hpa(name, target="web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.steps(actor, 3)
            for name in ("one", "other"):
                assert (await stage.conditions(name))["ScalingActive"] == ("False", "AmbiguousSelector")
            assert await stage.replicas("web") == 2
            assert await stage.event_count("AmbiguousSelector") == 2

    play(scenario)


DRY = {"autoscaling.trimtab.dev/mode": "DryRun"}


@pytest.mark.parametrize("strategy", ["LabelSelector", "OwnerReference"])
def test_a_dry_run_on_the_same_target_is_no_rival(play, strategy):
    """RH-M6: the copy that previews other numbers stopped the HPA that scales."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="100m")
        await stage.hpa("live", target="web", **F1, selectionStrategy=strategy)
        preview = F1 | {"metrics": [cpu_metric(100)], "minReplicas": 2}
        await stage.hpa("preview", target="web", annotations=DRY, **preview, selectionStrategy=strategy)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            assert await stage.replicas("web") == 4
            assert (await stage.conditions("live"))["ScalingActive"][0] == "True"
            # The preview is of itself alone, in the place of whoever scales the target now.
            assert (await stage.conditions("preview"))["ScalingActive"][0] == "True"
            assert await stage.event_count("AmbiguousSelector") == 0
            live = {"metadata": {"annotations": {"autoscaling.trimtab.dev/mode": None}}}
            await stage.client.patch(stage.resource.untyped(), "preview", stage.namespace, live)
            await stage.step(actor)
            for name in ("live", "preview"):
                assert (await stage.conditions(name))["ScalingActive"] == ("False", "AmbiguousSelector")

    play(scenario)


def test_an_hpa_that_a_misspelt_strategy_holds_is_no_rival(play):
    """One that a misspelt mode holds was none."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="100m")
        await stage.hpa("live", target="web", **F1)
        misspelt = {"autoscaling.trimtab.dev/selection-strategy": "ownerreference"}
        await stage.hpa("held", target="web", annotations=misspelt, **F1)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            for name in ("live", "held"):
                assert (await stage.conditions(name))["ScalingActive"][0] == "True"
        assert await stage.replicas("web") == 4

    play(scenario)


def test_a_dry_run_tells_that_another_target_counts_the_same_pods(play):
    """Two targets with the same labels: the live HPA is left alone, the dry run would be stopped and says so."""

    async def scenario(stage: Stage) -> None:
        for name, annotations in (("hot", {}), ("cold", DRY)):
            await stage.deployment(name, 1, labels={"app": "twins"})
            await stage.hpa(name, annotations=annotations, **F1)
        stage.use_cpu(hot="100m", cold="100m")
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.conditions("hot"))["ScalingActive"][0] == "True"
            assert (await stage.conditions("cold"))["ScalingActive"] == ("False", "AmbiguousSelector")
        assert await stage.replicas("hot") == 4

    play(scenario)


def test_sel_v1_a_new_hpa_by_owner_says_so_once_per_generation(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.steps(actor, 3)
        told = [one for one in await stage.events() if one[0] == "SelectionStrategyActive"]
        assert told == [("SelectionStrategyActive", "Pod selection strategy 'OwnerReference' is active")]
        assert await stage.event_count("StrategyChanged") == 0

    play(scenario)


def test_sel_v2_a_strategy_is_switched_both_ways_with_one_event_each(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, selectionStrategy="LabelSelector")
        async with stage.running() as actor:
            await stage.step(actor)
            for strategy in ("OwnerReference", "LabelSelector"):
                await stage.edit_hpa("web", selectionStrategy=strategy)
                await stage.steps(actor, 2)
        told = [message for reason, message in await stage.events() if reason == "StrategyChanged"]
        assert told == [
            "Pod selection strategy changed from 'LabelSelector' to 'OwnerReference'",
            "Pod selection strategy changed from 'OwnerReference' to 'LabelSelector'",
        ]

    play(scenario)


def test_a_restart_neither_changes_the_strategy_nor_tells_that_it_did(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **BY_OWNER)
        for _ in range(3):
            async with stage.running() as actor:
                await stage.steps(actor, 2)
        assert await stage.replicas("web") == 1
        assert await stage.event_count("StrategyChanged") == 0
        assert await stage.event_count("SelectionStrategyActive") == 1

    play(scenario)


def test_sel_u4_a_replica_set_that_is_gone_means_not_owned(play_by_hand):
    """By hand: where a garbage collector runs, it soon takes a pod whose owner is gone."""

    async def scenario(stage: Stage) -> None:
        await f1(stage)
        gone = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "gone",
            "uid": "b6b3f0a2",
            "controller": True,
        }
        await stage.pod("orphan", {"app": "web"}, owners=[gone])
        stage.use_cpu(orphan="1")
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.steps(actor, 2, after=5)
            assert await average(stage) == 10
            assert actor.reads("replicasets/gone") <= 1
        assert await stage.event_count("PodSelectionFallback") == 0

    play_by_hand(scenario)


def test_an_owner_is_found_in_whichever_version_its_kind_is_served(play):
    """RH-M1: pods that named an unserved version took all pods of the same owner out of the count."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        await owned_through_config_map(stage)
        group = await stage.client.get(CONFIG_MAPS, "group", stage.namespace)
        await stage.pod("aged", {"app": "web"}, owners=[owner_of("v1beta3", "ConfigMap", group)])
        stage.use_cpu(web="10m", grouped="30m", aged="50m")
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
            assert await average(stage) == 30

    play(scenario)


def test_a_pod_that_names_an_owner_falsely_speaks_for_itself_alone(play_by_hand):
    """RH-L3: owners were found by uid alone, so one false reference made every pod of the workload ownerless.

    By hand: the garbage collector takes such a pod, after a while.
    """

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        replica_set = await stage.client.get(REPLICA_SETS.untyped(), "web-rs", stage.namespace)
        false = owner_of("batch/v1", "Job", replica_set) | {"name": "no-such-job"}
        await stage.pod("aaa", {"app": "web"}, owners=[false])
        stage.use_cpu(web="20m", aaa="1")
        await stage.hpa("web", **F1 | {"minReplicas": 2}, **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
            assert await average(stage) == 20

    play_by_hand(scenario)


def test_sel_m1_an_owner_of_another_kind_is_asked_for_once_per_lifetime(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await owned_through_config_map(stage)
        stage.use_cpu(grouped="30m")
        await stage.hpa("web", **F1 | {"minReplicas": 1}, **BY_OWNER)
        async with stage.running() as actor:

            def counted() -> tuple[float, float]:
                return (
                    actor.count(MISSES, resource_kind="configmaps"),
                    actor.count(HITS, resource_kind="configmaps"),
                )

            await stage.step(actor)
            assert await average(stage) == 20
            assert counted() == (1, 0)
            await stage.step(actor)
            assert counted() == (1, 1)
            await stage.step(actor, after=61)
            assert counted() == (2, 1)
            assert actor.reads("configmaps/group") == 2

    play(scenario)


def unreadable_owner(actor: Actor, code: int) -> None:
    actor.line.answer = lambda request: status(code, "no") if "/configmaps/" in request.path else None


@pytest.mark.parametrize("code", [403, 500], ids=["SEL-R1 forbidden", "SEL-R1 server error"])
def test_owners_that_cannot_be_read_mean_all_pods_and_no_scale_down(play, code):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3)
        await owned_through_config_map(stage)
        stage.use_cpu(web="1m", grouped="1m")
        spec = F1 | {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
        await stage.hpa("web", **spec, **BY_OWNER)
        async with stage.running() as actor:
            unreadable_owner(actor, code)
            await stage.steps(actor, 3)
            assert await stage.replicas("web") == 3
            assert await stage.event_count("PodSelectionFallback") == 1
            assert (await stage.conditions("web"))["PodSelectionFallback"] == ("True", "OwnersUnreadable")
            assert ("the right to get configmaps is missing" in await fallback(stage)) is (code == 403)
            stage.use_cpu(web="500m", grouped="500m")
            await stage.step(actor)
            assert await stage.replicas("web") > 3
            total = "horizontal_pod_autoscaler_controller_reconciliations_total"
            assert actor.count(total, action="scale_up", error="none") == 1

    play(scenario)


def test_e3_owners_that_cannot_be_read_let_an_average_of_no_pods_go_to_zero(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        await owned_through_config_map(stage)
        stage.metrics.set_external(stage.namespace, "jobs", "0")
        metrics = [external_metric("jobs", average="10")]
        no_window: Json = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
        await stage.hpa("web", minReplicas=0, metrics=metrics, **no_window, **BY_OWNER)
        async with stage.running() as actor:
            unreadable_owner(actor, 403)
            await stage.step(actor)
            assert await stage.replicas("web") == 0
            assert (await stage.conditions("web"))["PodSelectionFallback"] == ("True", "OwnersUnreadable")
            assert "not lowered" not in await fallback(stage)

    play(scenario)


async def fallback(stage: Stage) -> str:
    """Return why all pods count, as the status tells it."""
    conditions = (await stage.read_hpa("web"))["status"]["conditions"]
    return "".join(one["message"] for one in conditions if one["type"] == "PodSelectionFallback")


def test_a_failed_lookup_is_kept_for_its_lifetime_and_the_condition_ends_with_it(play):
    """The proposal's cache entry holds an error as well as an owner."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3)
        await owned_through_config_map(stage)
        stage.use_cpu(web="50m", grouped="50m")
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            unreadable_owner(actor, 403)
            await stage.steps(actor, 4)
            assert actor.reads("configmaps/group") == 1
            assert actor.count(MISSES, resource_kind="configmaps") == 1
            assert actor.count(HITS, resource_kind="configmaps") == 3
            assert "owner ConfigMap/group: " in await fallback(stage)
            actor.line.answer = lambda _: None
            await stage.step(actor, after=61)
            assert actor.reads("configmaps/group") == 2
            assert "PodSelectionFallback" not in await stage.conditions("web")

    play(scenario)


def test_sel_r1_replica_sets_that_cannot_be_listed_mean_all_pods_too(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3)
        await stage.deployment("other", 1)
        stage.use_cpu(web="1m", other="200m")
        spec = F1 | {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
        await stage.hpa("web", **spec, **BY_OWNER)
        await stage.hpa("other", **spec)
        async with stage.running() as actor:
            actor.line.answer = lambda request: (
                status(403, "Forbidden") if "/replicasets" in request.path else None
            )
            await actor.operator.step()
            await actor.operator.step()
        assert await stage.replicas("web") == 3
        assert await stage.replicas("other") == 4
        assert await stage.event_count("PodSelectionFallback") == 1

    play(scenario)


def test_sel_p1_many_pods_cost_no_request_each(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 60)
        stage.use_cpu(web="25m")
        await stage.hpa("web", **F1 | {"maxReplicas": 100}, **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
            assert actor.reads("/replicasets/") + actor.reads("/deployments/") == 0
            before = len(actor.line.sent)
            await stage.steps(actor, 2)
            asked = [one for one in actor.line.sent[before:] if ("watch", "true") not in one.query]
            assert {one.path.split("/")[2] for one in asked} == {"metrics.k8s.io"}

    play(scenario)


def test_sel_p1_by_label_no_owner_is_looked_at(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1)
        async with stage.running() as actor:
            await stage.steps(actor, 3)
            assert not [one for one in actor.line.sent if "replicasets" in one.path]

    play(scenario)


def test_a_recreated_owner_of_the_same_name_is_another_owner(play_by_hand):
    """Edge 13: the uid decides. By hand: controllers would give the pods away or replace them at once."""

    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
            (pod,) = [one["metadata"]["name"] for one in await _pods(stage) if _owner(one) == "web-rs"]
            old = await stage.client.get(REPLICA_SETS.untyped(), "web-rs", stage.namespace)
            # Orphaned first, so that no garbage collector takes the pod with its owner.
            await stage.client.patch(PODS, pod, stage.namespace, {"metadata": {"ownerReferences": None}})
            await stage.client.delete(REPLICA_SETS, "web-rs", stage.namespace)
            former = {"metadata": {"ownerReferences": [owner_of("apps/v1", "ReplicaSet", old)]}}
            await stage.client.patch(PODS, pod, stage.namespace, former)
            body = {"metadata": {"name": "web-rs"}, "spec": old["spec"]}
            await stage.client.create(REPLICA_SETS.untyped(), body, stage.namespace)
            await stage.step(actor)
            assert (await stage.conditions("web"))["ScalingActive"][0] == "False"
            assert await stage.replicas("web") == 1

    play_by_hand(scenario)


async def _pods(stage: Stage) -> tuple[Json, ...]:
    return (await stage.client.list(PODS.untyped(), ListOptions(stage.namespace))).items


def _owner(pod: Json) -> str:
    return "".join(one["name"] for one in pod["metadata"].get("ownerReferences", []))


def test_a_value_metric_counts_ready_owned_pods_only(play):
    """Edge 25: 2 owned ready pods times 200 / 100 make 4, the foreign one is not multiplied."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        await stage.pod("scrape", {"app": "web"})
        stage.metrics.set_external(stage.namespace, "jobs", "200")
        await stage.hpa("web", metrics=[external_metric("jobs", value="100")], **BY_OWNER)
        async with stage.running() as actor:
            await stage.step(actor)
        assert await stage.replicas("web") == 4

    play(scenario)


def test_the_memory_of_a_native_hpa_is_an_annotation_of_its_own(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1)
        async with stage.running() as actor:
            await stage.step(actor)
        hpa = await stage.read_hpa("web")
        annotations = hpa["metadata"].get("annotations") or {}
        stored = annotations["autoscaling.trimtab.dev/memory"] if stage.native else hpa["status"]["memory"]
        assert json.loads(stored)["uid"] == hpa["metadata"]["uid"]
        assert ("memory" in hpa["status"]) != stage.native

    play(scenario)
