"""Eight days in a real Prometheus, backfilled; the recommender reads them over HTTP with upstream's flags."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.vertical.stage import FOLLOWER_TARGET, LEADER_TARGET, Stage
from tests.support.cluster import as_admin
from tools.peers import prometheus
from tools.peers.cluster import free_port
from trimtab_lab.apiserver.server import Server

pytestmark = pytest.mark.real

STEP, DAYS = 300, 8
GIGA = 10**9
PODS = ("db-0", "db-1", "db-2")
FLAGS: dict[str, Any] = {
    "storage": "prometheus",
    "prometheus_cadvisor_job_name": "kubelet",
    "container_pod_name_label": "pod",
    "container_name_label": "container",
    "metric_for_pod_labels": "kube_pod_labels",
    "pod_label_prefix": "label_",
    "pod_namespace_label": "namespace",
    "pod_name_label": "pod",
}


def leader_at(moment: int) -> str:
    """Leadership moved once a day, and nobody leads now."""
    return PODS[moment // 86400 % 3]


def past(namespace: str, now: int) -> Iterator[str]:
    """Yield what kubelet and kube-state-metrics would have told in the last eight days."""
    begin = now - DAYS * 86400
    moments = range(begin - begin % STEP, now - 3600, STEP)
    yield "# TYPE container_cpu_usage_seconds counter"
    for pod in PODS:
        where = f'job="kubelet",namespace="{namespace}",pod="{pod}",container="app"'
        for moment in moments:
            seconds = (moment - moments[0]) * 0.1  # a tenth of a core
            yield f"container_cpu_usage_seconds_total{{{where}}} {seconds:.1f} {moment}"
    yield "# TYPE container_memory_working_set_bytes gauge"
    for pod in PODS:
        where = f'job="kubelet",namespace="{namespace}",pod="{pod}",container="app"'
        for moment in moments:
            used = 8 * GIGA if pod == leader_at(moment) else GIGA
            yield f"container_memory_working_set_bytes{{{where}}} {used} {moment}"
    yield "# TYPE kube_pod_labels gauge"
    for pod in PODS:
        for role in ("leader", "follower"):
            where = f'namespace="{namespace}",pod="{pod}",label_app="db",label_role="{role}"'
            for moment in moments:
                if (pod == leader_at(moment)) == (role == "leader"):
                    yield f"kube_pod_labels{{{where}}} 1 {moment}"


@pytest.fixture
def real(tmp_path: Path):
    try:
        return prometheus.RealPrometheus(tmp_path, free_port(), {})
    except prometheus.NoPrometheusError as error:
        pytest.skip(f"no real Prometheus: {error}")


def play(scenario) -> None:
    async def main() -> None:
        clock = ShiftedClock()
        async with Server(clock, seed=1) as server:
            stage = Stage(clock, as_admin(server), server.outbound)
            await stage.open()
            await stage.statefulset("db", 3, labels={"role": "follower"})
            await stage.scope("leader", pods={"role": "leader"})
            await stage.vpa("base", "db")
            await stage.vpa("lead", "db", scope="leader")
            try:
                await scenario(stage)
            finally:
                await stage.close()

    asyncio.run(main())


async def recommended(stage: Stage, actor) -> None:
    """Let the recommender run until history is read, or known to be out of reach."""
    running = asyncio.ensure_future(actor.recommender.run())

    async def is_done() -> bool:
        found = await stage.conditions("lead")
        return "RecommendationProvided" in found and "FetchingHistory" not in found

    try:
        await stage.wait_for(is_done, 60)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_eight_days_of_moving_leadership_give_each_role_its_own_size(real):
    async def scenario(stage: Stage) -> None:
        real.backfill(past(stage.namespace, int(time.time())))
        with real:
            async with stage.running(prometheus_address=real.url, **FLAGS) as actor:
                await recommended(stage, actor)
                assert await stage.target("lead") == LEADER_TARGET
                assert await stage.target("base") == FOLLOWER_TARGET
                cpu = await stage.target("lead", "cpu")
                assert cpu is not None
                assert 100 <= int(str(cpu).removesuffix("m")) <= 130
                assert actor.count("trimtab_recommender_history_samples_total") > 1000

    play(scenario)


def test_a_prometheus_that_is_not_there_leaves_the_checkpoints_and_says_so(real):
    async def scenario(stage: Stage) -> None:
        async with stage.running(prometheus_address=real.url, **FLAGS) as actor:
            await recommended(stage, actor)
            told = [event for event in await stage.events(actor) if event[0] == "HistoryUnavailable"]
            assert {event[1] for event in told} == {"base", "lead"}

    play(scenario)
