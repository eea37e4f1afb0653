"""Nodes whose caches lag far behind, that lose answers, or that start over in the middle of their work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.cluster import as_admin
from tests.unit.lab.controllers.builders import names, pods, workload
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.in_process import InProcessTransport
from trimtab_lab.controllers.kinds import PODS
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster

BYSTANDER = DataPlaneConfig(pools=())
"""The embedded cluster has no nodes of its own: those under test are another client's."""


class Lagging:
    """Delivers what happens with a delay, and loses the answer to every so many writes."""

    def __init__(
        self, inner: InProcessTransport, clock: VirtualClock, *, lag: float, lose_every: int = 0
    ) -> None:
        self._inner, self._clock = inner, clock
        self._lag, self._lose_every = lag, lose_every
        self._writes = 0
        self.lost = 0

    async def request(self, request):
        answer = await self._inner.request(request)
        if request.method == "POST" and self._lose_every:
            self._writes += 1
            if self._writes % self._lose_every == 0:
                self.lost += 1
                raise TransportError(f"{request}: the answer was lost")
        return answer

    @asynccontextmanager
    async def stream(self, request) -> AsyncIterator["Delayed"]:
        async with self._inner.stream(request) as inner:
            yield Delayed(inner, self._clock, self._lag)

    async def close(self) -> None:
        await self._inner.close()


class Delayed:
    def __init__(self, inner, clock: VirtualClock, lag: float) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._clock, self._lag = inner, clock, lag

    async def chunks(self):
        async for chunk in self._inner.chunks():
            await self._clock.sleep(self._lag)
            yield chunk


def transport_to(cluster: EmbeddedCluster) -> InProcessTransport:
    return as_admin(cluster.server)


def made_and_deleted(cluster: EmbeddedCluster) -> dict[str, int]:
    """Count what the server did to pods, whoever asked."""
    counts = {"ADDED": 0, "DELETED": 0, "MODIFIED": 0}

    def note(resource, change):
        if resource == "pods":
            counts[change.action] += 1

    cluster.server.store.listen(note)
    return counts


def play(scene, **faults):
    clock = VirtualClock()

    async def main():
        async with EmbeddedCluster(clock, seed=1, setting=BYSTANDER) as cluster:
            transport = Lagging(transport_to(cluster), clock, **faults)
            async with DataPlane(Client(clock, transport, seed=2)) as side:
                await scene(cluster, side, transport)

    clock.run(main())


@pytest.mark.parametrize("lag", [0.5, 7.0, 20.0])
def test_a_cache_that_lags_makes_no_pod_twice_and_deletes_none_too_many(lag):
    async def scene(cluster, _side, _transport):
        counts = made_and_deleted(cluster)
        await cluster.apply(
            workload("Deployment", "web", replicas=5), workload("StatefulSet", "db", replicas=2)
        )
        await cluster.clock.sleep(600)
        assert counts["ADDED"] == 7
        await cluster.apply(workload("Deployment", "web", replicas=2))
        await cluster.clock.sleep(600)
        assert len(await names(cluster, "web")) == 2
        assert counts["DELETED"] == 3
        assert [pod.status.phase for pod in await pods(cluster)] == ["Running"] * 4

    play(scene, lag=lag)


def test_lost_answers_are_made_good():
    async def scene(cluster, _side, transport):
        await cluster.apply(
            workload("Deployment", "web", replicas=6),
            workload("Job", "batch", completions=4, pod={"restartPolicy": "Never"}),
        )
        await cluster.clock.sleep(900)
        assert transport.lost > 3
        assert [pod.status.phase for pod in await pods(cluster, "web")] == ["Running"] * 6
        assert (await cluster.get("Job", "batch"))["status"]["succeeded"] == 4

    play(scene, lag=0.2, lose_every=3)


def test_a_workload_side_that_starts_over_carries_on():
    clock = VirtualClock()

    async def main():
        async with EmbeddedCluster(clock, seed=1, setting=BYSTANDER) as cluster:
            counts = made_and_deleted(cluster)
            for second in range(12):
                async with DataPlane(Client(clock, transport_to(cluster), seed=second)):
                    if second == 0:
                        await cluster.apply(workload("StatefulSet", "db", replicas=3))
                    await clock.sleep(0.9)
            found = (await cluster.client.list(PODS)).items
            assert [pod.metadata.name for pod in found] == ["db-0", "db-1", "db-2"]
            assert [pod.status.phase for pod in found] == ["Running"] * 3
            assert counts["ADDED"] == 3

    clock.run(main())
