"""One workload of a world of HPAs: its load, its pods, and what metrics-server and adapters measure of them.

The physics know nothing of autoscalers. Pods start, become ready, crash and are replaced; those that are ready share the load.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from random import Random
from typing import Any

from tests.support.objects import CRDS, owner_of
from tests.worlds.world import Happening
from trimtab.cluster.client import Client, DeleteOptions
from trimtab.cluster.resource import DEPLOYMENTS, PODS, REPLICA_SETS, Json, Resource
from trimtab.model.times import format_time

CPU_REQUEST, MEMORY_REQUEST = 200, 256 * 2**20
"""Of a pod, in millicores and bytes."""
CAP = 2.5
"""A pod that is overloaded uses so many times what it should."""
UNMEASURED = 10.0
"""Seconds for which metrics-server has no sample of a pod that has started."""
OLD = 600.0
"""Seconds for which pods have run that there are at the start."""
PER_POD = ("Resource", "ContainerResource", "Pods")
LOADS = ("load", "ramp", "burst", "idle")
"""The happenings that change how many pods are needed."""


QUEUES: Resource[Json] = Resource("test.dev", "v1", "queues", "Queue", Json)
"""A kind of our own with a scale, whose objects no program watches."""


async def install_queues(client: Client) -> None:
    paths = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}, "scale": paths},
    }
    names = {"plural": QUEUES.plural, "singular": "queue", "kind": QUEUES.kind}
    spec = {"group": QUEUES.group, "scope": "Namespaced", "names": names, "versions": [version]}
    await client.create(CRDS, {"metadata": {"name": "queues.test.dev"}, "spec": spec})


@dataclass
class Pod:
    """A pod that runs."""

    name: str
    started: float
    ready_at: float
    """When it becomes ready; infinite while something keeps it from that."""
    is_ready: bool = False
    is_old: bool = False
    """Whether a rollout is to replace it."""
    is_foreign: bool = False
    """Whether it only has the labels of the workload's pods."""


@dataclass(frozen=True)
class Sample:
    """What was measured for one metric of one HPA at one moment."""

    taken: float
    total: float
    """Of all pods, or of the object; in thousandths, or bytes."""
    pods: int
    """How many pods were measured."""
    is_complete: bool
    """Whether all pods that there were, were ready and measured."""


def load_at(happenings: Iterable[Happening], workload: str, first: float, at: float) -> float:
    """Return how many pods' worth of load there is at a moment."""
    level, factor = first, 1.0
    for happening in happenings:
        facts = happening.facts
        if happening.what not in LOADS or facts["hpa"] != workload or happening.at > at:
            continue
        since = at - happening.at
        if happening.what == "load":
            level = facts["to"]
        elif happening.what == "ramp":
            level += (facts["to"] - level) * min(since / facts["over"], 1.0)
        elif since < facts["lasts"]:
            factor *= facts["times"] if happening.what == "burst" else 0.0
    return float(level * factor)


def body_of(metric: Json) -> Json:
    """Return the part of a metric that its type names."""
    body: Json = metric[metric["type"][0].lower() + metric["type"][1:]]
    return body


def unit_of(metric: Json) -> float:
    """Return how much of a metric one pod should have, by the metric's target, in thousandths (of memory: in bytes)."""
    body = body_of(metric)
    target = body["target"]
    if target["type"] == "Utilization":
        return (
            float(target["averageUtilization"])
            / 100
            * (CPU_REQUEST if body["name"] == "cpu" else MEMORY_REQUEST)
        )
    text = target.get("averageValue") or target["value"]
    return (
        float(text)
        if body.get("name") == "memory"
        else float(text.removesuffix("m")) * (1 if text.endswith("m") else 1000)
    )


class Workload:
    """A Deployment, as the cluster would run it."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        now: Callable[[], float],
        start: Mapping[str, Any],
        random: Random,
    ) -> None:
        self.name: str = start["name"]
        self.start = start
        self.resource = QUEUES if start.get("kind") == QUEUES.kind else DEPLOYMENTS.untyped()
        self.reference = {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": self.name,
        }
        self.metrics: list[Json] = start["spec"]["metrics"]
        self.units = [unit_of(metric) for metric in self.metrics]
        self.has_pods = any(metric["type"] in PER_POD or _is_value(metric) for metric in self.metrics)
        self.wanted: int = start["replicas"]
        self.pods: dict[str, Pod] = {}
        self.is_there = False
        self.start_seconds: float = start["starts in"]
        self.surge = 0
        """How many pods more than wanted there may be while a rollout replaces the old ones; 0 without a rollout."""
        self._client, self._namespace, self._random = client, namespace, random
        self._now = now
        self._number = 0
        self._owner: Json = {}
        self._written = -1

    # What there is

    def ready(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.is_ready and not pod.is_foreign]

    def living(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.is_foreign]

    async def create(self, replicas: int, *, is_old: bool) -> None:
        """Make the Deployment; the pods of an old one have been ready for a while."""
        self.wanted, self.is_there, self._written = replicas, True, -1
        made = await self._client.create(self.resource, self._body(self.name, replicas), self._namespace)
        if self.has_pods:
            body = self._body(f"{self.name}-rs", replicas)
            body["metadata"]["ownerReferences"] = [owner_of("apps/v1", "Deployment", made)]
            replica_set = await self._client.create(REPLICA_SETS.untyped(), body, self._namespace)
            self._owner = owner_of("apps/v1", "ReplicaSet", replica_set)
        for _ in range(replicas):
            await self._start_pod(is_ready=is_old)
        await self._write_status()

    async def delete(self) -> None:
        self.is_there = False
        for pod in list(self.pods.values()):
            await self._stop_pod(pod)
        options = DeleteOptions(grace_seconds=0)
        await self._client.delete(self.resource, self.name, self._namespace, options=options)
        if self._owner:
            await self._client.delete(REPLICA_SETS, f"{self.name}-rs", self._namespace, options=options)

    # What the Deployment controller and the kubelets do

    async def step(self) -> None:
        """Start, stop and replace pods, and let those become ready whose time has come."""
        if not self.is_there:
            return
        for pod in self.pods.values():
            if not pod.is_ready and self._now() >= pod.ready_at:
                pod.is_ready = True
                await self._show(pod, self._now())
        living = self.living()
        old = [pod for pod in living if pod.is_old]
        missing = self.wanted + (self.surge if old else 0) - len(living)
        if old:
            missing = min(missing, self.wanted - (len(living) - len(old)))
        for _ in range(missing):
            await self._start_pod()
        # Those that are not ready go first, then the youngest, as a ReplicaSet has it.
        by_worth = sorted(living, key=lambda pod: (not pod.is_old, pod.is_ready, -pod.started, pod.name))
        spare = len(living) - self.wanted
        if old:
            spare = min(len(self.ready()) - self.wanted + sum(not pod.is_ready for pod in old), len(old))
        for pod in by_worth[: max(spare, 0)]:
            await self._stop_pod(pod)
        if self.surge and not any(pod.is_old for pod in self.living()):
            self.surge = 0
        await self._write_status()

    def roll_out(self, surge: int) -> None:
        self.surge = surge
        for pod in self.living():
            pod.is_old = True

    async def make_unready(self, share: float, until: float) -> None:
        """Let some of the ready pods crash or fail their probe until a moment."""
        ready = sorted(self.ready(), key=lambda pod: pod.name)
        for pod in ready[: ceil(share * len(ready))]:
            pod.is_ready, pod.ready_at = False, until
            await self._show(pod, self._now())

    async def add_foreign(self, number: int) -> list[Pod]:
        """Start pods that only have the labels of this workload's pods, and use twice as much."""
        return [await self._start_pod(is_ready=True, is_foreign=True) for _ in range(number)]

    async def remove(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod.name in self.pods:
                await self._stop_pod(pod)

    async def _start_pod(self, *, is_ready: bool = False, is_foreign: bool = False) -> Pod:
        self._number += 1
        started = self._now() - OLD if is_ready else self._now()
        ready_at = started + self.start_seconds * self._random.uniform(0.8, 1.4)
        pod = Pod(f"{self.name}-{self._number}", started, ready_at, is_ready, is_foreign=is_foreign)
        self.pods[pod.name] = pod
        if self.has_pods:
            body = {
                "metadata": {
                    "name": pod.name,
                    "labels": {"app": self.name},
                    "ownerReferences": [] if is_foreign else [self._owner],
                },
                "spec": self._body("", 0)["spec"]["template"]["spec"],
            }
            await self._client.create(PODS.untyped(), body, self._namespace)
            await self._show(pod, started)
        return pod

    async def _stop_pod(self, pod: Pod) -> None:
        del self.pods[pod.name]
        if self.has_pods:
            await self._client.delete(PODS, pod.name, self._namespace, options=DeleteOptions(grace_seconds=0))

    async def _show(self, pod: Pod, since: float) -> None:
        """Write whether a pod is ready, and since when."""
        if not self.has_pods:
            return
        ready = {"type": "Ready", "status": str(pod.is_ready), "lastTransitionTime": self._date(since)}
        status = {"phase": "Running", "startTime": self._date(pod.started), "conditions": [ready]}
        body = {"status": status}
        await self._client.patch(PODS.untyped(), pod.name, self._namespace, body, subresource="status")

    def _date(self, at: float) -> str:
        return format_time(self._client.clock.now() + timedelta(seconds=at - self._now()))

    async def _write_status(self) -> None:
        there = len(self.living())
        if there != self._written:
            self._written = there
            body: Json = {"status": {"replicas": there}}
            if self.resource is QUEUES:
                body["status"]["selector"] = f"app={self.name}"
            await self._client.patch(self.resource, self.name, self._namespace, body, subresource="status")

    def _body(self, name: str, replicas: int) -> Json:
        requests = {"cpu": f"{CPU_REQUEST}m", "memory": str(MEMORY_REQUEST)}
        labels = {"app": self.name}
        container = {"name": "app", "image": "none", "resources": {"requests": requests}}
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }

    # What is measured

    def uses_cpu(self, number: int) -> bool:
        return bool(body_of(self.metrics[number]).get("name") == "cpu")

    def measure(self, number: int, load: float) -> tuple[Sample, dict[str, float]]:
        """Return a sample of one metric, and what each pod has of it."""
        unit, metric = self.units[number], self.metrics[number]
        amount = load * unit * self.start["shares"][number]
        serving = self.ready()
        if metric["type"] not in PER_POD:
            value = amount / max(len(serving), 1) if _is_value(metric) else amount
            return Sample(self._now(), value, len(serving), len(serving) == len(self.living())), {}
        each = min(amount / len(serving), CAP * unit) if serving else 0.0
        usage: dict[str, float] = {}
        for pod in self.pods.values():
            if self._now() - pod.started < UNMEASURED:
                continue
            idle = unit * (CAP if self.start["burns at start"] else 0.05)
            usage[pod.name] = 2 * unit if pod.is_foreign else each if pod.is_ready else idle
        own = {name: value for name, value in usage.items() if not self.pods[name].is_foreign}
        is_complete = len(own) == len(usage) == len(serving) == len(self.living())
        return Sample(self._now(), sum(own.values()), len(own), is_complete), usage


def _is_value(metric: Json) -> bool:
    return bool(body_of(metric)["target"]["type"] == "Value")
