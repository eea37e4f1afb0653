"""A stage for horizontal scenarios: an API server, workloads with their pods, metrics, and our operator.

The same scenario runs on the lab under the virtual clock and, marked `real`, on the real kube-apiserver; with our
own HPAs and with native ones. `workloads` says who makes the pods: the cluster's controllers or the stage by hand.
"""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from tests.scenarios.clocks import ShiftedClock, pass_time
from tests.scenarios.horizontal.workloads import Controllers, Played, make_workloads, small
from tests.scenarios.metrics_stub import MetricsStub, WithMetrics
from tests.scenarios.waiting import equal_the_server, wait_for
from tests.support.objects import CRDS, NAMESPACES, NO_WINDOW, hpa, target_of
from tests.support.transport import Line
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.resource import CORE_EVENTS, DEPLOYMENTS, PODS, Json, Resource
from trimtab.cluster.transport import Request, Transport
from trimtab.model.crds import all_crds
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.selection_strategy import ANNOTATION as STRATEGY_ANNOTATION
from trimtab.model.times import format_time
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.process import acting_client
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server
from trimtab_lab.kinds.builtin import builtin_resources

__all__ = ["ALL_GATES", "NO_WINDOW", "Actor", "Stage"]

ALL_GATES = "HPASelectionStrategy=true,HPAScaleToZero=true"
PERIOD = 15.0


class Actor:
    """One operator process, its line to the server, and its metrics."""

    def __init__(self, stage: "Stage", settings: Settings, fence: Fence | None = None) -> None:
        self.line = Line(stage.transport, within=settings.watch_namespaces or None)
        self.registry = CollectorRegistry()
        self.client = acting_client(Client(stage.clock, self.line, seed=2), settings)
        self.runtime = Runtime(stage.clock, self.client, settings, registry=self.registry, fence=fence)
        self.operator = HpaController(self.runtime, config=decision_config(settings))

    async def run(self) -> None:
        """Work until cancelled, as the process does."""
        try:
            await self.operator.run()
        finally:
            await self.runtime.close()

    async def close(self) -> None:
        """End the process."""
        await self.operator.close()
        await self.runtime.close()

    def count(self, name: str, **labels: str) -> float:
        """Return the value of one Prometheus metric."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def reads(self, part: str) -> int:
        """Return how many plain reads of paths with this part were sent."""
        return sum(
            one.method == "GET" and part in one.path and ("watch", "true") not in one.query
            for one in self.line.sent
        )


class Stage:
    """One namespace on one API server, and the operators that work in it."""

    def __init__(
        self,
        clock: Clock,
        transport: Transport,
        *,
        native: bool = False,
        prunes: bool = False,
        controlled: Controllers = Controllers.PLAYED,
    ) -> None:
        self.clock = clock
        self.native = native
        self.prunes = prunes
        """Whether the server knows no selectionStrategy in its own HPAs."""
        self.resource = NATIVE_HPAS if native else OWN_HPAS
        self.metrics = MetricsStub(now=lambda: format_time(clock.now()), pods=self._existing_pods)
        self.transport = WithMetrics(transport, self.metrics)
        self.client = Client(clock, self.transport, seed=1)
        self.namespace = f"s-{secrets.token_hex(3)}"
        self.workloads = make_workloads(controlled, clock, Client(clock, transport, seed=3), self.namespace)
        self.server: Server | None = None
        """The lab, where it is the lab."""

    def use_native_hpas(self) -> None:
        """Play the rest with HPAs of the server's own kind."""
        self.native, self.resource = True, NATIVE_HPAS

    async def open(self) -> None:
        for crd in all_crds():
            try:
                await self.client.create(CRDS, crd)
            except errors.AlreadyExists:
                continue
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.wait_for(self._is_served)
        await self.workloads.open()

    async def close(self) -> None:
        await self.workloads.close()
        await self.client.delete(NAMESPACES, self.namespace)
        await self.client.close()

    def settings(self, **settings: Any) -> Settings:
        settings.setdefault("feature_gates", ALL_GATES)
        settings.setdefault("native_hpas", self.native)
        settings.setdefault("own_hpas", not self.native)
        settings.setdefault("watch_namespaces", (self.namespace,))
        return Settings.of(leader_elect=False, **settings)

    @asynccontextmanager
    async def running(self, *, fence: Fence | None = None, **settings: Any) -> AsyncIterator[Actor]:
        """A fresh operator process, so to speak."""
        actor = Actor(self, self.settings(**settings), fence)
        await actor.operator.start()
        try:
            yield actor
        finally:
            await actor.close()

    async def wait_for(self, condition: Any, seconds: float = 20) -> None:
        await wait_for(self.clock, condition, seconds)

    async def _is_served(self) -> bool:
        try:
            await self.client.list(OWN_HPAS)
        except errors.ApiError:
            return False
        return True

    async def install(self, definition: Json, resource: Resource[Json]) -> Resource[Json]:
        """Install a custom kind and wait until it is served."""
        try:
            await self.client.create(CRDS, definition)
        except errors.AlreadyExists:
            return resource

        async def served() -> bool:
            try:
                await self.client.list(resource)
            except errors.ApiError:
                return False
            return True

        await self.wait_for(served)
        return resource

    async def send(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        headers: dict[str, str],
        body: bytes = b"",
    ) -> None:
        """Send a request as it stands."""
        await self.client.sender.send_once(method, Request(method, path, query, headers, body))

    def restart_server_with(self, gates: FeatureGates) -> None:
        """Give the lab other feature gates, as a restart of its API server would; what is stored stays."""
        assert self.server is not None
        for resource in builtin_resources(gates):
            if (resource.group, resource.plural) == (NATIVE_HPAS.group, NATIVE_HPAS.plural):
                self.server.registry.add(resource)

    def store_raw(self, name: str, change: Callable[[Json], Json]) -> None:
        """Change the spec of an HPA in the lab's store, past every check, as an older server may have left it."""
        assert self.server is not None
        shelf = f"{self.resource.plural}.{self.resource.group}"
        entry = self.server.store.get(shelf, f"{self.namespace}/{name}")
        assert entry is not None
        body = entry.decoded()
        body["spec"] = change(body["spec"])
        body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
        self.server.store.commit(shelf, body, entry.fields)

    async def pass_time(self, seconds: float) -> None:
        await pass_time(self.clock, seconds)

    async def step(self, actor: Actor, *, after: float = PERIOD) -> None:
        """Let time pass, let others do their part, let the caches catch up, and go one round."""
        await self.pass_time(after)
        await self.workloads.settle()
        if isinstance(self.clock, ShiftedClock) and not actor.line.crashed.is_set():
            await self.caught_up(actor.operator)
        await actor.operator.step()

    async def steps(self, actor: Actor, times: int, *deployments: str, after: float = PERIOD) -> None:
        """Go some rounds; in between, pods come and go as the deployments' scales say."""
        for _ in range(times):
            await self.step(actor, after=after)
            for name in deployments:
                await self.follow(name)

    async def caught_up(self, operator: HpaController) -> None:
        """Wait until the operator's caches equal the server."""
        await self.wait_for(lambda: equal_the_server(operator._caches, self.client, self.namespace))

    async def deployment(
        self,
        name: str,
        replicas: int,
        *,
        labels: Json | None = None,
        cpu: str | None = "100m",
        is_slow: bool = False,
    ) -> None:
        """A Deployment whose pods have been ready for a while; those of a slow one do not become ready."""
        await self.workloads.deployment(name, replicas, labels or {"app": name}, cpu, is_slow=is_slow)

    async def bare_deployment(self, name: str, replicas: int, *, running: int | None = None) -> None:
        """A workload whose pods nobody looks at, because only external totals count."""
        await self.workloads.bare_deployment(name, replicas, replicas if running is None else running)

    async def follow(self, name: str) -> None:
        """Let the pods and the status of a deployment follow its scale."""
        await self.workloads.follow(name)

    async def set_status(self, name: str, replicas: int) -> None:
        """Say that as many replicas run, where no controller contradicts."""
        assert isinstance(self.workloads, Played)
        await self.workloads.set_status(name, replicas)

    async def pod(
        self, name: str, labels: Json, spec: Json | None = None, owners: list[Json] | None = None
    ) -> None:
        """A pod that belongs to nobody or to these owners, and is ready."""
        await self.workloads.pod(name, labels, spec or small("100m"), owners or [])

    async def _existing_pods(self) -> list[tuple[str, str]]:
        listed = await self.client.list(PODS, ListOptions(self.namespace))
        return [(self.namespace, pod.name) for pod in listed.items]

    async def pods_of(self, name: str) -> list[str]:
        """Return the names of the pods of a workload."""
        return sorted(pod for _, pod in await self._existing_pods() if pod.startswith(f"{name}-"))

    def use_cpu(self, **usage: str) -> None:
        """Set the CPU of every pod of a workload, or of one pod by its exact name (with _ for -)."""
        self._use("cpu", usage)

    def use_memory(self, **usage: str) -> None:
        """Set the memory of every pod of a workload, or of one pod by its exact name (with _ for -)."""
        self._use("memory", usage)

    def _use(self, resource: str, usage: dict[str, str]) -> None:
        for name, amount in usage.items():
            self.metrics.shares.setdefault(name.replace("_", "-"), {})[resource] = amount

    async def hpa(
        self, name: str, *, target: str | None = None, annotations: dict[str, str] | None = None, **spec: Any
    ) -> Json:
        annotations = dict(annotations or {})
        if self.native and self.prunes and "selectionStrategy" in spec:
            annotations[STRATEGY_ANNOTATION] = spec["selectionStrategy"]
        version = self.resource.api_version
        on = target_of("Deployment", target or name)
        body = hpa(name, on=on, api_version=version, annotations=annotations, **spec)
        return await self.client.create(self.resource.untyped(), body, self.namespace)

    async def edit_hpa(self, name: str, **spec: Any) -> None:
        body: Json = {"spec": spec}
        if self.native and self.prunes and "selectionStrategy" in spec:
            body["metadata"] = {"annotations": {STRATEGY_ANNOTATION: spec["selectionStrategy"]}}
        await self.client.patch(self.resource.untyped(), name, self.namespace, body)

    async def read_hpa(self, name: str) -> Json:
        return await self.client.get(self.resource.untyped(), name, self.namespace)

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        hpa = await self.read_hpa(name)
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

    async def events(self) -> list[tuple[str, str]]:
        found = await self.client.list(CORE_EVENTS, ListOptions(self.namespace))
        return [(one["reason"], one["message"]) for one in sorted(found.items, key=_when)]

    async def event_count(self, reason: str) -> int:
        return sum(one == reason for one, _ in await self.events())


def _when(event: Json) -> str:
    return str(event.get("eventTime") or event.get("firstTimestamp") or "")
