"""Every subset of the vertical components starts by itself, gets ready, and ends when it is asked to."""

import asyncio
from collections.abc import Callable
from itertools import combinations

import pytest

from tests.support.clock import in_virtual_time
from trimtab.operator.process import Component
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.wiring import (
    VerticalRuntime,
    make_admission,
    make_recommender,
    make_roles,
    make_updater,
)

MAKERS: dict[str, Callable[[VerticalRuntime], Component]] = {
    "recommender": make_recommender,
    "updater": make_updater,
    "admission": make_admission,
    "roles": make_roles,
}
SUBSETS = [names for size in range(1, 5) for names in combinations(MAKERS, size)]


@pytest.mark.parametrize("names", SUBSETS, ids=",".join)
@in_virtual_time
async def test_any_subset_of_components_runs(stage, names):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    settings = Settings.of(
        components=names,
        feature_gates="VPASelectorRefinement=true",
        leader_elect=False,
        namespace=stage.own_namespace,
        webhook_port=0,
    )
    site = VerticalRuntime(Runtime(stage.clock, stage.client, settings))
    try:
        components = [MAKERS[name](site) for name in names]
        assert [component.name for component in components] == list(names)
        tasks = [asyncio.ensure_future(component.run()) for component in components]
        await stage.clock.sleep(150)
        assert not any(task.done() for task in tasks)
        problems = {component.name: component.health() for component in components}
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended)
        # Without admission the updater says that nothing proves it; nobody else has a problem.
        assert not {name: found for name, found in problems.items() if found and name != "updater"}
    finally:
        await site.runtime.close()
