"""A deleted namespace or a revoked right stops no other HPA, with the roles of the chart on the real kube-apiserver."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.faults.horizontal.scene import becomes, held, load, queue
from tests.real.install.test_accounts import Place
from tests.support.objects import NAMESPACES
from trimtab.clock import SystemClock
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.runtime import Runtime

pytestmark = pytest.mark.real
PATIENCE = 180.0
"""A watch lasts up to 45 s, and a cache is stale 60 s after the last sign."""


@asynccontextmanager
async def operating(place, namespaces):
    settings = place.stage.settings(watch_namespaces=namespaces)
    runtime = Runtime(place.clock, place.client, settings)
    operator = HpaController(runtime, config=decision_config(settings))
    task = asyncio.ensure_future(operator.run())
    try:
        await place.stage.wait_for(lambda: _is(operator.is_started), 60)
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runtime.close()


async def _is(value: bool) -> bool:
    return value


def test_a_deleted_namespace_stops_no_other_also_after_a_restart(installed, kubeconfig_of):
    async def main():
        place = Place(
            SystemClock(), installed.cluster.kubeconfig, kubeconfig_of("horizontal"), is_narrow=True
        )
        stage = place.stage
        await stage.open()
        other = f"{stage.namespace}-other"
        await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
        watched = f"{stage.namespace},{other}"
        try:
            with installed.narrowed_to(watched):
                await scenario(place, other)
        finally:
            await place.client.close()
            await stage.client.delete(NAMESPACES, other)
            await stage.close()

    async def scenario(place, other):
        stage, both = place.stage, (place.stage.namespace, other)
        await held(stage)
        async with operating(place, both) as operator:
            load(stage, 900)
            await becomes(stage, 9, within=60)
            # What the namespace controller does: rights go with the namespace.
            installed.kubectl("delete", "rolebindings,roles", "--all", "-n", other)
            await stage.wait_for(lambda: _is(any(other in name for name in operator.warnings())), PATIENCE)
            assert not operator.health()
            load(stage, 300)
            await becomes(stage, 3, within=60)
            assert "CachesStale" not in await stage.conditions("web")
        async with operating(place, both) as operator:
            load(stage, 700)
            await becomes(stage, 7, within=60)
            assert any(other in name for name in operator.warnings())

    asyncio.run(main())


@contextmanager
def without_right_to(installed, account, plural):
    """Take the rights to a kind from an account's cluster role while the context lasts."""
    (role,) = [
        obj
        for obj in installed.objects
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == f"trimtab-{account}"
    ]
    rules = [
        {**rule, "resources": [name for name in rule["resources"] if name.partition("/")[0] != plural]}
        for rule in role["rules"]
    ]
    revoked = {**role, "rules": [rule for rule in rules if rule["resources"]]}
    assert revoked["rules"] != role["rules"]
    try:
        done = installed.apply([revoked])
        assert done.returncode == 0, done.stderr
        yield
    finally:
        assert installed.apply([role]).returncode == 0


def test_the_right_to_list_one_kind_is_revoked_while_others_scale(installed, kubeconfig_of):
    """Until now only the lab refused it, where the answer of the real server was assumed."""

    async def main():
        place = Place(
            SystemClock(), installed.cluster.kubeconfig, kubeconfig_of("horizontal"), is_narrow=False
        )
        await place.stage.open()
        try:
            await scenario(place)
        finally:
            await place.client.close()
            await place.stage.close()

    async def scenario(place):
        stage = place.stage
        await held(stage)
        database = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        await stage.hpa("db", scaleTargetRef=database, metrics=[queue("db")])
        async with operating(place, ()) as operator:
            load(stage, 900)
            await becomes(stage, 9, within=60)
            with without_right_to(installed, "horizontal", "statefulsets"):
                assert not installed.may("horizontal", "list", "statefulsets.apps")
                await stage.wait_for(lambda: _is("statefulsets" in str(operator.health())), PATIENCE)
                load(stage, 300)
                await becomes(stage, 3, within=60)
                assert "CachesStale" not in await stage.conditions("web")
                assert "forbidden" in operator.health()["statefulsets"]
            await stage.wait_for(lambda: _is("statefulsets" not in str(operator.health())), PATIENCE)
        with without_right_to(installed, "horizontal", "statefulsets"):
            async with operating(place, ()):
                load(stage, 700)
                await becomes(stage, 7, within=60)

    asyncio.run(main())
