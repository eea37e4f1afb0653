"""Three recommenders with `--shards` on the real API server, one of them killed: no VPA is left, no history is lost."""

import asyncio
import time
from pathlib import Path

import pytest
from aiohttp import web

from tests.real.sharing import LEASE, SHARDS, Copy, until
from tests.real.side_by_side.metrics_server import TraceServer
from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage
from tools.peers.cluster import RealCluster
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import LEASES
from trimtab.operator.vertical.kinds import VPAS

pytestmark = pytest.mark.real

NAMES = [f"db-{number}" for number in range(9)]
LOOP = 2
FLAGS = ("--components=recommender", f"--recommender-interval={LOOP}s", "--checkpoints-interval=4s")
BUSY, IDLE = "800m", "100m"


class UsageServer(TraceServer):
    """Serves what one pod of each workload uses."""

    cpu = BUSY

    async def _pods(self, request: web.Request) -> web.Response:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        container = {"name": "app", "usage": {"cpu": self.cpu, "memory": "500Mi"}}
        items = [
            {
                "metadata": {"name": f"{name}-0", "namespace": request.match_info["namespace"]},
                "timestamp": stamp,
                "window": "1s",
                "containers": [container],
            }
            for name in NAMES
        ]
        return web.json_response(
            {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
        )


class Watcher:
    """Looks again and again at what is recommended, and how many shards are held in all."""

    def __init__(self, stage: Stage, copies: list[Copy]) -> None:
        self._stage = stage
        self.copies = copies
        self.targets: dict[str, list[str | None]] = {name: [] for name in NAMES}
        self.versions: dict[str, str] = {}
        self.most_shards = 0

    async def look(self) -> None:
        found = await self._stage.client.list(VPAS.untyped(), ListOptions(self._stage.namespace))
        for vpa in found.items:
            entries = vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
            name = vpa["metadata"]["name"]
            self.targets[name].append(entries[0]["target"]["cpu"] if entries else None)
            self.versions[name] = vpa["metadata"]["resourceVersion"]
        self.most_shards = max(
            self.most_shards, sum([await asyncio.to_thread(one.shards) for one in self.copies])
        )

    async def go_on(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self.look()
            await asyncio.sleep(0.25)

    async def all_recommended(self) -> bool:
        await self.look()
        return all(told[-1] is not None for told in self.targets.values())


def recommended_for(copies: list[Copy]) -> int:
    """Return how many VPAs these copies say to have in their models."""
    return int(sum(copy.total("vpa_recommender_vpa_objects_count") for copy in copies))


def test_three_recommenders_share_and_one_killed_is_replaced(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    async def scenario(stage: Stage) -> None:
        for name in NAMES:
            await stage.statefulset(name, 1)
            await stage.vpa(name, name, mode="Off")
        async with UsageServer(stage.direct, real_cluster.directory) as usage:
            await until(usage.is_available)
            copies = [
                Copy(name, real_cluster.kubeconfig, tmp_path / f"{name}.log", stage.namespace, *FLAGS)
                for name in ("one", "two", "three")
            ]
            try:
                await _play(stage, copies, usage)
            finally:
                for copy in copies:
                    copy.end()

    play_on_real(real_cluster, scenario)


async def _play(stage: Stage, copies: list[Copy], usage: UsageServer) -> None:
    await until(lambda: all(copy.is_ready() for copy in copies))
    watcher = Watcher(stage, copies)
    await until(lambda: all(copy.shards() == SHARDS // 3 for copy in copies))
    await until(watcher.all_recommended)
    await watcher.go_on(5 * LOOP)
    assert recommended_for(copies) == len(NAMES)
    # From now on only history knows of the load: whoever lost it would recommend an eighth.
    usage.cpu = IDLE
    watcher = Watcher(stage, copies)
    await watcher.go_on(2 * LOOP)
    victim, *others = sorted(copies, key=lambda copy: -recommended_for([copy]))
    assert 0 < recommended_for([victim]) < len(NAMES)
    victim.process.kill()
    victim.process.wait()
    watcher.copies = others
    # The others see the last renewal, and that it ran out, one look late each; the machine is shared.
    await until(lambda: recommended_for(others) == len(NAMES), LEASE + 2 * LOOP + 6)
    before = dict(watcher.versions)
    await watcher.go_on(3 * LOOP)
    assert all(before[name] != watcher.versions[name] for name in NAMES), "somebody writes every VPA again"
    assert watcher.most_shards == SHARDS
    for name, told in watcher.targets.items():
        assert None not in told, name
        amounts = [int(str(one).removesuffix("m")) for one in told]
        assert max(amounts) <= 1.1 * min(amounts), (name, amounts)

    leases = await stage.client.list(LEASES, ListOptions(stage.namespace))
    holders = {one.spec.holder_identity for one in leases.items if "-shard-" in one.metadata.name}
    assert len(holders) == 2
    for copy in others:
        copy.process.terminate()
        assert copy.process.wait(15) == 0, copy.log.read_text()
