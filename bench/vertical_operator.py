"""Vertical operator: 1,000 VPAs with 10 pods each, one recommender and one updater loop, in process."""

import resource
import time
from datetime import datetime
from typing import Any

from bench import Rows
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.resource import NODES, PODS, STATEFUL_SETS, Json, Resource
from trimtab.cluster.transport import Request, Response
from trimtab.model.crds import all_crds
from trimtab.model.json import wire
from trimtab.model.times import format_time
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.wiring import VerticalRuntime, make_recommender, make_updater
from trimtab_lab.apiserver.server import Server

VPAS_COUNT, PODS_EACH, NAMESPACES_COUNT = 1_000, 10, 20
LOOPS = 4
NAMESPACES: Resource[Json] = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
DEFINITIONS: Resource[Json] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)


class Counted:
    """A transport that counts requests and answers for the metrics API itself."""

    def __init__(self, inner: InProcessTransport, clock: VirtualClock) -> None:
        self._inner = inner
        self._clock = clock
        self.requests = 0
        self.server_seconds = 0.0

    async def request(self, request: Request) -> Response:
        """Answer usage, pass on the rest."""
        self.requests += 1
        if request.path == "/apis/metrics.k8s.io":
            return Response(200, {}, b'{"versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}')
        if "metrics.k8s.io" in request.path:
            namespace = request.path.split("/")[-2]
            return Response(200, {}, usage_of(namespace, self._clock.now()))
        began = time.process_time()
        answer = await self._inner.request(request)
        self.server_seconds += time.process_time() - began
        return answer

    def stream(self, request: Request) -> Any:
        """Pass on."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Do nothing."""


def usage_of(namespace: str, now: datetime) -> bytes:
    """Return a PodMetricsList: pods of one workload use about the same."""
    number = int(namespace.removeprefix("n"))
    moment, minute = format_time(now), now.minute
    return wire.encode(
        {
            "items": [
                {
                    "metadata": {"name": f"w{one}-{index}", "namespace": namespace},
                    "timestamp": moment,
                    "containers": [
                        {
                            "name": "app",
                            "usage": {
                                "cpu": f"{(50 + one * 7 % 900 + minute + index) * 1_000_000}n",
                                "memory": f"{(100_000 + one * 911 % 2_000_000) + minute}Ki",
                            },
                        }
                    ],
                }
                for one in range(number, VPAS_COUNT, NAMESPACES_COUNT)
                for index in range(PODS_EACH)
            ]
        }
    )


async def fill(client: Client) -> None:
    """Make the cluster."""
    for crd in all_crds():
        await client.create(DEFINITIONS, crd)
    for number in range(NAMESPACES_COUNT):
        await client.create(NAMESPACES, {"metadata": {"name": f"n{number}"}})
    await client.create(NODES.untyped(), {"metadata": {"name": "node"}})
    capacity = {"cpu": "640", "memory": "2Ti", "pods": "20000"}
    await client.patch(
        NODES.untyped(), "node", None, {"status": {"capacity": capacity}}, subresource="status"
    )
    for one in range(VPAS_COUNT):
        await fill_one(client, f"w{one}", f"n{one % NAMESPACES_COUNT}")


async def fill_one(client: Client, name: str, namespace: str) -> None:
    """Make one workload with its pods and its VPA."""
    labels = {"app": name}
    resources = {"requests": {"cpu": "100m", "memory": "200Mi"}}
    spec = {"nodeName": "node", "containers": [{"name": "app", "image": "none", "resources": resources}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {
        "replicas": PODS_EACH,
        "selector": {"matchLabels": labels},
        "serviceName": name,
        "template": template,
    }
    made = await client.create(STATEFUL_SETS.untyped(), {"metadata": {"name": name}, "spec": body}, namespace)
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": name,
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    for index in range(PODS_EACH):
        meta = {"name": f"{name}-{index}", "labels": labels, "ownerReferences": [owner]}
        await client.create(PODS.untyped(), {"metadata": meta, "spec": spec}, namespace)
        await client.patch(
            PODS.untyped(),
            f"{name}-{index}",
            namespace,
            {"status": {"phase": "Running"}},
            subresource="status",
        )
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}
    vpa = {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": name},
        "spec": {"targetRef": target, "updatePolicy": {"updateMode": "Recreate"}},
    }
    await client.create(VPAS.untyped(), vpa, namespace)


def run() -> Rows:
    """Measure a first loop, a loop in the steady state, and an update loop."""
    clock = VirtualClock()

    async def main() -> Rows:
        async with Server(clock, seed=1, tracks_fields=False) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            transport = Counted(InProcessTransport(server, headers=headers), clock)
            client = Client(clock, transport, seed=1)
            await fill(client)
            before = _mebibytes()
            site = VerticalRuntime(Runtime(clock, client, Settings.of(max_evictions_per_minute=0)))
            await site.view.wait_synced()
            recommender, updater = make_recommender(site), make_updater(site, _proved)
            rows = []
            for loop in range(LOOPS):
                clock.advance(60)
                await clock.sleep(0.1)
                name = "recommender, first loop" if loop == 0 else f"recommender, loop {loop + 1}"
                rows.append(await _measured(name, transport, recommender.step))
            clock.advance(60)
            await clock.sleep(0.1)
            rows.append(await _measured("updater, one eviction per workload", transport, updater.step))
            rows[0]["MiB more"] = round(_mebibytes() - before)
            await site.runtime.close()
            return rows

    return clock.run(main())


async def _proved() -> str | None:
    return None


async def _measured(name: str, transport: Counted, step: Any) -> dict[str, object]:
    requests, began, cpu = transport.requests, time.perf_counter(), time.process_time()
    server = transport.server_seconds
    await step()
    return {
        "what": name,
        "seconds": round(time.perf_counter() - began, 2),
        "CPU seconds": round(time.process_time() - cpu, 2),
        "of it the server": round(transport.server_seconds - server, 2),
        "requests": transport.requests - requests,
    }


def _mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
