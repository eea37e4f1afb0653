"""How a process starts: few requests, no waiting for a period, and the first decisions at once."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.scenarios.horizontal.test_economy import beside
from tests.support.clock import in_virtual_time
from tests.support.objects import cpu_metric
from tests.support.transport import status
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.client import DeleteOptions
from trimtab.cluster.resource import PODS
from trimtab.cluster.transport import Request, Response

WORKLOADS = 6
MOST_REQUESTS = 10
"""Two of discovery; lists and watches of pods, HPAs and Deployments; the versions of metrics.k8s.io and one list."""


async def made(stage: Stage) -> None:
    for number in range(WORKLOADS):
        await stage.deployment(f"web-{number}", 2)
        await stage.hpa(f"web-{number}", metrics=[cpu_metric(50)], minReplicas=1, maxReplicas=9)
    stage.use_cpu(**{f"web_{number}": "90m" for number in range(WORKLOADS)})


@in_virtual_time
async def test_the_first_decisions_come_at_once_after_few_requests(stage):
    await made(stage)
    actor = Actor(stage, stage.settings())
    began = stage.clock.monotonic()
    running = asyncio.ensure_future(actor.run())
    try:
        while len(actor.line.writes) < WORKLOADS:
            await stage.clock.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert stage.clock.monotonic() - began < 1.0
    first = next(place for place, one in enumerate(actor.line.sent) if one.method != "GET")
    most = MOST_REQUESTS + 1  # who else writes to native HPAs, or acts beside own ones, is asked once
    assert first <= most, [str(one) for one in actor.line.sent[:first]]


@in_virtual_time
async def test_each_kind_is_listed_once(stage):
    """Native HPAs are listed once more: who wrote to them is asked once, or whether one is on the target of an own one."""
    await made(stage)
    async with stage.running() as actor:
        await stage.step(actor, after=0)
        for plural in ("/pods", "/deployments", "/horizontalpodautoscalers"):
            lists = [
                one
                for one in actor.line.sent
                if one.path.endswith(plural)
                and "metrics.k8s.io" not in one.path
                and ("watch", "true") not in one.query
            ]
            times = 2 if plural == "/horizontalpodautoscalers" else 1
            assert len(lists) == times, [str(one) for one in lists]


PAGE = 4
PAGE_SECONDS = 5.0


@asynccontextmanager
async def starting_in_pages(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """An operator that lists pods four at a time, five seconds each: 3 workloads with 3 pods, a namespace each."""
    defaults: Any = Informer.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "page_size", PAGE)
    stages = sorted([stage, await beside(stage), await beside(stage)], key=lambda one: f"{one.namespace}/")
    for place in stages:
        await place.deployment("web", 3)
        place.use_cpu(web="90m")
        await place.hpa("web", metrics=[cpu_metric(50)], minReplicas=1, maxReplicas=9)

    async def existing() -> list[tuple[str, str]]:
        return [(pod.metadata.namespace, pod.name) for pod in (await stage.client.list(PODS)).items]

    stage.metrics.pods = existing
    actor = Actor(stage, stage.settings(watch_namespaces=()))
    pods = "/api/v1/pods"
    actor.line.answers_after = lambda request: PAGE_SECONDS if request.path == pods else 0.0
    running = asyncio.ensure_future(actor.run())
    try:
        yield actor, stages
    finally:
        running.cancel()
        await asyncio.wait([running])


async def replicas_of(stages: list[Stage]) -> list[int]:
    return [await place.replicas("web") for place in stages]


@in_virtual_time
async def test_an_hpa_is_decided_as_soon_as_the_pods_of_its_namespace_have_arrived(stage, monkeypatch):
    """All HPAs waited for the list of all pods, which takes most of the time of a start."""
    async with starting_in_pages(stage, monkeypatch) as (actor, stages):
        await stage.pass_time(
            PAGE_SECONDS + 1
        )  # page 1: three pods of the first namespace, one of the second
        assert await replicas_of(stages) == [6, 3, 3]
        assert not actor.operator.is_started
        assert actor.operator.health()["caches"]
        await stage.pass_time(PAGE_SECONDS)  # page 2: up to two pods of the third
        assert await replicas_of(stages) == [6, 6, 3]
        await stage.pass_time(PAGE_SECONDS)
        assert await replicas_of(stages) == [6, 6, 6]
        assert actor.operator.is_started
        conditions = [state.records[0].decision.status.conditions for state in actor.operator.hpas]
        assert {one.reason for found in conditions for one in found if one.type == "ScalingActive"} == {
            "ValidMetricFound"
        }


@in_virtual_time
async def test_a_list_of_pods_that_fails_in_between_is_waited_for(stage, monkeypatch):
    """What arrived before may be outdated when the list starts again."""
    async with starting_in_pages(stage, monkeypatch) as (actor, stages):
        is_failing = True

        def fail(request: Request) -> Response | None:
            is_second = request.path == "/api/v1/pods" and ("limit", "4") in request.query
            is_second = is_second and any(name == "continue" for name, _ in request.query)
            return status(503) if is_failing and is_second else None

        actor.line.answer = fail
        await stage.pass_time(PAGE_SECONDS + 1)
        assert (await replicas_of(stages))[1:] == [3, 3]
        assert not actor.operator._may_reconcile(f"{stages[0].namespace}/web")
        for place in stages[:2]:  # their pods are gone when the list starts again, except for one each
            [_, *gone] = await place.pods_of("web")
            for name in gone:
                await place.client.delete(PODS, name, place.namespace, options=DeleteOptions(grace_seconds=0))
        await stage.pass_time(6 * PAGE_SECONDS)
        is_failing = False
        await stage.pass_time(10 * PAGE_SECONDS)
        assert actor.operator.is_started
        [second] = [
            state for state in actor.operator.hpas if state.hpa.metadata.namespace == stages[1].namespace
        ]
        assert len(second.records[0].observation.pods) == 1


@in_virtual_time
async def test_hpas_that_may_have_another_controller_delay_no_other_hpas(stage):
    """The list of native HPAs arrives while their writers are read. Neither may be waited for if it is refused."""
    if stage.native:
        return
    await made(stage)
    actor = Actor(stage, stage.settings(native_hpas=True, watch_namespaces=()))
    native = "/apis/autoscaling/v2/horizontalpodautoscalers"
    actor.line.answer = lambda request: status(403) if request.path == native else None
    running = asyncio.ensure_future(actor.run())
    try:
        await stage.pass_time(2)
        assert len([one for one in actor.line.writes if one.is_scale]) == WORKLOADS
        assert "cannot be seen" in actor.operator.health()["native"]
    finally:
        running.cancel()
        await asyncio.wait([running])
