"""The stories on a real cluster: real API server and aggregator, real workload controllers, our nodes, our operator.

What `trimtab up` shows in its embedded cluster must come out the same where nothing but the nodes is ours.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import chain

import pytest
from msgspec.structs import replace

from tests.nodes import passing_nodes, remove_workloads
from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster
from trimtab.cli.stories import Story, chosen
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import DEPLOYMENTS
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.load.plan import LoadPlan, WorkloadLoad
from trimtab_lab.metrics.server import MetricsServer

pytestmark = pytest.mark.real
NAMES = ("same-labels", "tolerance", "to-zero", "one-series")
PATIENCE_SECONDS = 240


def apply(cluster: RealCluster, stories: tuple[Story, ...]) -> None:
    definitions = {"apiVersion": "v1", "kind": "List", "items": all_crds()}
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(definitions))
    names = [f"crd/{crd['metadata']['name']}" for crd in all_crds()]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    for story in stories:
        cluster.kubectl("create", "namespace", story.name)
        objects = {"apiVersion": "v1", "kind": "List", "items": story.objects()}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(objects))


def hurried(load: WorkloadLoad) -> WorkloadLoad:
    """Bring a queue's bursts closer together: nobody should wait five minutes for one in real time."""
    if load.queue is None:
        return load
    bursts = replace(load.queue.arrivals, every=100.0, lasts=20.0, first=5.0)
    return replace(load, queue=replace(load.queue, arrivals=bursts))


@asynccontextmanager
async def at_work(client: Client, stories: tuple[Story, ...]) -> AsyncIterator[None]:
    """Nodes with the stories' load, metrics behind the real aggregator, and the operator at a period of one second."""
    plans = [story.load() for story in stories]
    plan = LoadPlan(
        workloads=tuple(hurried(load) for one in plans for load in one.workloads),
        series=tuple(chain.from_iterable(one.series for one in plans)),
    )
    settings = Settings.of(
        watch_namespaces=NAMES,
        feature_gates="AllAlpha=true",
        leader_elect=False,
        sync_period=timedelta(seconds=1),
    )
    setting = DataPlaneConfig(sample_seconds=1.0, plan=plan)
    async with passing_nodes(client, setting) as side, MetricsServer(side) as metrics:
        await metrics.register()
        operator = HpaController(Runtime(client.clock, client, settings), config=decision_config(settings))
        running = asyncio.ensure_future(operator.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await operator.runtime.close()
            await metrics.unregister()


async def becomes(what: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until something that others bring about is as wanted."""
    seen: object = None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (seen := await what()) != wanted:  # noqa: ASYNC110 - another process brings it about
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise AssertionError(f"{seen} did not become {wanted}") from None


async def test_the_stories_come_out_the_same_with_the_real_controllers(real_cluster: RealCluster):
    real_cluster.need_controllers(WORKLOAD_CONTROLLERS)
    stories = chosen(NAMES)
    clock = SystemClock()
    client = Client(
        clock, HttpTransport(clock, load_kubeconfig(clock, str(real_cluster.kubeconfig), environ={}))
    )

    await remove_workloads(client)

    async def sizes(namespace: str, *names: str) -> list[int | None]:
        found = [await client.get(DEPLOYMENTS, name, namespace) for name in names]
        return [one.spec.replicas for one in found]

    async def is_awake() -> bool:
        return bool((await sizes("to-zero", "mailer"))[0])

    apply(real_cluster, stories)
    try:
        async with at_work(client, stories):
            await becomes(lambda: sizes("same-labels", "shop-by-owner", "shop-by-label"), [2, 8])
            await becomes(lambda: sizes("one-series", "images", "videos"), [6, 1])
            await becomes(lambda: sizes("tolerance", "api-5-percent", "api-default"), [11, 10])
            await becomes(lambda: sizes("to-zero", "mailer"), [0])
            await becomes(is_awake, True)
    finally:
        for name in NAMES:
            real_cluster.kubectl("delete", "namespace", name, "--wait=false", check=False)
        await client.close()
