"""The upstream recommender and ours on one real API server, with the same metrics: the same answers.

Usage moves only when the test says so, and a sample of an old timestamp counts for neither, so both have seen exactly
the same samples however often they look.
"""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage, free_port
from tests.scenarios.vertical.test_native_vpas import serve_native_vpas
from tools.peers import build
from tools.peers.cluster import RealCluster
from trimtab.cluster import errors
from trimtab.cluster.client import ListOptions, PatchType
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_time
from trimtab.operator.vertical.kinds import NATIVE
from trimtab.serving.server import served
from trimtab.serving.tls import load_pair, server_context
from trimtab_lab.metrics.server import API_SERVICES, SERVICES, api_service
from trimtab_lab.serve import make_server_pair

WORKLOADS, STEPS = 200, 3
SERVICE = "vpa-comparison-metrics"
FLOOR = 250 * 1024 * 1024
BUCKET = 1.06
"""One histogram bucket is 5 % wide, plus rounding to millicores."""


class Usage:
    """metrics.k8s.io as the test sets it, for one namespace."""

    def __init__(self, namespace: str, start: datetime) -> None:
        self._namespace = namespace
        self._start = start
        self.step = 0
        self.is_silent = False

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        body = json.dumps(self._answer(scope["path"])).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, path: str) -> dict[str, Any]:
        version = {"groupVersion": "metrics.k8s.io/v1beta1", "version": "v1beta1"}
        if not path.endswith("/pods"):
            pods = {"name": "pods", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
            listing = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "resources": [{"singularName": "", **pods}],
            }
            return {**listing, "groupVersion": version["groupVersion"]}
        moment = format_time(self._start + timedelta(minutes=self.step))
        return {
            "kind": "PodMetricsList",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": [self._pod(number, moment) for number in range(0 if self.is_silent else WORKLOADS)],
        }

    def _pod(self, number: int, moment: str) -> dict[str, Any]:
        cpu = 20 + (number * 37) % 3000 + self.step * (number % 50)
        memory = (30 + (number * 61) % 4000 + self.step * (number % 40)) * 1024
        return {
            "metadata": {"name": f"w{number}-0", "namespace": self._namespace},
            "timestamp": moment,
            "window": "30s",
            "containers": [{"name": "app", "usage": {"cpu": f"{cpu}m", "memory": f"{memory}Ki"}}],
        }


@contextmanager
def upstream(cluster: RealCluster, namespace: str, *flags: str) -> Iterator[None]:
    """Run the upstream recommender, looking every second."""
    program = build.find("vpa-recommender")
    assert program is not None
    with Path(cluster.directory / "vpa-recommender.log").open("ab") as output:
        process = subprocess.Popen(
            [
                str(program),
                f"--kubeconfig={cluster.kubeconfig}",
                "--recommender-interval=1s",
                f"--vpa-object-namespace={namespace}",
                f"--address=127.0.0.1:{free_port()}",
                "--kube-api-qps=500",
                "--kube-api-burst=500",
                *flags,
            ],
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


async def fill(stage: Stage) -> None:
    """Make the workloads, each with a VPA for either recommender; both only watch."""
    limit = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with limit:
            name = f"w{number}"
            await stage.statefulset(name, 1)
            await stage.vpa(f"u{number}", name, mode="Off", min_replicas=None)
            await stage.vpa(
                f"t{number}", name, mode="Off", min_replicas=None, recommenders=[{"name": "trimtab"}]
            )

    await asyncio.gather(*(one(number) for number in range(WORKLOADS)))


async def recommended(stage: Stage) -> dict[str, dict[str, Any]]:
    listed = await stage.client.list(NATIVE.vpas.untyped(), ListOptions(stage.namespace))
    found = {}
    for vpa in listed.items:
        entries = vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations") or [None]
        found[vpa["metadata"]["name"]] = entries[0]
    return found


def ratio(one: str, other: str) -> float:
    a, b = Quantity.parse(one).as_float(), Quantity.parse(other).as_float()
    return max(a, b) / min(a, b)


@pytest.mark.real
def test_200_vpas_get_the_same_targets_and_each_reads_the_others_checkpoints(real_cluster):
    if build.find("vpa-recommender") is None:
        pytest.skip("vpa-recommender is not built")

    async def scenario(stage: Stage) -> None:
        stage.kind = NATIVE
        await serve_native_vpas(stage)
        await fill(stage)
        usage = Usage(stage.namespace, stage.clock.now() - timedelta(minutes=STEPS))
        certificate = make_server_pair(["localhost", "127.0.0.1"], stage.clock.now())
        context = server_context()
        load_pair(context, certificate.certificate_pem, certificate.key_pem)
        async with served(usage, "127.0.0.1", 0, tls=context) as port:
            await register(stage, port)
            try:
                await compare(stage, real_cluster, usage)
            finally:
                await stage.client.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
                await stage.client.delete(SERVICES, SERVICE, "kube-system")

    play_on_real(real_cluster, scenario)


async def register(stage: Stage, port: int) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": "kube-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    await stage.client.patch(SERVICES, SERVICE, "kube-system", service, how=PatchType.APPLY)
    body = api_service("metrics.k8s.io", "v1beta1", port=port)
    body["spec"]["service"]["name"] = SERVICE
    await stage.client.patch(API_SERVICES, body["metadata"]["name"], None, body, how=PatchType.APPLY)
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{stage.namespace}/pods"

    async def answers() -> bool:
        try:
            await stage.direct.read("asking for usage", path, dict)
        except Exception:  # noqa: BLE001 - not yet, whatever the reason
            return False
        return True

    await stage.wait_for(answers, 40)


async def compare(stage: Stage, cluster: RealCluster, usage: Usage) -> None:
    # Upstream saves every history in every loop; ours does so only where it is told to.
    every_loop = timedelta()
    async with stage.running(
        native_vpas=True, recommender_name="trimtab", direct=True, checkpoints_interval=every_loop
    ) as actor:
        with upstream(cluster, stage.namespace):
            for step in range(STEPS):
                usage.step = step
                await stage.caught_up(actor)
                await actor.recommender.step()
                await stage.wait_for(partial(counts_are, stage, step + 1), 3)
    found = await recommended(stage)
    worst = 1.0
    for number in range(WORKLOADS):
        theirs, ours = found[f"u{number}"], found[f"t{number}"]
        for bound in ("target", "lowerBound", "upperBound"):
            for resource in ("cpu", "memory"):
                worst = max(worst, ratio(theirs[bound][resource], ours[bound][resource]))
                assert ratio(theirs[bound][resource], ours[bound][resource]) <= BUCKET, (
                    number,
                    bound,
                    resource,
                )
    saved = await stage.checkpoints()
    for number in range(WORKLOADS):
        theirs, ours = saved[f"u{number}-app"]["status"], saved[f"t{number}-app"]["status"]
        assert theirs["version"] == ours["version"]
        assert theirs["totalSamplesCount"] == ours["totalSamplesCount"]
        assert theirs["cpuHistogram"]["bucketWeights"] == ours["cpuHistogram"]["bucketWeights"]
    assert worst <= BUCKET
    await exchange(stage, cluster, usage, found)


async def exchange(stage: Stage, cluster: RealCluster, usage: Usage, before: dict[str, Any]) -> None:
    """Let each recommender start anew with nothing but the other's checkpoints.

    Memory of windows that still run is nothing that they tell each other. Upstream's recommendation of memory falls to the floor,
    the sign that it wrote. Ours stays as it was without a sample, and says what it is for.
    """
    usage.is_silent = True
    with upstream(cluster, stage.namespace, "--recommender-name=trimtab"):
        await stage.wait_for(partial(memory_is_the_floor, stage, "t"), 3)
    async with stage.running(native_vpas=True, recommender_name="default", direct=True) as actor:
        await stage.caught_up(actor)
        await actor.recommender.step()
    after = await recommended(stage)
    for number in range(WORKLOADS):
        assert after[f"u{number}"]["target"]["memory"] == before[f"u{number}"]["target"]["memory"]
        assert "ComputedFor" in await stage.conditions(f"u{number}")
        for name in (f"t{number}", f"u{number}"):
            assert ratio(after[name]["target"]["cpu"], before[name]["target"]["cpu"]) <= BUCKET, name


async def memory_is_the_floor(stage: Stage, prefix: str) -> bool:
    await stage.clock.sleep(0.5)
    found = await recommended(stage)
    return all(
        Quantity.parse(found[f"{prefix}{number}"]["target"]["memory"]).value() == FLOOR
        for number in range(WORKLOADS)
    )


async def counts_are(stage: Stage, samples: int) -> bool:
    """Return whether upstream has saved this many samples of each container; most looks need no more than one."""
    if not await has_count(stage, 0, samples):
        await stage.clock.sleep(0.5)
        return False
    saved = await stage.checkpoints()
    return all(
        saved.get(f"u{number}-app", {}).get("status", {}).get("totalSamplesCount") == samples
        for number in range(WORKLOADS)
    )


async def has_count(stage: Stage, number: int, samples: int) -> bool:
    try:
        found = await stage.client.get(NATIVE.checkpoints, f"u{number}-app", stage.namespace)
    except errors.NotFound:
        return False
    return found.status.total_samples_count == samples
