"""A namespace or a kind that cannot be read holds its own HPAs only, and only from scaling down (faults F04, F16)."""

from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.faults.horizontal.scene import becomes, held, is_watch, load, queue, working
from tests.support.clock import in_virtual_time
from tests.support.objects import CRDS, NAMESPACES
from tests.support.transport import Break, status
from trimtab.cluster.resource import DEPLOYMENTS
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS

LONGER_THAN_STALE = 110
"""A watch that is open lasts up to 45 s, and a cache is stale 60 s after it."""


def refuse(actor, *parts, code=403):
    """Answer requests for these parts of paths with a refusal from now on, open watches included."""
    actor.line.answer = lambda request: (
        status(code, "Forbidden" if code == 403 else "NotFound")
        if any(f"{request.path}/".find(part) >= 0 for part in parts)
        else None
    )
    actor.line.drop_all()


def allow(actor):
    actor.line.answer = lambda _: None


@asynccontextmanager
async def second_namespace(stage):
    """The name of another namespace on the same server, with a held workload like the stage's own."""
    name, own = f"{stage.namespace}-other", stage.namespace
    await stage.client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    stage.namespace = own


async def in_namespace(stage, namespace, prepare):
    own, stage.namespace = stage.namespace, namespace
    workloads, stage.workloads._namespace = stage.workloads._namespace, namespace
    try:
        await prepare()
    finally:
        stage.namespace, stage.workloads._namespace = own, workloads


@in_virtual_time
async def test_a_deleted_namespace_stops_no_other_also_after_a_restart(stage):
    """With its RoleBindings gone every request there is answered 403; all HPAs of all namespaces were stopped for good."""
    await held(stage)
    async with second_namespace(stage) as other:
        await in_namespace(stage, other, lambda: held(stage, "gone"))
        both: dict[str, Any] = {"watch_namespaces": (stage.namespace, other)}
        async with working(stage, **both) as actor:
            await stage.pass_time(20)
            assert len(actor.operator.hpas) == 2
            refuse(actor, f"/namespaces/{other}/")
            await stage.pass_time(LONGER_THAN_STALE)
            load(stage, 900)
            await becomes(stage, 9)
            load(stage, 300)
            await becomes(stage, 3)
            assert "CachesStale" not in await stage.conditions("web")
            assert not actor.operator.health()
            assert any(other in name for name in actor.operator.warnings())
            await stage.pass_time(LONGER_THAN_STALE)
            assert [hpa.hpa.metadata.name for hpa in actor.operator.hpas] == ["web"]
        restarted = working(stage, before=lambda actor: refuse(actor, f"/namespaces/{other}/"), **both)
        async with restarted as actor:
            load(stage, 600)
            await becomes(stage, 6)
            load(stage, 100)
            await becomes(stage, 1)
            assert not actor.operator.health()
            assert any(other in name for name in actor.operator.warnings())
            allow(actor)
            await stage.pass_time(40)
            assert len(actor.operator.hpas) == 2
            assert not actor.operator.warnings()


@in_virtual_time
async def test_the_right_to_list_another_kind_is_revoked(stage):
    """403 on StatefulSets, which one other HPA uses: 60 s later no Deployment was scaled any more."""
    await held(stage)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    await stage.hpa("db", scaleTargetRef=reference, metrics=[queue("db")])
    async with working(stage) as actor:
        await stage.pass_time(20)
        refuse(actor, "/statefulsets/")
        for replicas in (9, 3, 6, 2):
            await stage.pass_time(LONGER_THAN_STALE)
            load(stage, replicas * 100)
            await becomes(stage, replicas)
        assert "CachesStale" not in await stage.conditions("web")
        assert "statefulsets" in actor.operator.health()


@in_virtual_time
async def test_a_target_whose_kind_cannot_be_watched_is_read(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if request.path == DEPLOYMENTS.path(stage.namespace) else None
        )
        actor.line.drop_all()
        await stage.pass_time(LONGER_THAN_STALE)
        for replicas in (9, 3):
            load(stage, replicas * 100)
            await becomes(stage, replicas)
        await stage.scale("web", 7)
        await becomes(stage, 3)
        assert "CachesStale" not in await stage.conditions("web")


@pytest.mark.parametrize(
    ("stale", "is_silent"),
    [
        pytest.param(("pods",), False, id="pods are forbidden"),
        pytest.param(("horizontalpodautoscalers",), False, id="HPAs are forbidden"),
        pytest.param(("pods", "deployments"), False, id="pods and targets are forbidden"),
        pytest.param(("pods",), True, id="the watch of pods is silent"),
        pytest.param(("horizontalpodautoscalers",), True, id="the watch of HPAs is silent"),
        pytest.param(("pods", "deployments", "horizontalpodautoscalers"), True, id="every watch is silent"),
    ],
)
@in_virtual_time
async def test_stale_inputs_hold_scale_downs_only_and_are_named(stage, stale, is_silent):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        if is_silent:
            actor.line.is_silent = lambda request: any(is_watch(request, plural) for plural in stale)
        else:
            actor.line.answer = lambda request: (
                status(403, "Forbidden")
                if request.method == "GET" and request.path.endswith(tuple(f"/{plural}" for plural in stale))
                else None
            )
            actor.line.drop_all()
        await stage.pass_time(LONGER_THAN_STALE)
        load(stage, 300)
        await stage.pass_time(40)
        assert await stage.replicas("web") == 5
        assert (await stage.conditions("web"))["CachesStale"] == ("True", "CacheTooOld")
        hpa = await stage.read_hpa("web")
        [message] = [one["message"] for one in hpa["status"]["conditions"] if one["type"] == "CachesStale"]
        assert all(plural in message for plural in stale)
        load(stage, 900)
        await becomes(stage, 9)
        assert await stage.event_count("CachesStale") == 1
        writes = len(actor.line.writes)
        await stage.pass_time(60)
        assert len(actor.line.writes) <= writes + 1
        actor.line.is_silent = lambda _: False
        allow(actor)
        load(stage, 300)
        await becomes(stage, 3, within=90)
        await stage.pass_time(30)
        assert "CachesStale" not in await stage.conditions("web")
        assert not actor.operator.health()


@in_virtual_time
async def test_our_own_definition_is_deleted_while_native_hpas_run(stage):
    """All native HPAs were stopped for good, until a restart."""
    await held(stage, "own")
    stage.use_native_hpas()
    await held(stage)
    async with working(stage, own_hpas=True, native_hpas=True) as actor:
        await stage.pass_time(20)
        assert len(actor.operator.hpas) == 2
        [crd] = [crd for crd in all_crds() if crd["spec"]["names"]["kind"] == OWN_HPAS.kind]
        await stage.client.delete(CRDS, crd["metadata"]["name"])
        for replicas in (9, 3, 6, 2):
            await stage.pass_time(LONGER_THAN_STALE)
            load(stage, replicas * 100)
            await becomes(stage, replicas)
        assert [state.resource for state in actor.operator.hpas] == [NATIVE_HPAS]
        assert not actor.operator.health()
        assert "horizontalpodautoscalers" in actor.operator.warnings()


@in_virtual_time
async def test_native_hpas_without_our_own_definition_are_ready_and_quiet(stage, caplog):
    """One WARNING per turn of the loop, a discovery request each, and /readyz 503 for ever."""
    [crd] = [crd for crd in all_crds() if crd["spec"]["names"]["kind"] == OWN_HPAS.kind]
    await stage.client.delete(CRDS, crd["metadata"]["name"])
    stage.use_native_hpas()
    await held(stage)
    async with working(stage, own_hpas=True, native_hpas=True) as actor:
        await stage.pass_time(600)
        assert not actor.operator.health()
        assert "not served" in actor.operator.warnings()["own"]
        assert actor.reads("/apis") <= 2 + 2 * 600 / 30 + 600 / 10
        load(stage, 900)
        await becomes(stage, 9)
        await stage.client.create(CRDS, crd)
        await stage.wait_for(stage._is_served)
        await stage.pass_time(60)
        assert not actor.operator.warnings()
    said = [record.message for record in caplog.records if "not served" in record.message]
    assert len(said) == 1


SKIPS = "horizontal_pod_autoscaler_controller_stale_sync_skips_total"


@pytest.fixture(params=[OWN_HPAS, NATIVE_HPAS], ids=["own kind", "native"])
def kind(request):
    return request.param


def silence(actor, kind):
    """Let the watch of a kind begin anew and deliver nothing."""
    actor.line.is_silent = lambda request: is_watch(request, kind.plural)
    actor.line.drop_all()


def skips(actor, kind):
    return actor.count(SKIPS, group=kind.group, resource=kind.plural)


@in_virtual_time
async def test_a_status_that_the_watch_has_not_delivered_skips_no_sync(stage, kind):
    stage.native, stage.resource = kind is NATIVE_HPAS, kind
    await held(stage)
    async with stage.running() as actor:
        silence(actor, kind)
        for replicas in (5, 7, 9):
            load(stage, replicas * 100)
            await stage.step(actor)
            assert await stage.replicas("web") == replicas
            assert (await stage.read_hpa("web"))["status"]["desiredReplicas"] == replicas
        statuses = [write.status for write in actor.line.writes if write.is_status]
        assert len(statuses) >= 3
        assert set(statuses) == {200}
        assert (skips(actor, kind), actor.count("trimtab_decided_again_total")) == (0, 0)


@in_virtual_time
async def test_a_sync_is_skipped_while_an_hpa_newer_than_the_cache_cannot_be_read(stage, kind):
    """The answer to a status was lost and its watch event is late, so the cache lacks our own write."""
    stage.native, stage.resource = kind is NATIVE_HPAS, kind
    await held(stage)
    async with stage.running() as actor:
        silence(actor, kind)
        actor.line.break_write = lambda _number, _request: Break.LOSE_ANSWER
        await stage.step(actor)
        actor.line.break_write = lambda _number, _request: None
        actor.line.answer = lambda request: (
            status(503) if request.method == "GET" and request.path.endswith("/web") else None
        )
        load(stage, 520)  # within the tolerance: only the status changes
        for skipped in (1, 2):
            await stage.step(actor)
            assert skips(actor, kind) == skipped
        allow(actor)
        await stage.step(actor)
        assert skips(actor, kind) == 2
        [metric] = (await stage.read_hpa("web"))["status"]["currentMetrics"]
        assert metric["external"]["current"]["averageValue"] == "104"
