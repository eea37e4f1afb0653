"""`--dry-run`: every vertical component decides as ever, and nothing that others act on is sent."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, Actor, Stage
from tests.scenarios.vertical.test_roles_from_leases import hold, roles
from tests.scenarios.vertical.webhooks import backend
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES
from trimtab.cluster import errors
from trimtab.cluster.client import ListOptions
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.fence import NoFence
from trimtab.cluster.resource import LEASES, PODS, Json
from trimtab.cluster.sender import DryRun
from trimtab.cluster.transport import Request
from trimtab.decide.vertical.control.role_labels import LEASE_ANNOTATION
from trimtab.operator.process import acting_client, make_family
from trimtab.operator.settings.settings import Settings
from trimtab.operator.settings.vertical import STATUS_LEASE_NAME as LEASE_NAME
from trimtab.operator.settings.vertical import STATUS_LEASE_NAMESPACE as LEASE_NAMESPACE
from trimtab.operator.vertical.admission.certificates import SECRET_NAME, SECRETS
from trimtab.operator.vertical.admission.registration import MUTATING
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe
from trimtab.operator.vertical.wiring import make_admission, make_roles

ALLOWED = {
    "POST events",
    "PATCH events",
}
SOON: dict[str, Any] = {
    "checkpoints_interval": timedelta(0),
    "checkpoints_gc_interval": timedelta(minutes=1),
    "max_evictions_per_minute": 0,
}


def written(requests: list[Request]) -> set[str]:
    """Return the verbs and kinds of the writes that were stored."""
    return {
        f"{request.method} {_kind(request.path)}"
        for request in requests
        if request.method != "GET" and ("dryRun", "All") not in request.query
    }


def _kind(path: str) -> str:
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join((rest[0], *rest[2:3]))


async def _database(stage: Stage) -> None:
    """Everything that a live process would act on: sizes, a role, an orphaned history."""
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await stage.statefulset("web", 3)
    await stage.vpa("base", "db", mode="Recreate")
    await stage.vpa("web", "web")
    for pod in ("db-0", "db-1", "db-2", "web-0", "web-1", "web-2"):
        stage.metrics.use(stage.namespace, pod, cpu="100m", memory=FOLLOWER)
    await hold(stage, "db-0")
    orphan: Json = {
        "apiVersion": CHECKPOINTS.api_version,
        "kind": CHECKPOINTS.kind,
        "metadata": {"name": "gone-app"},
        "spec": {"vpaObjectName": "gone", "containerName": "app"},
    }
    await stage.client.create(CHECKPOINTS.untyped(), orphan, stage.namespace)


async def _everything(stage: Stage, actor: Actor) -> None:
    """Let every component do a few loops, by steps, so that a real server keeps up."""
    keeper, admission = make_roles(actor.site), make_admission(actor.site)
    try:
        for _ in range(4):
            await hold(stage, "db-0")
            await keeper.step()
            await stage.recommend(actor)
            await stage.update(actor)
            await admission.refresh()
        assert (keeper.health(), admission.health()) == ({}, {})
        assert (actor.recommender.health(), actor.updater.health()) == ({}, {})
    finally:
        await keeper.close()


async def _version(stage: Stage, resource: Any, name: str, namespace: str | None) -> str | None:
    """Return the resourceVersion of an object; None where there is none."""
    try:
        found = await stage.client.get(resource, name, namespace)
    except errors.NotFound:
        return None
    version: str = found.metadata.resource_version
    return version


async def _sizes(stage: Stage) -> set[Any]:
    return {await stage.memory(f"{name}-{index}") for name in ("db", "web") for index in range(3)}


@in_virtual_time
async def test_rh3_a_live_process_does_all_that_the_dry_run_must_not(stage):
    """Otherwise the next test could not fail."""
    await _database(stage)
    async with stage.running(**SOON) as actor:
        await _everything(stage, actor)
        assert written(actor.line.sent) >= {
            "PATCH pods",
            "PATCH pods/resize",
            "POST pods/eviction",
            "POST verticalpodautoscalercheckpoints",
            "DELETE verticalpodautoscalercheckpoints",
            "PATCH mutatingwebhookconfigurations",
            "POST leases",
            "POST secrets",
        }


def test_rh3_a_dry_run_sends_events_only(play, caplog):
    caplog.set_level("INFO", logger="trimtab.operator.vertical.recommender.status_writer")

    async def scenario(stage: Stage) -> None:
        await _database(stage)
        async with stage.running(checkpoints_interval=timedelta(days=1)) as live:
            await stage.recommend(live, 2)
        before, saved = await stage.target("base"), set(await stage.checkpoints())
        # On the real server another scenario's webhook may have left its Lease.
        lease = await _version(stage, LEASES, LEASE_NAME, LEASE_NAMESPACE)
        async with stage.running(dry_run=True, recommendation_margin_fraction=4.0, **SOON) as actor:
            await _everything(stage, actor)
            assert written(actor.line.sent) <= ALLOWED
            verdicts = {
                (name, verdict.action)
                for name in ("db", "web")
                for index in range(3)
                if (verdict := actor.updater.verdict(f"{stage.namespace}/{name}-{index}")) is not None
            }
            assert verdicts == {
                ("db", "would evict"),
                ("db", "none"),
                ("web", "would resize"),
                ("web", "none"),
            }, "as many as the budget of the loop allows"
            told = {reason for reason, _, _ in await stage.events(actor)}
            assert told.isdisjoint({"EvictedByVPA", "EvictedPod", "InPlaceResizedByVPA"})
            counted = [
                sample.value
                for metric in actor.registry.collect()
                if metric.name.startswith("vpa_updater") and metric.type == "counter"
                for sample in metric.samples
                if sample.name.endswith("_total")
            ]
            assert sum(counted) == 0
        logged = [vars(one)["facts"]["vpa"] for one in caplog.records if "would recommend" in one.msg]
        assert set(logged) == {f"{stage.namespace}/base", f"{stage.namespace}/web"}
        assert len(logged) < 8, "not again in every loop"
        assert await stage.target("base") == before
        assert await _sizes(stage) == {"50Mi"}
        assert await roles(stage) == [None, None, None]
        assert set(await stage.checkpoints()) == saved
        assert await _version(stage, SECRETS, SECRET_NAME, stage.own_namespace) is None
        assert await _version(stage, LEASES, LEASE_NAME, LEASE_NAMESPACE) == lease

    play(scenario)


@in_virtual_time
async def test_rh3_every_component_in_a_dry_run_of_an_hour_writes_the_same(stage):
    await _database(stage)
    settings = {**SOON, "webhook_port": 0}
    async with stage.running(dry_run=True, **settings) as actor:
        components = (
            actor.recommender,
            actor.updater,
            make_roles(actor.site),
            make_admission(actor.site),
        )
        running = [asyncio.ensure_future(component.run()) for component in components]
        for _ in range(600):
            await hold(stage, "db-0")
            await stage.clock.sleep(6)
        assert not any(task.done() for task in running)
        assert [component.health() for component in components] == [{}, {}, {}, {}]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert written(actor.line.sent) <= ALLOWED


@in_virtual_time
async def test_a_dry_run_with_other_settings_changes_no_pod_of_a_live_installation(stage):
    """It leads by a Lease of its own, so what it writes must be nothing that a live updater or webhook acts on."""
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
    async with (
        stage.running() as live,
        stage.running(dry_run=True, recommendation_margin_fraction=4.0) as dry,
    ):
        await stage.recommend(live, 2)
        await stage.update(live, 4)
        before = await stage.target("base"), [await stage.memory(f"db-{index}") for index in range(3)]
        await stage.recommend(dry, 2)
        assert dry.recommender.health() == {}
        await stage.update(live, 4)
        after = await stage.target("base"), [await stage.memory(f"db-{index}") for index in range(3)]
        assert after == before


@in_virtual_time
async def test_rh3_reviews_are_answered_without_a_patch_and_the_probe_not_at_all(stage):
    """The webhooks of a live installation stay registered when it is switched to a dry run."""
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running() as live, stage.admitting(live):
        await stage.recommend(live, 2)
    async with stage.running(dry_run=True) as actor:
        admission = make_admission(actor.site)
        assert stage.outbound is not None
        stage.outbound.register(stage.own_namespace, "trimtab-webhook", backend(admission.app))
        await stage.caught_up(actor)
        await stage.delete_pod("db-1")
        await stage.heal("db")
        assert await stage.memory("db-1") == "50Mi"
        probe = AdmissionProbe(stage.clock, stage.client, stage.own_namespace)
        assert "came back unchanged" in (await probe.problem() or "")
        await stage.vpa("odd", "db", scope="absent")
        assert await _version(stage, VPAS, "odd", stage.namespace), "told by a warning, not refused"
        applied = "vpa_admission_controller_admission_pods_total"
        assert (actor.count(applied, applied="true"), actor.count(applied, applied="false")) == (0, 1)


@in_virtual_time
async def test_a_loop_that_forgets_the_dry_run_is_stopped_by_its_client(stage):
    await stage.statefulset("db", 1)
    for client in (
        stage.client.in_dry_run(DryRun()),
        stage.client.in_dry_run(DryRun()).fenced(NoFence()),
        stage.client.fenced(NoFence()).in_dry_run(DryRun()),
    ):
        with pytest.raises(errors.DryRunRefused, match=r"evicting pods .*: not sent, this is a dry run"):
            await client.evict("db-0", stage.namespace)
        with pytest.raises(errors.DryRunRefused):
            await client.delete(NAMESPACES, stage.namespace)
        await client.get(PODS, "db-0", stage.namespace)


@in_virtual_time
async def test_webhooks_of_a_live_installation_stay_as_they_are(stage):
    async with stage.running() as live, stage.admitting(live):
        before = await stage.client.list(MUTATING)
    async with stage.running(dry_run=True) as actor:
        await make_admission(actor.site).refresh()
    assert await stage.client.list(MUTATING) == before


@in_virtual_time
async def test_a_dry_run_leads_by_a_lease_of_its_own_beside_a_live_process(stage):
    def electing(*, dry_run: bool) -> Family:
        settings = Settings.of(
            components=("recommender",),
            dry_run=dry_run,
            leader_elect_resource_namespace=stage.own_namespace,
        )
        client = acting_client(stage.client, settings)
        return make_family(client, settings, f"dry {dry_run}")

    electors = [electing(dry_run=dry_run) for dry_run in (False, True)]
    running = [asyncio.ensure_future(elector.run()) for elector in electors]
    await stage.clock.sleep(5)
    assert [elector.may_write() for elector in electors] == [True, True]
    leases = await stage.client.list(LEASES, ListOptions(stage.own_namespace))
    assert {lease.metadata.name: lease.spec.holder_identity for lease in leases.items} == {
        "trimtab-recommender-0": "dry False/1",
        "trimtab-recommender-dry-run-0": "dry True/1",
    }
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
