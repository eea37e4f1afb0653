"""What a round costs, in requests and decisions: one list for all where it pays, and nothing for what stays the same."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.horizontal.stage import PERIOD, Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES, NO_WINDOW, cpu_metric, external_metric, owner_of
from trimtab.cluster.client import DeleteOptions
from trimtab.cluster.resource import DEPLOYMENTS, PODS, Json, Resource
from trimtab.operator.horizontal.look import SyncPeriods
from trimtab.operator.horizontal.loop import slot_of

EVERYWHERE = "/apis/metrics.k8s.io/v1/pods"
WORKLOADS = ("web", "shop", "mail")
TURNS = SyncPeriods(PERIOD, 2.0).slots
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Json)


@asynccontextmanager
async def three_namespaces(stage: Stage, **settings: Any):
    """One workload at its target in each of three namespaces, and an operator that works in all of them."""
    stages = [stage, await beside(stage), await beside(stage)]
    for one, name in zip(stages, WORKLOADS, strict=True):
        await one.deployment(name, 2)
        one.use_cpu(**{name: "50m"})
        await one.hpa(name, metrics=[cpu_metric(50)], behavior=NO_WINDOW)

    async def existing() -> list[tuple[str, str]]:
        pods = (await stage.client.list(PODS)).items
        return [(pod.metadata.namespace, pod.name) for pod in pods]

    stage.metrics.pods = existing
    async with stage.running(watch_namespaces=(), **settings) as actor:
        yield actor, [one.namespace for one in stages]


async def beside(stage: Stage) -> Stage:
    """Return another namespace on the same server, with the same metrics."""
    other = Stage(stage.clock, stage.transport, native=stage.native)
    other.metrics = stage.metrics
    await stage.client.create(NAMESPACES, {"metadata": {"name": other.namespace}})
    await other.workloads.open()
    return other


def asked(stage: Stage) -> list[str]:
    """Return which usage was asked for since the last call."""
    paths = [path for path in stage.metrics.asked if path.startswith("/apis/metrics.k8s.io/")]
    stage.metrics.asked.clear()
    return paths


def decided(actor: Actor) -> tuple[float, float]:
    """Return how many decisions were counted, and how many of them were left out as repetitions."""
    labels = {"action": "none", "error": "none"}
    total = actor.count("horizontal_pod_autoscaler_controller_reconciliations_total", **labels)
    return total, actor.count("trimtab_repeated_decisions_total")


@in_virtual_time
async def test_one_list_serves_all_namespaces(stage):
    async with three_namespaces(stage) as (actor, _):
        await stage.step(actor)
        assert asked(stage) == [EVERYWHERE]
        assert [one.records[-1].decision.desired for one in actor.operator.hpas] == [2, 2, 2]


@in_virtual_time
async def test_namespaces_are_asked_one_by_one_when_most_pods_are_elsewhere(stage, monkeypatch):
    monkeypatch.setattr("trimtab.operator.horizontal.usage.PODS_PER_REQUEST", 4)
    batch = await beside(stage)
    await batch.deployment("batch", 9)
    async with three_namespaces(stage) as (actor, places):
        await stage.step(actor)
        assert sorted(asked(stage)) == sorted(
            f"/apis/metrics.k8s.io/v1/namespaces/{place}/pods" for place in places
        )
        [first, *_] = await batch.pods_of("batch")
        at_once = DeleteOptions(grace_seconds=0)
        await batch.client.delete(PODS, first, batch.namespace, options=at_once)
        await stage.step(actor)
        assert asked(stage) == [EVERYWHERE]


@in_virtual_time
async def test_namespaces_are_asked_one_by_one_when_one_answer_would_be_huge(stage, monkeypatch):
    monkeypatch.setattr("trimtab.operator.horizontal.usage.MOST_PODS_AT_ONCE", 5)
    async with three_namespaces(stage) as (actor, places):
        await stage.step(actor)
        assert sorted(asked(stage)) == sorted(
            f"/apis/metrics.k8s.io/v1/namespaces/{place}/pods" for place in places
        )


IN_V1BETA1 = EVERYWHERE.replace("/v1/", "/v1beta1/")


def refused(stage: Stage, path: str) -> None:
    stage.metrics.raw[path] = {"kind": "Status", "status": "Failure", "code": 403, "message": "no"}


def nonsense(stage: Stage, path: str) -> None:
    stage.metrics.raw[path] = {"items": "many"}


def never(stage: Stage, path: str) -> None:
    stage.metrics.hang.add(path)


@pytest.mark.parametrize("trouble", [refused, nonsense, never])
@in_virtual_time
async def test_a_list_for_all_that_fails_makes_nobody_blind(stage, trouble):
    async with three_namespaces(stage) as (actor, _):
        trouble(stage, EVERYWHERE)
        trouble(stage, IN_V1BETA1)
        await stage.step(actor)
        assert len(asked(stage)) == 5  # for all in both versions, and then for each, in the same round
        assert [one.records[-1].decision.error for one in actor.operator.hpas] == [""] * 3
        await stage.step(actor)
        assert len(asked(stage)) == 3
        stage.metrics.raw.clear()
        stage.metrics.hang.clear()
        await stage.pass_time(60)
        await stage.step(actor)
        assert asked(stage) == [EVERYWHERE]


@pytest.mark.parametrize("trouble", [refused, nonsense, never])
@in_virtual_time
async def test_a_list_for_all_that_fails_in_one_version_is_read_in_the_other(stage, trouble):
    async with three_namespaces(stage) as (actor, _):
        trouble(stage, EVERYWHERE)
        await stage.step(actor)
        assert asked(stage) == [EVERYWHERE, IN_V1BETA1]
        assert [one.records[-1].decision.error for one in actor.operator.hpas] == [""] * 3
        await stage.step(actor)
        assert asked(stage)[-1] == IN_V1BETA1


@in_virtual_time
async def test_what_stays_the_same_costs_one_request_and_no_decision(stage):
    async with three_namespaces(stage) as (actor, _):
        await stage.steps(actor, 2)
        sent, (total, left_out) = len(actor.line.sent), decided(actor)
        asked(stage)
        await stage.steps(actor, 10)
        assert asked(stage) == [EVERYWHERE] * 10
        watches = sum(("watch", "true") in one.query for one in actor.line.sent[sent:])
        assert len(actor.line.sent) - sent - watches == 10
        assert decided(actor) == (total + 30, left_out + 30)


@in_virtual_time
async def test_a_change_is_decided_although_the_rest_stays_the_same(stage):
    async with three_namespaces(stage) as (actor, _):
        await stage.steps(actor, 4)
        stage.use_cpu(web="100m")
        await stage.step(actor)
        assert await stage.replicas("web") == 4
        assert decided(actor)[1] == 3 * 2 + 2


@in_virtual_time
async def test_windows_hold_through_decisions_that_were_left_out(stage):
    """What was recommended while nothing changed still holds a scale-down back for as long as it should."""
    await stage.bare_deployment("web", 5)
    stage.metrics.set_external(stage.namespace, "queue", "500")
    await stage.hpa("web", metrics=[external_metric("queue", average="100")])
    async with stage.running() as actor:
        await stage.steps(actor, 80)
        assert decided(actor)[1] >= 75
        stage.metrics.set_external(stage.namespace, "queue", "100")
        await stage.steps(actor, int(300 / PERIOD) - 1)
        assert await stage.replicas("web") == 5
        await stage.steps(actor, 1)
        assert await stage.replicas("web") == 1


@asynccontextmanager
async def going(actor: Actor):
    """Let the operator go its rounds by itself."""
    task = asyncio.ensure_future(actor.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_scaled(stage: Stage, name: str, replicas: int, within: float = 40) -> float:
    """Return how long it takes until a workload has these replicas."""
    started = stage.clock.monotonic()

    async def reached() -> bool:
        return await stage.replicas(name) == replicas

    await stage.wait_for(reached, within)
    return stage.clock.monotonic() - started


@asynccontextmanager
async def at_work(stage: Stage, **settings):
    """One workload at its target, and an operator that goes its rounds by itself; its turn was a second ago."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="50m")
    spec = {"metrics": [cpu_metric(50)], "behavior": NO_WINDOW} | settings.pop("spec", {})
    await stage.hpa("web", **{name: value for name, value in spec.items() if value is not None})
    actor = Actor(stage, stage.settings(**settings))
    async with going(actor):
        await stage.pass_time(2 * PERIOD + 1)
        if "compat" not in settings:
            [hpa_state] = [state for state in actor.operator.hpas if state.hpa.metadata.name == "web"]
            await stage.pass_time(slot_of(hpa_state, TURNS) * PERIOD / TURNS)
        yield actor


@in_virtual_time
async def test_usage_that_jumps_between_two_rounds_is_acted_on_within_a_look(stage):
    async with at_work(stage) as actor:
        stage.use_cpu(web="100m")
        assert await until_scaled(stage, "web", 4) <= 3
        assert actor.count("trimtab_early_decisions_total") == 1


@in_virtual_time
async def test_usage_that_jumps_is_acted_on_although_a_look_takes_long(stage):
    """On a busy machine a look of 0.75 s or more waited until the next sync, and the sync moved it again."""
    stage.metrics.delay["pods"] = 0.9
    async with at_work(stage) as actor:
        stage.use_cpu(web="100m")
        assert await until_scaled(stage, "web", 4) <= 4
        assert actor.count("trimtab_early_decisions_total") == 1


async def grouped_pod(stage: Stage) -> None:
    """A pod that the workload owns through an object of a kind that is read, not watched."""
    deployment = await stage.client.get(DEPLOYMENTS.untyped(), "web", stage.namespace)
    owner = owner_of("apps/v1", "Deployment", deployment)
    body = {"metadata": {"name": "group", "ownerReferences": [owner]}}
    group = await stage.client.create(CONFIG_MAPS, body, stage.namespace)
    await stage.pod("web-grouped", {"app": "web"}, owners=[owner_of("v1", "ConfigMap", group)])


BY_OWNER: Json = {"selectionStrategy": "OwnerReference"}


@pytest.mark.parametrize("is_read", [False, True], ids=["watched owners", "an owner that was read"])
@in_virtual_time
async def test_usage_that_jumps_is_acted_on_within_a_look_by_owner_too(stage, is_read):
    """N10: owners had to be asked for, so nothing that selects by owner was ever scaled early."""
    async with at_work(stage, spec=BY_OWNER) as actor:
        if is_read:
            await grouped_pod(stage)
        await stage.pod("foreign", {"app": "web"})
        await stage.pass_time(PERIOD)
        reads = actor.reads("/configmaps/")
        assert reads == int(is_read)
        stage.use_cpu(web="100m", foreign="1")
        assert await until_scaled(stage, "web", 6 if is_read else 4) <= 3
        assert actor.count("trimtab_early_decisions_total") == 1
        assert actor.reads("/configmaps/") == reads


@in_virtual_time
async def test_usage_that_jumps_waits_for_the_round_while_an_owner_is_not_known(stage):
    async with at_work(stage, spec=BY_OWNER) as actor:
        stage.use_cpu(web="100m")
        await grouped_pod(stage)
        await stage.pass_time(10)
        assert await stage.replicas("web") == 2
        assert actor.reads("/configmaps/") == 0
        assert await until_scaled(stage, "web", 6) <= PERIOD
        assert actor.count("trimtab_early_decisions_total") == 0


@pytest.mark.parametrize(
    "owner", [("test.dev/v1", "Removed"), ("v1", "Namespace")], ids=["a kind that is gone", "of the cluster"]
)
@in_virtual_time
async def test_a_pod_whose_owner_is_no_workload_leaves_early_scaling_on(stage, owner):
    async with at_work(stage, spec=BY_OWNER):
        api_version, kind = owner
        reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "uid-of-x"}
        await stage.pod("odd", {"app": "web"}, owners=[reference])
        await stage.pass_time(PERIOD)
        stage.use_cpu(web="100m", odd="1")
        assert await until_scaled(stage, "web", 4) <= 3


@in_virtual_time
async def test_a_neighbour_by_owner_leaves_early_scaling_on(stage):
    await stage.deployment("other", 1, labels={"app": "web"})
    stage.use_cpu(other="50m")
    await stage.hpa("other", metrics=[cpu_metric(50)], **BY_OWNER)
    async with at_work(stage, spec=BY_OWNER):
        stage.use_cpu(web="100m")
        assert await until_scaled(stage, "web", 4) <= 3


@in_virtual_time
async def test_usage_within_its_band_is_looked_at_and_nothing_else(stage):
    async with at_work(stage) as actor:
        sent, asked_before = len(actor.line.sent), len(stage.metrics.asked)
        stage.use_cpu(web="52m")
        await stage.pass_time(12)
        assert len(stage.metrics.asked) - asked_before in {5, 6}
        assert not [one for one in actor.line.sent[sent:] if one.method != "GET"]


@in_virtual_time
async def test_whoever_was_scaled_early_waits_a_whole_period(stage):
    """Looking more often must not raise the replicas more often than once per sync."""
    async with at_work(stage, spec={"maxReplicas": 100, "behavior": None}):
        await stage.pass_time(10)  # the next round is near
        stage.use_cpu(web="1000m")
        assert await until_scaled(stage, "web", 4) <= 3
        await stage.workloads.settle()
        assert 14 <= await until_scaled(stage, "web", 8) <= 18


@pytest.mark.parametrize("settings", [{"compat": "kubernetes-1.36"}, {"look_period": timedelta(0)}])
@in_virtual_time
async def test_nobody_looks_where_it_is_off(stage, settings):
    async with at_work(stage, **settings):
        asked_before = len(stage.metrics.asked)
        stage.use_cpu(web="100m")
        await stage.pass_time(12)
        assert len(stage.metrics.asked) == asked_before
        assert await stage.replicas("web") == 2


@in_virtual_time
async def test_other_metrics_are_not_asked_between_rounds(stage):
    stage.metrics.set_external(stage.namespace, "queue", "200")
    both = [cpu_metric(50), external_metric("queue", average="100")]
    async with at_work(stage, spec={"metrics": both}):
        asked_before = len(stage.metrics.asked)
        await stage.pass_time(12)
        assert len(stage.metrics.asked) == asked_before


@asynccontextmanager
async def three_at_work(stage: Stage):
    """The same three, and an operator that goes its rounds by itself."""
    async with three_namespaces(stage) as (idle, _):
        actor = Actor(stage, idle.operator.runtime.settings)
        async with going(actor):
            yield actor


@in_virtual_time
async def test_what_was_made_of_a_target_goes_with_it(stage):
    async with at_work(stage) as actor:
        assert len(actor.operator._targets._resolved) == 1
        await stage.client.delete(DEPLOYMENTS, "web", stage.namespace)
        await stage.pass_time(PERIOD)
        assert not actor.operator._targets._resolved


@in_virtual_time
async def test_hpas_take_turns_and_ask_once_per_turn(stage):
    """All are decided at the start, then in turns of about a look each."""
    async with three_at_work(stage) as actor:
        await stage.pass_time(1)
        assert sorted(len(one.records) for one in actor.operator.hpas) == [1, 1, 1]
        await stage.pass_time(2 * PERIOD)
        total, _ = decided(actor)
        asked(stage)
        await stage.pass_time(4 * PERIOD)
        assert decided(actor)[0] - total == 4 * len(WORKLOADS)
        # Eight turns to a period of fifteen seconds, or as many looks of two seconds where a turn is nobody's.
        assert 28 <= len(asked(stage)) <= 36


@in_virtual_time
async def test_whoever_takes_turns_is_scaled_as_soon_as_before(stage):
    async with three_at_work(stage):
        await stage.pass_time(2 * PERIOD + 1)
        stage.use_cpu(web="100m")
        assert await until_scaled(stage, "web", 4) <= 3


@in_virtual_time
async def test_a_turn_soon_after_the_start_does_not_double_the_replicas_again(stage):
    """Without `behavior` replicas at most double per sync; a turn may come a moment after the round of all."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="1000m")
    await stage.hpa("web", metrics=[cpu_metric(50)], maxReplicas=100)
    async with going(Actor(stage, stage.settings())):
        assert await until_scaled(stage, "web", 4) <= 3
        await stage.workloads.settle()
        assert 13 <= await until_scaled(stage, "web", 8) <= 19
