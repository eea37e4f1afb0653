"""Three recommenders with `--shards` on the real API server, one of them killed: no VPA is left, no history is lost."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.real.sharing import LEASE, SHARDS, Copy, until
from tests.real.side_by_side.metrics_server import TraceServer
from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage
from tests.scenarios.vertical.teams import kill, workload
from tests.support.objects import NAMESPACES
from tools.peers.cluster import RealCluster
from trimtab.cluster.client import ListOptions
from trimtab.cluster.leases.family import shard_of
from trimtab.cluster.resource import LEASES, PODS
from trimtab.install import manifests, set_values
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS

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

    def __init__(self, stage: Stage, copies: list[Copy], homes: dict[str, str]) -> None:
        self._stage = stage
        self._homes = homes
        self.copies = copies
        self.targets: dict[str, list[str | None]] = {name: [] for name in NAMES}
        self.versions: dict[str, str] = {}
        self.most_shards = 0

    async def look(self) -> None:
        found = await self._stage.client.list(VPAS.untyped())
        for vpa in [one for one in found.items if one["metadata"]["namespace"] in self._homes]:
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
        async with UsageServer(stage.direct, real_cluster.directory) as usage, teams(stage) as homes:
            await until(usage.is_available)
            watched = f"--watch-namespaces={','.join(homes)}"
            copies = [
                Copy(
                    name, real_cluster.kubeconfig, tmp_path / f"{name}.log", stage.namespace, *FLAGS, watched
                )
                for name in ("one", "two", "three")
            ]
            try:
                await _play(stage, copies, usage, homes)
            finally:
                for copy in copies:
                    copy.end()

    play_on_real(real_cluster, scenario)


async def _play(stage: Stage, copies: list[Copy], usage: UsageServer, homes: dict[str, str]) -> None:
    await until(lambda: all(copy.is_ready() for copy in copies))
    watcher = Watcher(stage, copies, homes)
    await until(lambda: all(copy.shards() == SHARDS // 3 for copy in copies))
    await until(watcher.all_recommended)
    await watcher.go_on(5 * LOOP)
    assert recommended_for(copies) == len(NAMES)
    # From now on only history knows of the load: whoever lost it would recommend an eighth.
    usage.cpu = IDLE
    watcher = Watcher(stage, copies, homes)
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
    holders = {
        one.spec.holder_identity
        for one in leases.items
        if one.metadata.name.removeprefix("trimtab-recommender-").isdigit()
    }
    assert len(holders) == 2
    for copy in others:
        copy.process.terminate()
        assert copy.process.wait(15) == 0, copy.log.read_text()


HOME, PROGRAM = "trimtab", "trimtab-recommender"
"""Where the chart installs the recommender, and the name of its account."""
EVERYWHERE = (
    "--watch-namespaces=",
    f"--leader-elect-resource-namespace={HOME}",
    "--checkpoints-gc-interval=3s",
)


@contextmanager
def installed_account(cluster: RealCluster, directory: Path) -> Iterator[Path]:
    """A kubeconfig with the account of an installed recommender, which has the rights of the chart."""
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    objects = [
        body
        for body in manifests(set_values([f"vertical.recommender.settings.shards={SHARDS}"]))
        if body["kind"] in kinds and body["metadata"]["name"].startswith(PROGRAM)
    ]
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": [home, *objects]})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=body)
    config = json.loads(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", PROGRAM, "-n", HOME, "--duration=1h").strip()
    config["users"][0]["user"] = {"token": token}
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    try:
        yield kubeconfig
    finally:
        cluster.kubectl("delete", "leases", "--all", "-n", HOME)
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", PROGRAM, f"{PROGRAM}-cluster")


@asynccontextmanager
async def teams(stage: Stage) -> AsyncIterator[dict[str, str]]:
    """Nine namespaces with one VPA each, and no shard without a namespace: its name by namespace."""
    homes: dict[str, str] = {}
    while len({shard_of(place, SHARDS) for place in homes}) < SHARDS:
        mark = secrets.token_hex(3)
        homes = {f"team-{mark}-{number}": name for number, name in enumerate(NAMES)}
    try:
        for place, name in homes.items():
            await stage.client.create(NAMESPACES, {"metadata": {"name": place}})
            await workload(stage, place, name)
        yield homes
    finally:
        for place in homes:
            for pod in (await stage.client.list(PODS, ListOptions(place))).items:
                await stage.client.delete(PODS, pod.metadata.name, place)
            await stage.client.delete(NAMESPACES, place)


def test_each_recommender_watches_its_shards_with_the_rights_of_the_installation(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    async def scenario(stage: Stage) -> None:
        with installed_account(real_cluster, tmp_path) as kubeconfig:
            async with (
                UsageServer(stage.direct, real_cluster.directory) as usage,
                teams(stage) as homes,
            ):
                await until(usage.is_available)
                copies = [
                    Copy(name, kubeconfig, tmp_path / f"{name}.log", "", *FLAGS, *EVERYWHERE)
                    for name in ("one", "two", "three")
                ]
                try:
                    await _play_everywhere(stage, copies, homes)
                finally:
                    for copy in copies:
                        copy.end()

    play_on_real(real_cluster, scenario)


async def _play_everywhere(stage: Stage, copies: list[Copy], homes: dict[str, str]) -> None:
    def pods_of(some: list[Copy]) -> int:
        return int(sum(copy.total('trimtab_cached_objects{resource="pods"}') for copy in some))

    await until(lambda: all(copy.shards() == SHARDS // 3 for copy in copies))
    vpas = len(NAMES)
    for vpa in (await stage.client.list(VPAS)).items:  # those of earlier tests on this server
        if vpa.metadata.namespace not in homes:
            await stage.client.delete(VPAS, vpa.metadata.name, vpa.metadata.namespace)
    await until(lambda: recommended_for(copies) == vpas)
    await until(lambda: all(copy.is_ready() for copy in copies))
    everything = len((await stage.client.list(PODS)).items)
    assert everything >= 2 * len(NAMES)
    # A copy that came first may have had more shards for a moment.
    await until(lambda: pods_of(copies) == everything, 60)
    for copy in copies:
        assert 0 < pods_of([copy]) < everything, copy.name
        assert copy.total("trimtab_cache_dropped_objects_total") == 0, copy.name
        assert "orbidden" not in copy.log.read_text()

    victim, *others = sorted(copies, key=lambda copy: -recommended_for([copy]))
    before = {place: await _memory(stage, place, name) for place, name in homes.items()}
    victim.process.kill()
    victim.process.wait()
    for place, name in homes.items():
        await kill(stage, place, f"{name}-0")
    await until(lambda: recommended_for(others) == vpas, LEASE + 2 * LOOP + 10)
    await until(lambda: pods_of(others) == everything, 60)
    for place, name in homes.items():
        # Also those whose VPA had no owner when they were killed.
        await until(lambda: _has_grown(stage, place, name, before[place]), 30)  # noqa: B023 - awaited here

    gone, *kept = homes
    await stage.client.delete(VPAS, homes[gone], gone)
    await until(lambda: _has_no_checkpoints(stage, gone), 60)
    for place in kept:
        assert not await _has_no_checkpoints(stage, place), place
    for copy in others:
        assert "orbidden" not in copy.log.read_text()
        copy.process.terminate()
        assert copy.process.wait(15) == 0, copy.log.read_text()


async def _memory(stage: Stage, place: str, name: str) -> int:
    found = await stage.client.get(VPAS.untyped(), name, place)
    entries = found.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
    return int(entries[0]["target"]["memory"]) if entries else 0


async def _has_grown(stage: Stage, place: str, name: str, before: int) -> bool:
    return await _memory(stage, place, name) > 1.1 * before


async def _has_no_checkpoints(stage: Stage, place: str) -> bool:
    return not (await stage.client.list(CHECKPOINTS, ListOptions(place))).items
