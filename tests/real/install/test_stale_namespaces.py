"""A deleted namespace stops no other HPA, with the roles of the chart on the real kube-apiserver."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.faults.horizontal.scene import becomes, held, load
from tests.real.install.test_accounts import Place
from tests.scenarios.horizontal.stage import NAMESPACES
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
