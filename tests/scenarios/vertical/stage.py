"""A stage for vertical scenarios: an API server, workloads whose pods play roles, usage, and our vertical loops.

The same scenario runs on the lab under the virtual clock and, marked `real`, on the real kube-apiserver. `workloads`
says who makes the pods: the cluster's controllers or the stage by hand.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import product
from typing import Any

from prometheus_client import CollectorRegistry

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.workloads import Controllers
from tests.scenarios.metrics_stub import MetricsStub, WithMetrics
from tests.scenarios.vertical.webhooks import BROKEN_BACKENDS, Broken, backend, standing_in
from tests.scenarios.vertical.workloads import AT_ONCE, Played, make_workloads
from tests.scenarios.waiting import equal_the_server, wait_for
from tests.support.objects import (
    CRDS,
    NAMESPACES,
    pod,
    pod_spec,
    scope,
    statefulset,
    target_of,
    vpa,
    workload,
)
from tests.support.transport import Line
from trimtab.clock import Clock, VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions, PatchType
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.resource import CORE_EVENTS, DAEMON_SETS, PODS, STATEFUL_SETS, Json, Resource
from trimtab.cluster.transport import Transport
from trimtab.model.crds import all_crds
from trimtab.model.times import format_time
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.registration import MUTATING, NAMINGS, VALIDATING, configuration_name
from trimtab.operator.vertical.admission.webhook import AdmissionWebhook
from trimtab.operator.vertical.kinds import CHECKPOINTS, OWN, SCOPES, VPAS
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe
from trimtab.operator.vertical.wiring import VerticalRuntime, make_admission, make_recommender, make_updater
from trimtab_lab.apiserver.outbound import Outbound

GATES = "VPASelectorRefinement=true,InPlace=true"
HOME = ("kube-system", "trimtab")
"""Where the chart grants rights of their own, whatever is watched."""
MINUTE = 60.0
LEADER, FOLLOWER = "8e9", "1e9"
"""Fixture F5: what a leader and a follower use of memory, in bytes."""
LEADER_TARGET, FOLLOWER_TARGET = 9616998332, 1168723596


class Actor:
    """One process with recommender and updater, and its line to the server."""

    def __init__(
        self,
        stage: "Stage",
        settings: Settings,
        *,
        direct: bool = False,
        history: HistoryLoader | None = None,
        fence: Fence | None = None,
        is_narrow: bool = True,
    ) -> None:
        transport = stage.direct.sender.transport if direct else stage.transport
        # The chart binds rights in the watched namespaces, our own and kube-system: a wider list is a 403.
        watched = settings.watch_namespaces
        reachable = (*watched, stage.own_namespace, "kube-system") if watched and is_narrow else None
        self.line = Line(transport, within=reachable)
        self.registry = CollectorRegistry()
        client = Client(stage.clock, self.line, seed=2)
        self.site = VerticalRuntime(
            Runtime(stage.clock, client, settings, registry=self.registry, fence=fence)
        )
        self.unproved: str | None = None
        self._ask: Callable[[], Awaitable[str | None]] | None = None
        self.recommender = make_recommender(self.site, history)
        self.updater = make_updater(self.site, self._proof)

    async def _proof(self) -> str | None:
        return await self._ask() if self._ask else self.unproved

    def prove_by(self, ask: Callable[[], Awaitable[str | None]]) -> None:
        """Let the updater ask this before it evicts."""
        self._ask = ask

    def count(self, name: str, **labels: str) -> float:
        """Return the value of one Prometheus metric."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def wrote(self, part: str) -> list[Json]:
        """Return the bodies of the writes whose paths have this part."""
        return [one.body for one in self.line.writes if part in one.request.path and one.status < 300]


class Stage:
    """One namespace on one API server."""

    def __init__(
        self,
        clock: Clock,
        transport: Transport,
        outbound: Outbound | None = None,
        *,
        controlled: Controllers = Controllers.PLAYED,
    ) -> None:
        self.clock = clock
        self.outbound = outbound
        """How the lab calls webhooks; None on a real server, which needs a socket."""
        self.kind = OWN
        """The kind of the VPAs that the stage makes and reads."""
        self.metrics = MetricsStub(now=lambda: format_time(clock.now()))
        self.transport = WithMetrics(transport, self.metrics)
        self.client = Client(clock, self.transport, seed=1)
        self.direct = Client(clock, transport, seed=1)
        """A client that asks the server itself for metrics too."""
        # A lab is used once, and a fixed name keeps runs, and the shards of VPAs, the same.
        self.namespace = f"v-{secrets.token_hex(3)}" if outbound is None else "v-lab"
        self.own_namespace = f"{self.namespace}-own"
        self.workloads = make_workloads(controlled, clock, Client(clock, transport, seed=3), self.namespace)
        self._serving: asyncio.Future[None] | None = None
        self._standing_in = AsyncExitStack()

    async def open(self) -> None:
        for crd in all_crds():
            try:
                await self.client.create(CRDS, crd)
            except errors.AlreadyExists:
                continue
        for name in (self.namespace, self.own_namespace):
            await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        await self.wait_for(self._is_served)
        await self.workloads.open()

    async def close(self) -> None:
        await self.workloads.close()
        for name in (self.namespace, self.own_namespace):
            await self.client.delete(NAMESPACES, name)
        names = [configuration_name(self.own_namespace, naming) for naming in NAMINGS]
        for resource, name in product((MUTATING, VALIDATING), names):
            with suppress(errors.NotFound):
                await self.client.delete(resource, name)
        await self.client.close()

    def settings(self, **settings: Any) -> Settings:
        """The settings of a process on this stage."""
        settings.setdefault("feature_gates", GATES)
        # Scenarios about other things evict without a webhook, and on nodes that have no size.
        settings.setdefault("replacement_check", "none")
        settings.setdefault("node_fit", "none")
        if self.outbound is None:
            port = free_port()
            settings |= {"webhook_url": f"https://127.0.0.1:{port}", "webhook_port": port}
        settings.setdefault("namespace", self.own_namespace)
        return Settings.of(**{"watch_namespaces": (self.namespace,), "leader_elect": False, **settings})

    @asynccontextmanager
    async def running(
        self,
        *,
        direct: bool = False,
        history: HistoryLoader | None = None,
        is_narrow: bool = True,
        before: Callable[[Actor], None] = lambda _: None,
        **settings: Any,
    ) -> AsyncIterator[Actor]:
        """A fresh process, with rights in the namespaces that it watches unless they should be wider."""
        actor = Actor(self, self.settings(**settings), direct=direct, history=history, is_narrow=is_narrow)
        before(actor)
        try:
            await actor.site.view.wait_synced()
            yield actor
        finally:
            await actor.site.runtime.close()

    @asynccontextmanager
    async def admitting(self, actor: Actor) -> AsyncIterator[AdmissionWebhook]:
        """Our webhooks, reachable from the API server: in its process, or over TLS on a socket."""
        admission = make_admission(actor.site)
        if self.outbound is not None:
            self.outbound.register(self.own_namespace, "trimtab-webhook", backend(admission.app))
            await admission.refresh()
            yield admission
            return
        self._serving = asyncio.ensure_future(admission.run())
        try:
            await self.wait_for(lambda: self._is_admitting(actor))
            yield admission
        finally:
            await self.break_webhook(admission)

    async def break_webhook(self, admission: AdmissionWebhook, how: Broken = Broken.DEAD) -> None:
        """The webhook dies without a word, or something else takes its place."""
        if self.outbound is not None:
            self.outbound.register(self.own_namespace, "trimtab-webhook", BROKEN_BACKENDS[how])
            return
        await self._standing_in.aclose()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        if how is not Broken.DEAD:
            assert admission.port is not None
            await self._standing_in.enter_async_context(standing_in(how, admission.port, admission.app))

    async def mend_webhook(self, actor: Actor, admission: AdmissionWebhook) -> None:
        """The webhook is back."""
        if self.outbound is not None:
            self.outbound.register(self.own_namespace, "trimtab-webhook", backend(admission.app))
        else:
            await self._standing_in.aclose()
            self._serving = asyncio.ensure_future(admission.run())
        await self.wait_for(lambda: self._is_admitting(actor))

    async def patch_json(self, resource: Resource[Json], name: str, operations: list[Json]) -> None:
        await self.client.patch(resource, name, None, operations, how=PatchType.JSON)

    async def _is_admitting(self, actor: Actor) -> bool:
        return await AdmissionProbe(self.clock, actor.site.client, self.own_namespace).problem() is None

    async def wait_for(self, condition: Any, seconds: float = 20) -> None:
        await wait_for(self.clock, condition, seconds)

    async def _is_served(self) -> bool:
        try:
            await self.client.list(VPAS)
            await self.client.list(SCOPES)
            await self.client.list(CHECKPOINTS)
        except errors.ApiError:
            return False
        return True

    async def pass_time(self, seconds: float) -> None:
        """Jump ahead: minutes in pieces, so that watches hear their bookmarks; hours at once, to get there."""
        assert isinstance(self.clock, ShiftedClock | VirtualClock)
        pieces = int(seconds // 20) + 1 if seconds <= 600 and self.outbound is not None else 1
        for _ in range(pieces):
            self.clock.advance(seconds / pieces)
            await self.clock.sleep(0.01)

    async def caught_up(self, actor: Actor) -> None:
        """Wait until the caches equal the server."""
        # A watch that fell silent during a jump backs off before it resumes; virtual waiting costs nothing.
        patience = 20 if self.outbound is None else 300
        await self.wait_for(
            lambda: equal_the_server(actor.site.caches, self.client, self.namespace), patience
        )

    async def recommend(self, actor: Actor, times: int = 1, *, after: float = MINUTE) -> None:
        """Let time pass, let the caches catch up, and recommend; some times."""
        for _ in range(times):
            await self.pass_time(after)
            await self.caught_up(actor)
            await actor.recommender.step()

    async def update(self, actor: Actor, times: int = 1, *, after: float = MINUTE) -> None:
        """Let time pass, let the caches catch up, and update; in between, evicted pods come back."""
        for _ in range(times):
            await self.pass_time(after)
            await self.caught_up(actor)
            await actor.updater.step()
            await self.workloads.settle()

    async def node(self, name: str, **labels: str) -> str:
        """A node beside those that are there; return its name."""
        return await self.workloads.add_node(f"{self.namespace}-{name}", labels)

    async def statefulset(
        self,
        name: str,
        replicas: int,
        *,
        labels: Json | None = None,
        requests: Json | None = None,
        limits: Json | None = None,
        annotations: Json | None = None,
    ) -> None:
        spec = pod_spec(requests, limits)
        body = statefulset(name, replicas, labels=labels, annotations=annotations, spec=spec)
        await self.client.create(STATEFUL_SETS.untyped(), body, self.namespace)
        await self.heal(name)

    async def scale(self, name: str, replicas: int) -> None:
        """Set the replicas of a StatefulSet, as an HPA does."""
        body = {"spec": {"replicas": replicas}}
        await self.client.patch(STATEFUL_SETS.untyped(), name, self.namespace, body, subresource="scale")

    async def delete_workload(self, name: str) -> None:
        """Delete a StatefulSet with its pods."""
        await self.workloads.delete(name)

    async def heal(self, name: str) -> list[str]:
        """Let a StatefulSet have all its pods again, as its template says; return those that are new."""
        return await self.workloads.heal(name)

    async def daemonset(self, name: str, node_label: str) -> None:
        """A DaemonSet on the nodes that have a label, whatever its value."""
        term = {"matchExpressions": [{"key": node_label, "operator": "Exists"}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        body = workload("DaemonSet", name, spec=pod_spec() | {"affinity": {"nodeAffinity": required}})
        await self.client.create(DAEMON_SETS.untyped(), body, self.namespace)
        await self.workloads.settle()

    async def pods_on(self, nodes: list[str]) -> list[str]:
        """Return the names of the pods on some nodes, in the order of the nodes."""
        pods = (await self.client.list(PODS, ListOptions(self.namespace))).items
        found = {pod.spec.node_name: pod.name for pod in pods}
        return [found[node] for node in nodes]

    async def pod(
        self,
        name: str,
        labels: Json,
        spec: Json | None = None,
        owner: Json | None = None,
        *,
        annotations: Json | None = None,
    ) -> None:
        owners = [owner] if owner else []
        body = pod(name, labels=labels, annotations=annotations or {}, spec=spec, owners=owners)
        await self.client.create(PODS.untyped(), body, self.namespace)
        await self.workloads.run(name)

    async def run_pod(self, name: str, *, restarts: int = 0, oom_at: str | None = None) -> None:
        """Play kubelet: the pod runs, and perhaps was killed for memory."""
        assert isinstance(self.workloads, Played)
        await self.workloads.run(name, restarts=restarts, oom_at=oom_at)

    async def actuate_resizes(self) -> None:
        """Let what a pod's spec asks for be what its containers have."""
        await self.workloads.settle()

    async def set_status(self, name: str, **status: Any) -> None:
        """Play kubelet: change part of a pod's status."""
        await self.client.patch(
            PODS.untyped(), name, self.namespace, {"status": status}, subresource="status"
        )

    async def delete_pod(self, name: str) -> None:
        await self.client.delete(PODS, name, self.namespace, options=AT_ONCE)

    async def label(self, pod: str, **labels: str | None) -> None:
        """Set labels, or take them off with None."""
        await self.client.patch(PODS, pod, self.namespace, {"metadata": {"labels": labels}})

    async def scope(self, name: str, *, pods: Json | None = None, nodes: Json | None = None) -> None:
        await self.client.create(SCOPES, scope(name, pods=pods, nodes=nodes), self.namespace)

    async def delete_scope(self, name: str) -> None:
        await self.client.delete(SCOPES, name, self.namespace)

    async def vpa(
        self,
        name: str,
        target: str,
        *,
        scope: str | None = None,
        mode: str = "InPlaceOrRecreate",
        kind: str = "StatefulSet",
        min_replicas: int | None = 1,
        **spec: Any,
    ) -> None:
        policy = {"minReplicas": min_replicas} if min_replicas is not None else None
        spec |= {"vpaScope": {"name": scope}} if scope else {}
        body = vpa(name, on=target_of(kind, target), mode=mode, policy=policy, **spec)
        body["apiVersion"] = self.kind.vpas.api_version
        await self.client.create(self.kind.vpas, body, self.namespace)

    def use(self, cpu: str = "100m", **memory: str) -> None:
        """Set what pods use: memory by name (with _ for -), and the same CPU for each."""
        for name, amount in memory.items():
            self.metrics.use(self.namespace, name.replace("_", "-"), cpu=cpu, memory=amount)

    async def read_vpa(self, name: str) -> Json:
        return await self.client.get(self.kind.vpas.untyped(), name, self.namespace)

    async def target(self, name: str, resource: str = "memory") -> int | str | None:
        """Return what a VPA recommends for its container; memory in bytes."""
        recommended = (await self.read_vpa(name)).get("status", {}).get("recommendation", {})
        for entry in recommended.get("containerRecommendations", []):
            amount = entry["target"][resource]
            return int(amount) if amount.isdigit() else str(amount)
        return None

    async def conditions(self, name: str) -> dict[str, str]:
        found = (await self.read_vpa(name)).get("status", {}).get("conditions", [])
        return {one["type"]: one["status"] for one in found}

    async def read_pod(self, name: str) -> Json:
        return await self.client.get(PODS.untyped(), name, self.namespace)

    async def memory(self, pod: str) -> int | str | None:
        """Return what a pod requests of memory, in bytes."""
        found = await self.read_pod(pod)
        amount = found["spec"]["containers"][0].get("resources", {}).get("requests", {}).get("memory")
        return int(amount) if amount and amount.isdigit() else amount

    async def checkpoints(self) -> dict[str, Json]:
        found = await self.client.list(self.kind.checkpoints.untyped(), ListOptions(self.namespace))
        return {one["metadata"]["name"]: one for one in found.items}

    async def events(self, actor: Actor) -> list[tuple[str, str, str]]:
        """Return reason, object and message of every event."""
        await actor.site.runtime.events.flush()
        await self.clock.sleep(0.3)  # one may be on its way just now
        found = await self.client.list(CORE_EVENTS, ListOptions(self.namespace))
        return sorted((one["reason"], one["involvedObject"]["name"], one["message"]) for one in found.items)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
