"""A stage for horizontal scenarios: an API server, workloads with ready pods, metrics, and our operator.

The same scenario runs on the lab under the virtual clock and, marked `real`, on the real kube-apiserver. The stage
itself plays kubelet and ReplicaSet controller: `sync_pods` makes as many ready pods as the scale asks for.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tests.scenarios.metrics_stub import MetricsStub, WithMetrics
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.resources import CORE_EVENTS, DEPLOYMENTS, PODS, REPLICA_SETS
from trimtab.cluster.transport import Transport
from trimtab.model.crds import all_crds
from trimtab.model.times import format_time
from trimtab.operator.horizontal.component import HorizontalAutoscaler, rules_of
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.settings import Settings

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
ALL_GATES = "HPASelectionStrategy=true,HPAScaleToZero=true"


class Stage:
    """One namespace on one API server, and the operator that works in it."""

    def __init__(self, clock: Clock, transport: Transport, *, seed: int = 1) -> None:
        self.clock = clock
        self.metrics = MetricsStub(now=lambda: format_time(clock.now()))
        self.transport = WithMetrics(transport, self.metrics)
        self.client = Client(clock, self.transport, seed=seed)
        self.namespace = f"s-{secrets.token_hex(3)}"
        self.operator: HorizontalAutoscaler | None = None

    async def open(self) -> None:
        for crd in all_crds():
            try:
                await self.client.create(CRDS, crd)
            except errors.AlreadyExists:
                continue
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.wait_for(self._is_served)

    async def close(self) -> None:
        if self.operator is not None:
            await self.operator.close()
        await self.client.delete(NAMESPACES, self.namespace)
        await self.client.close()

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[HorizontalAutoscaler]:
        """A fresh operator process, so to speak."""
        settings.setdefault("feature_gates", ALL_GATES)
        chosen = Settings(watch_namespaces=(self.namespace,), leader_elect=False, **settings)
        operator = HorizontalAutoscaler(self.clock, self.client, chosen, rules=rules_of(chosen))
        await operator.start()
        try:
            yield operator
        finally:
            await operator.close()

    async def wait_for(self, condition: Any, seconds: float = 20) -> None:
        for _ in range(int(seconds / 0.05)):
            if await condition():
                return
            await self.clock.sleep(0.05)
        raise AssertionError(f"{condition.__name__} did not come true")

    async def _is_served(self) -> bool:
        try:
            await self.client.list(OWN_HPAS)
        except errors.ApiError:
            return False
        return True

    async def step(self, operator: HorizontalAutoscaler, *, after: timedelta = timedelta(seconds=15)) -> None:
        """Let time pass, let the caches catch up, and go one round."""
        await self.clock.sleep(after.total_seconds() if self.is_virtual else 0.3)
        await operator.step()

    @property
    def is_virtual(self) -> bool:
        return type(self.clock).__name__ == "VirtualClock"

    async def deployment(
        self, name: str, replicas: int, *, labels: Json | None = None, cpu: str | None = "100m"
    ) -> None:
        labels = labels or {"app": name}
        body = _workload(name, replicas, labels, cpu)
        made = await self.client.create(DEPLOYMENTS.untyped(), body, self.namespace)
        owner = _owner("apps/v1", "Deployment", made)
        body = _workload(f"{name}-rs", replicas, labels, cpu, owner)
        await self.client.create(REPLICA_SETS.untyped(), body, self.namespace)
        await self.sync_pods(name)

    async def sync_pods(self, name: str, *, ready: bool = True) -> None:
        """Make the pods that the deployment's scale asks for."""
        deployment = await self.client.get(DEPLOYMENTS.untyped(), name, self.namespace)
        replica_set = await self.client.get(REPLICA_SETS.untyped(), f"{name}-rs", self.namespace)
        wanted, labels = deployment["spec"]["replicas"], deployment["spec"]["template"]["metadata"]["labels"]
        listed = (await self.client.list(PODS)).items
        mine = [pod.name for pod in listed if pod.metadata.namespace == self.namespace]
        mine = sorted(pod for pod in mine if pod.startswith(f"{name}-rs-"))
        for index in range(len(mine), wanted):
            template = deployment["spec"]["template"]
            await self.pod(
                f"{name}-rs-{index}",
                labels,
                template["spec"],
                _owner("apps/v1", "ReplicaSet", replica_set),
                ready=ready,
            )
        for pod in mine[wanted:]:
            await self.client.delete(PODS, pod, self.namespace, grace_seconds=0)
        status = {"status": {"replicas": wanted}}
        await self.client.patch(DEPLOYMENTS.untyped(), name, self.namespace, status, subresource="status")

    async def pod(
        self,
        name: str,
        labels: Json,
        spec: Json | None = None,
        owner: Json | None = None,
        *,
        ready: bool = True,
    ) -> None:
        metadata = {"name": name, "labels": labels, "ownerReferences": [owner] if owner else []}
        body = {"metadata": metadata, "spec": spec or _pod_spec("100m")}
        await self.client.create(PODS.untyped(), body, self.namespace)
        started = format_time(self.clock.now() - timedelta(hours=1))
        status = {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": started}],
        }
        await self.client.patch(
            PODS.untyped(), name, self.namespace, {"status": status}, subresource="status"
        )

    def use_cpu(self, **usage: str) -> None:
        """Set the CPU of every pod of a workload, or of one pod by its exact name (with _ for -)."""
        for name, cpu in usage.items():
            for index in range(50):
                self.metrics.use(self.namespace, f"{name.replace('_', '-')}-rs-{index}", cpu=cpu)
            self.metrics.use(self.namespace, name.replace("_", "-"), cpu=cpu)

    async def hpa(self, name: str, *, native: bool = False, target: str | None = None, **spec: Any) -> None:
        resource = NATIVE_HPAS if native else OWN_HPAS
        body: Json = {
            "apiVersion": resource.api_version,
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target or name},
                "maxReplicas": 10,
                **spec,
            },
        }
        await self.client.create(resource.untyped(), body, self.namespace)

    async def edit_hpa(self, name: str, spec: Json, *, native: bool = False) -> None:
        resource = NATIVE_HPAS if native else OWN_HPAS
        await self.client.patch(resource.untyped(), name, self.namespace, {"spec": spec})

    async def read_hpa(self, name: str, *, native: bool = False) -> Json:
        resource = NATIVE_HPAS if native else OWN_HPAS
        return await self.client.get(resource.untyped(), name, self.namespace)

    async def conditions(self, name: str, *, native: bool = False) -> dict[str, tuple[str, str]]:
        hpa = await self.read_hpa(name, native=native)
        return {
            one["type"]: (one["status"], one["reason"]) for one in hpa.get("status", {}).get("conditions", [])
        }

    async def replicas(self, name: str) -> int:
        found = await self.client.get(DEPLOYMENTS.untyped(), name, self.namespace)
        return int(found["spec"]["replicas"])

    async def scale(self, name: str, replicas: int) -> None:
        """What `kubectl scale` does."""
        body = {"spec": {"replicas": replicas}}
        await self.client.patch(DEPLOYMENTS.untyped(), name, self.namespace, body, subresource="scale")
        await self.sync_pods(name)

    async def events(self) -> list[tuple[str, str]]:
        found = await self.client.list(CORE_EVENTS)
        mine = [one for one in found.items if one["metadata"]["namespace"] == self.namespace]
        return [(one["reason"], one["message"]) for one in sorted(mine, key=_when)]


def _when(event: Json) -> str:
    return str(event.get("eventTime") or event.get("firstTimestamp") or "")


def _pod_spec(cpu: str | None) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": "100Mi"}} if cpu else {}
    return {"containers": [{"name": "app", "image": "none", "resources": resources}]}


def _owner(api_version: str, kind: str, thing: Json) -> Json:
    meta = thing["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _workload(name: str, replicas: int, labels: Json, cpu: str | None, owner: Json | None = None) -> Json:
    return {
        "metadata": {"name": name, "ownerReferences": [owner] if owner else []},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(cpu)},
        },
    }


def cpu_metric(percent: int) -> Json:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    }


def external_metric(
    name: str, *, average: str | None = None, value: str | None = None, **labels: str
) -> Json:
    target = (
        {"type": "AverageValue", "averageValue": average} if average else {"type": "Value", "value": value}
    )
    metric: Json = {"name": name}
    if labels:
        metric["selector"] = {"matchLabels": labels}
    return {"type": "External", "external": {"metric": metric, "target": target}}


NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}
