"""Three `trimtab run --shards` on the real API server, one of them killed: every HPA has one owner, and none is left."""

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.real.sharing import LEASE, SHARDS, Copy, until
from tests.support.objects import CRDS, NAMESPACES
from tools.peers.cluster import RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import DEPLOYMENTS, LEASES, Json
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.kinds import OWN_HPAS

pytestmark = pytest.mark.real

PERIOD = 5.0
NAMES = [f"web-{number}" for number in range(12)]
NAMESPACE = "sharing"
PLACES = {name: f"sharing-{name}" for name in NAMES}
"""The namespace of each HPA."""
FLAGS = (
    f"--horizontal-pod-autoscaler-sync-period={PERIOD:.0f}s",
    "--records=200",
    f"--watch-namespaces={','.join(PLACES.values())}",
)


class Decider(Copy):
    """A process that decides about HPAs."""

    def owned(self) -> set[str]:
        """Return the HPAs that this copy says to decide."""
        lines = json.loads(self.ask("/autoscalers") or b'{"autoscalers":[]}')["autoscalers"]
        return {line["name"] for line in lines if "elsewhere" not in line}

    def decided(self, name: str) -> list[float]:
        """Return when this copy decided about an HPA, as far as it still says so."""
        text = self.ask(f"/records?name={PLACES[name]}/{name}").decode()
        return [json.loads(line)["decision"]["now"] for line in text.splitlines() if line.startswith("{")]


@asynccontextmanager
async def stage(cluster: RealCluster) -> AsyncIterator[Client]:
    clock = SystemClock()
    client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={})))
    try:
        for body, resource in [
            *((crd, CRDS) for crd in all_crds()),
            *(({"metadata": {"name": place}}, NAMESPACES) for place in (NAMESPACE, *PLACES.values())),
        ]:
            try:
                await client.create(resource, body)
            except errors.AlreadyExists:
                continue
        await until(lambda: _is_served(client))
        for name in NAMES:
            await client.create(DEPLOYMENTS.untyped(), _deployment(name), PLACES[name])
            await client.create(OWN_HPAS.untyped(), _hpa(name), PLACES[name])
        yield client
    finally:
        for place in (NAMESPACE, *PLACES.values()):
            await client.delete(NAMESPACES, place)
        await client.close()


async def _is_served(client: Client) -> bool:
    try:
        await client.list(OWN_HPAS, ListOptions(NAMESPACE))
    except errors.ApiError:
        return False
    return True


def _deployment(name: str) -> Json:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "none"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _hpa(name: str) -> Json:
    # Nobody serves the metric: every decision is about that, and every change of the spec is decided and written.
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {
        "scaleTargetRef": target,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": metric}],
    }
    head = {"apiVersion": OWN_HPAS.api_version, "kind": OWN_HPAS.kind, "metadata": {"name": name}}
    return {**head, "spec": spec}


class Watcher:
    """Changes every HPA again and again, and looks who says to own it."""

    def __init__(self, client: Client, copies: list[Decider]) -> None:
        self._client = client
        self.copies = copies
        self.most_owners = 0
        self._number = 10

    async def go_on(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._number += 1
            for name in NAMES:
                body = {"spec": {"maxReplicas": self._number}}
                await self._client.patch(OWN_HPAS.untyped(), name, PLACES[name], body)
            for _ in range(4):
                owned = [await asyncio.to_thread(copy.owned) for copy in self.copies]
                counts = [sum(name in one for one in owned) for name in NAMES]
                self.most_owners = max(self.most_owners, *counts)
                await asyncio.sleep(0.25)

    def owners(self) -> list[set[str]]:
        return [copy.owned() for copy in self.copies]


def test_three_processes_share_and_one_killed_is_replaced(real_cluster: RealCluster, tmp_path: Path) -> None:
    asyncio.run(_three_processes(real_cluster, tmp_path))


async def _three_processes(cluster: RealCluster, directory: Path) -> None:
    async with stage(cluster) as client:
        copies = [
            Decider(name, cluster.kubeconfig, directory / f"{name}.log", NAMESPACE, *FLAGS)
            for name in ("one", "two", "three")
        ]
        try:
            await _play(client, copies)
        finally:
            for copy in copies:
                copy.end()


async def _play(client: Client, copies: list[Decider]) -> None:
    await until(lambda: all(copy.is_ready() for copy in copies))
    watcher = Watcher(client, copies)
    await until(lambda: all(copy.shards() == SHARDS // 3 for copy in copies))
    settled = time.time()
    await watcher.go_on(8)
    owned = watcher.owners()
    assert set().union(*owned) == set(NAMES)
    assert sum(len(one) for one in owned) == len(NAMES)

    victim, *others = copies
    before = {name: victim.decided(name) for name in owned[0]}
    os.kill(victim.process.pid, signal.SIGKILL)
    killed = time.time()
    watcher.copies = others
    await watcher.go_on(2 * LEASE)
    await until(lambda: sum(copy.shards() for copy in others) == SHARDS)
    await watcher.go_on(3)
    assert watcher.most_owners == 1

    for name in NAMES:
        decided = sorted(
            (when, copy.name) for copy in others for when in copy.decided(name) if when > settled
        )
        decided = sorted(
            [*decided, *((when, victim.name) for when in before.get(name, []) if when > settled)]
        )
        turns = [copy for copy, _ in itertools.groupby(copy for _, copy in decided)]
        assert len(turns) == (2 if name in before else 1), (name, decided)
        if name in before:
            assert turns[0] == victim.name
            first = next(when for when, copy in decided if copy != victim.name)
            # The other copies see the last renewal, and that it ran out, one look late each; the machine is shared.
            assert first - killed <= LEASE + PERIOD + 3

    leases = await client.list(LEASES, ListOptions(NAMESPACE))
    holders = {
        one.spec.holder_identity
        for one in leases.items
        if one.metadata.name.removeprefix("trimtab-horizontal-").isdigit()
    }
    assert len(holders) == 2
    for copy in others:
        copy.process.terminate()
        assert copy.process.wait(15) == 0, copy.log.read_text()
