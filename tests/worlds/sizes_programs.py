"""Plays a sized workload with whole programs: two copies of `trimtab run` and their Lease, on the lab, in virtual time.

The lab's controllers make the pods and its kubelets run them. What they use is the world's demand.
"""

import asyncio
import gc
import heapq
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from tests.scenarios.vertical.webhooks import backend
from tests.support.transport import Line, Written, status
from tests.worlds.sizes_demand import ROLE, Demand
from tests.worlds.sizes_judge import CPU, MEMORY, Bounds, Judge, Meant, Seen
from tests.worlds.world import Happening, Life, Rules, World
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, DeleteOptions, ListOptions, PatchType
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    LIMIT_RANGES,
    PODS,
    STATEFUL_SETS,
    Json,
    Resource,
)
from trimtab.cluster.transport import Request, Response
from trimtab.model.crds import all_crds
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_time, parse_time
from trimtab.operator.operator import Operator, Parts
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.webhook import AdmissionWebhook
from trimtab.operator.vertical.kinds import CHECKPOINTS, SCOPES, VPAS
from trimtab_lab.apiserver.request import ApiResponse
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import NAMESPACES, EmbeddedCluster
from trimtab_lab.load.usage import ContainerUsage, RunningPod, UsageByContainer
from trimtab_lab.metrics.apis import UsageSample, UsageSource
from trimtab_lab.nodes.node_pool import NodePool
from trimtab_lab.nodes.pod_lifecycle import PREFIX, Timing

HOME, OTHERS, OWN = "shop", "others", "trimtab"
NAME = "db"
GATES = "VPASelectorRefinement=true,InPlace=true"
WORKLOADS = {"StatefulSet": STATEFUL_SETS, "Deployment": DEPLOYMENTS, "DaemonSet": DAEMON_SETS}
BUDGETS: Resource[Json] = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Json)
AT_ONCE = DeleteOptions(grace_seconds=0)
NEVER = "1e9"
"""Seconds until a pod is Ready by itself, where its role decides that."""
CANARY = "canary"
CANARY_FACTOR = 10.0
LOOK = 60.0
SETTLED = 150.0
"""Seconds before the world begins, in which pods start and programs find their Leases."""


def play(world: World, rules: Rules) -> Life:
    """Play a world."""
    logging.getLogger("trimtab").setLevel(logging.CRITICAL)
    clock = VirtualClock()
    life = Life()
    try:
        clock.run(_Stage(clock, world, rules, life).live())
    finally:
        gc.unfreeze()  # programs freeze what they loaded, which would keep each world
    return life


class _Copy:
    """All of `trimtab run`, and its line to the server."""

    name = "parts"

    def __init__(self, stage: "_Stage", number: int, *, gates: str = GATES) -> None:
        self.line = Line(InProcessTransport(stage.cluster.server, headers=stage.headers))
        self.line.answer = stage.answer
        day = timedelta(seconds=stage.world.start["day"])
        settings = Settings.of(
            components=("recommender", "updater", "admission", self.name),
            compat="" if stage.rules is Rules.OURS else "vpa-1.8",
            feature_gates=gates,
            namespace=OWN,
            leader_elect_resource_namespace=OWN,
            port=0,
            webhook_port=0,
            memory_aggregation_interval=day,
            memory_histogram_decay_half_life=day,
            cpu_histogram_decay_half_life=day,
            confidence_interval_cpu=day,
            confidence_interval_memory=day,
            in_bounds_lifetime=day / 2,
            # Renewed less often than by default, because two copies renew all day long.
            leader_elect_lease_duration=timedelta(seconds=60),
            leader_elect_renew_deadline=timedelta(seconds=40),
            leader_elect_retry_period=timedelta(seconds=10),
        )
        client = Client(stage.clock, self.line, seed=number)
        self.webhook: AdmissionWebhook | None = None
        self._operator = Operator(stage.clock, client, settings, beside={self.name: self._keep})
        self._task = asyncio.ensure_future(self._operator.run())

    def _keep(self, parts: Parts) -> "_Copy":
        webhook = parts.loops["admission"]
        assert isinstance(webhook, AdmissionWebhook)
        self.webhook = webhook
        return self

    async def run(self) -> None:
        """A component beside the others, which only shows where they are."""
        await asyncio.Event().wait()

    def health(self) -> dict[str, str]:
        return {}

    async def stop(self, *, at_once: bool) -> None:
        """End in order, or as `kill -9` does: nothing that it still sends arrives."""
        if at_once:
            self.line.crashed.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def wrote(self) -> list[Written]:
        """Return what was written since the last call."""
        found, self.line.writes = self.line.writes, []
        return found


class _Measured:
    """metrics.k8s.io, which may miss CPU or memory."""

    def __init__(self, inner: UsageSource) -> None:
        self._inner = inner
        self.missing: set[str] = set()

    def pod_usage(self, namespace: str, name: str, now: datetime) -> UsageSample | None:
        found = self._inner.pod_usage(namespace, name, now)
        for missing in self.missing & {CPU, MEMORY} if found else ():
            for amounts in found.containers.values() if found else ():
                amounts.pop(missing, None)
        return found

    def node_usage(self, name: str, now: datetime) -> UsageSample | None:
        return self._inner.node_usage(name, now)


class _Stage:
    """The world while it is played."""

    def __init__(self, clock: VirtualClock, world: World, rules: Rules, life: Life) -> None:
        self.clock, self.world, self.rules, self.life = clock, world, rules, life
        start = world.start
        nodes = start["nodes"]
        pool = NodePool(
            name="node",
            count=nodes["count"],
            cpu=str(nodes["cpu"]),
            memory=f"{nodes['memory']:.0f}",
            pods=500,
        )
        timing = Timing(start_seconds=start["starts"], stop_seconds=1, resize_seconds=2)
        setting = DataPlaneConfig(pools=(pool,), timing=timing, sample_seconds=LOOK)
        self.cluster = EmbeddedCluster(clock, seed=1, setting=setting, tracks_fields=False)
        self.headers = {"authorization": f"Bearer {self.cluster.server.tokens.admin}"}
        self.client = Client(clock, InProcessTransport(self.cluster.server, headers=self.headers), seed=1)
        self.demand = Demand(start["usage"], world.seed, start["day"])
        self.meant = Meant(start)
        self.judge = Judge(life, self.meant)
        self.refusals: dict[str, int] = {}
        """What the API server answers instead, by a part of the path."""
        self.failing: set[str] = set()
        """Pods that do not come up."""
        self.copies: list[_Copy] = []
        self.is_webhook_away = False
        self.gates = GATES
        self._numbers = count(1)
        self._due: list[tuple[float, int, Callable[[], Awaitable[None]]]] = []
        self._restarts: dict[str, int] = {}
        self._uids: dict[str, str] = {}
        self._saved: list[list[Json]] = []

    @property
    def now(self) -> float:
        """Return seconds since the world began."""
        return self.clock.monotonic() - SETTLED

    def at(self, seconds: float, action: Callable[[], Awaitable[None]]) -> None:
        heapq.heappush(self._due, (seconds, next(self._numbers), action))

    def answer(self, request: Request) -> Response | None:
        """Return what stands in for the API server's answer to one of the programs."""
        for part, code in self.refusals.items():
            if part in request.path and (request.method != "GET" or "metrics" in part):
                reason = {403: "Forbidden", 404: "NotFound", 422: "Invalid", 429: "TooManyRequests"}
                return status(code, reason.get(code, "ServiceUnavailable"))
        return None

    async def live(self) -> None:
        """Let the world begin, pass and end."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.cluster)
            # The world's demand is what pods use.
            self.cluster.load.measure = self._measure  # type: ignore[method-assign]
            self.metrics = _Measured(self.cluster.side.kubelet.samples)
            self.cluster.server.metrics.source = self.metrics
            self.cluster.server.outbound.register(OWN, "trimtab-webhook", self._admit)
            await self._begin()
            stack.push_async_callback(self._end)
            await self.clock.sleep(max(SETTLED - self.clock.monotonic(), 0))
            for happening in self.world.happenings:
                self.at(happening.at, self._happen(happening))
            self.at(LOOK, self._look_often)
            while self._due and self._due[0][0] <= self.world.seconds:
                seconds, _, action = heapq.heappop(self._due)
                await self.clock.sleep(max(seconds - self.now, 0))
                with suppress(errors.NotFound, errors.Conflict, errors.AlreadyExists):
                    await action()

    async def _end(self) -> None:
        for copy in list(self.copies):
            await self._stop(copy)

    async def _admit(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> ApiResponse:
        for copy in self.copies:
            if copy.webhook is not None and not self.is_webhook_away:
                return await backend(copy.webhook.app)(method, path, headers, body)
        return ApiResponse(503, b"no copy runs")

    async def _begin(self) -> None:
        start, client = self.world.start, self.client
        for crd in all_crds():
            await self.cluster.apply(crd)
        for name in (HOME, OTHERS, OWN):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        if start["range"]:
            item = {"type": start["range"]["type"], "max": {MEMORY: f"{start['range']['max']:.0f}"}}
            await client.create(
                LIMIT_RANGES, {"metadata": {"name": "range"}, "spec": {"limits": [item]}}, HOME
            )
        await self._make_target()
        if start["budget"]:
            await self._budget("budget", {"app": NAME})
        for vpa in start["vpas"]:
            await self._make_scope(vpa["name"])
            await self._make_vpa(vpa["name"])
        await self.clock.sleep(max(100 - self.clock.monotonic(), 0))
        await self._give_roles()
        for _ in range(2):
            self._start_copy()

    def _start_copy(self) -> None:
        self.copies.append(_Copy(self, next(self._numbers), gates=self.gates))

    async def _stop(self, copy: _Copy, *, at_once: bool = False) -> None:
        self.copies.remove(copy)
        await copy.stop(at_once=at_once)
        self._hear(copy)

    async def _make_target(self) -> None:
        start = self.world.start
        spec: Json = {
            "selector": {"matchLabels": {"app": NAME, "track": "main"}},
            "template": self._template(start["requests"]),
        }
        if start["kind"] != "DaemonSet":
            spec["replicas"] = start["pods"]
        if start["kind"] == "StatefulSet":
            spec |= {"serviceName": NAME, "podManagementPolicy": "Parallel"}
        await self.client.create(
            WORKLOADS[start["kind"]].untyped(), {"metadata": {"name": NAME}, "spec": spec}, HOME
        )

    def _template(self, amounts: Mapping[str, float], track: str = "main") -> Json:
        start = self.world.start
        resources: Json = {"requests": _quantities(amounts)}
        if start["limit"]:
            resources["limits"] = _quantities(
                {name: amount * start["limit"] for name, amount in amounts.items()}
            )
        annotations = {f"{PREFIX}ready-seconds": NEVER} if start["active"] else {}
        return {
            "metadata": {"labels": {"app": NAME, "track": track}, "annotations": annotations},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "app", "image": "none", "resources": resources}],
            },
        }

    async def _make_vpa(self, name: str) -> None:
        scope = {"vpaScope": {"name": name}} if self.meant.scopes[name] else {}
        target = {"apiVersion": "apps/v1", "kind": self.world.start["kind"], "name": NAME}
        policy = {"updateMode": self.meant.modes[name], "minReplicas": 1}
        spec = {"targetRef": target, "updatePolicy": policy, **scope}
        await self.client.create(VPAS.untyped(), _object(VPAS, name, spec), HOME)

    async def _make_scope(self, name: str) -> None:
        if labels := self.meant.scopes[name]:
            body = _object(SCOPES, name, {"podSelector": {"matchLabels": labels}})
            await self.client.create(SCOPES.untyped(), body, HOME)

    async def _budget(self, name: str, labels: Json) -> None:
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        await self.client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec}, HOME)

    async def pods(self) -> list[Json]:
        """Return the live pods of the workload, by name."""
        found = (await self.client.list(PODS.untyped(), ListOptions(HOME))).items
        live = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted((pod for pod in live if pod["metadata"]["labels"].get("track") == "main"), key=_name)

    async def _give_roles(self) -> None:
        """Let as many pods have each role as the world says; those that have one keep it."""
        pods = await self.pods()
        if not pods:
            return
        roles: dict[str, int] = dict(self.world.start["roles"])
        if self.meant.is_in("nobody has the role"):
            roles.pop("leader", None)
        free = []
        for pod in pods:
            role = pod["metadata"]["labels"].get(ROLE, "")
            if roles.get(role, 0) > 0 and _name(pod) not in self.failing:
                roles[role] -= 1
            else:
                free.append(pod)
        for pod in free:
            is_able = _is_running(pod) and _name(pod) not in self.failing
            role = next(
                (role for role, left in roles.items() if left > 0 and (is_able or role == "follower")), ""
            )
            if role:
                roles[role] -= 1
            if role != pod["metadata"]["labels"].get(ROLE, ""):
                await self._set_role(_name(pod), role)

    async def _set_role(self, pod: str, role: str) -> None:
        await self._label(pod, {ROLE: role or None})
        if role not in ("", "follower"):
            self.judge.moved(self.now, pod)

    async def _label(self, pod: str, labels: Mapping[str, str | None]) -> None:
        await self.client.patch(PODS.untyped(), pod, HOME, {"metadata": {"labels": labels}})

    def _measure(self, pods: Sequence[RunningPod], now: datetime) -> dict[str, UsageByContainer]:
        found: dict[str, UsageByContainer] = {}
        for running in pods:
            began = running.containers[0].started if running.containers else now.timestamp()
            cores, memory = self._needs(running.pod.metadata.name, running.pod.metadata.labels, began)
            found[running.uid] = {"app": ContainerUsage(round(cores * 1000), round(memory))}
        return found

    def _needs(self, pod: str, labels: Mapping[str, str], started: float) -> tuple[float, float]:
        if pod in self.failing or labels.get("app") != NAME:
            return 0.001, 1e6
        began = self.clock.now().timestamp() - self.clock.monotonic() + SETTLED
        # Whatever ran when the world began had been running for long.
        cores, memory = self.demand.used(pod, labels.get(ROLE, ""), max(started - began, 0.0), self.now)
        factor = CANARY_FACTOR if labels.get("track") == CANARY else 1.0
        return cores * factor, memory * factor

    async def _look_often(self) -> None:
        self.at(self.now + LOOK, self._look_often)
        await self._give_roles()
        await self.look()
        if self.now // 3600 > len(self._saved):
            self._saved.append(await self._checkpoints())

    def _hear(self, copy: _Copy) -> None:
        """Count what a copy wrote."""
        for written in copy.wrote():
            path, is_done = written.request.path, 200 <= written.status < 300
            self.life.add("writes", is_done)
            if path.endswith("/eviction") and is_done and ("dryRun", "All") not in written.request.query:
                name = path.split("/")[-2]
                self.life.add("evictions")
                self.judge.evicted(self.now, name)
            elif not is_done and path.endswith(("/eviction", "/resize")):
                self.life.note(self.now, f"{path.split('/')[-1]} of {path.split('/')[-2]}: {written.status}")

    async def look(self) -> None:
        """Let the judge see all pods and recommendations."""
        seen, now = [], self.now
        for copy in self.copies:
            self._hear(copy)
        pods = await self.pods()
        for pod in pods:
            await self._be_ready(pod)
            found = self._seen(pod)
            seen.append(found)
            status = _container(pod)
            restarts, last = status.get("restartCount", 0), status.get("lastState", {}).get("terminated", {})
            before = self._restarts.get(found.uid, 0)
            if restarts > before or (
                status.get("state", {}).get("waiting") and last and found.uid not in self._uids
            ):
                self._restarts[found.uid] = restarts
                self.life.add("restarts")
                if last.get("reason") == "OOMKilled":
                    self.judge.killed(now, found, found.limits.get(MEMORY, found.requests.get(MEMORY, 0.0)))
        uids = {found.uid: found.name for found in seen}
        for uid, name in self._uids.items():
            if uid not in uids:
                self.demand.forget(name)
        self._uids = uids
        self.judge.look(now, seen, await self._advice())

    async def _be_ready(self, pod: Json) -> None:
        """Play the readiness probe where the kubelet's time to be Ready does not say it."""
        start, name = self.world.start, _name(pod)
        if not _is_running(pod) or not (start["active"] or name in self.failing):
            return
        is_ready = name not in self.failing and pod["metadata"]["labels"].get(ROLE) == "leader"
        if _is_ready(pod) == is_ready:
            return
        now, said = format_time(self.clock.now()), str(is_ready)
        conditions = [
            {**one, "status": said, "lastTransitionTime": now}
            if one["type"] in ("Ready", "ContainersReady")
            else one
            for one in pod["status"]["conditions"]
        ]
        containers = [{**one, "ready": is_ready} for one in pod["status"]["containerStatuses"]]
        body = {"status": {"conditions": conditions, "containerStatuses": containers}}
        await self.client.patch(PODS.untyped(), name, HOME, body, subresource="status")
        pod["status"] |= body["status"]

    def _seen(self, pod: Json) -> Seen:
        meta, name = pod["metadata"], _name(pod)
        labels = meta["labels"]
        role = labels.get(ROLE, "")
        resources = pod["spec"]["containers"][0].get("resources", {})
        running = _container(pod).get("state", {}).get("running")
        needs: dict[str, float] = {}
        if running and name not in self.failing:
            needs = dict(
                zip(
                    (CPU, MEMORY),
                    self._needs(name, labels, parse_time(running["startedAt"]).timestamp()),
                    strict=True,
                )
            )
        learners = self.meant.matching(labels)
        vpa = next(iter(learners), "")
        has_metrics = running and "/apis/metrics.k8s.io/" not in self.refusals
        return Seen(
            name,
            meta["uid"],
            role,
            vpa,
            _amounts(resources.get("requests", {})),
            _amounts(resources.get("limits", {})),
            needs,
            _is_ready(pod),
            tuple(learners),
            self.meant.promises(vpa),
            served=frozenset({CPU, MEMORY} - self.metrics.missing) if has_metrics else frozenset(),
        )

    async def _advice(self) -> dict[str, dict[str, Bounds]]:
        found: dict[str, dict[str, Bounds]] = {}
        for vpa in (await self.client.list(VPAS.untyped(), ListOptions(HOME))).items:
            recommended = vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
            parts = (
                [_amounts(recommended[0][part]) for part in ("lowerBound", "target", "upperBound")]
                if recommended
                else [{}] * 3
            )
            found[_name(vpa)] = {name: Bounds(*(part.get(name, 0.0) for part in parts)) for name in parts[1]}
        return found

    async def _checkpoints(self) -> list[Json]:
        return list((await self.client.list(CHECKPOINTS.untyped(), ListOptions(HOME))).items)

    # What happens.

    def _happen(self, happening: Happening) -> Callable[[], Awaitable[None]]:
        async def happen() -> None:
            await HAPPENS[happening.what](self, dict(happening.facts))

        return happen

    def _for(self, facts: Json, what: str, end: Callable[[], Awaitable[None]] | None = None) -> None:
        """Keep a trouble until its time is over, and a little longer, so that what waits for it can follow."""
        self.meant.begin(what)

        async def over() -> None:
            if end is not None:
                await end()

        async def forgotten() -> None:
            self.meant.end(what)

        self.at(self.now + facts["for"], over)
        self.at(self.now + facts["for"] + 600, forgotten)

    async def _leader(self) -> str:
        pods = await self.pods()
        return next((_name(pod) for pod in pods if pod["metadata"]["labels"].get(ROLE) == "leader"), "")

    async def move_role(self, gap: float = 0.0) -> None:
        """Let the next pod that runs lead, perhaps after a time without a leader."""
        pods, old = await self.pods(), await self._leader()
        names = [_name(pod) for pod in pods]
        place = names.index(old) if old else -1
        order = [*pods[place + 1 :], *pods[: max(place, 0)]]
        able = [_name(pod) for pod in order if _is_running(pod) and _name(pod) not in self.failing]
        if not able:
            return
        rest = "follower" if "follower" in self.world.start["roles"] else ""
        if old:
            await self._set_role(old, rest)
        if gap:
            self.meant.begin("nobody has the role")

        async def take() -> None:
            if gap:
                self.meant.end("nobody has the role")
            with suppress(errors.NotFound):
                await self._set_role(able[0], "leader")
            await self.look()

        if gap:
            self.at(self.now + gap, take)
        else:
            await take()

    async def _role_moves(self, facts: Json) -> None:
        await self.move_role(facts["gap"])

    async def _role_moves_often(self, facts: Json) -> None:
        for number in range(int(facts["for"] // facts["every"])):
            self.at(self.now + number * facts["every"], self.move_role)

    async def _leader_killed(self, facts: Json) -> None:
        leader = await self._leader()
        pod = next((pod for pod in await self.pods() if _name(pod) == leader), None)
        if pod is None or not _is_running(pod):
            return
        self.demand.burst(self.now, 30.0, leader, 3.0, (MEMORY,))
        self.cluster.measure()
        self.at(self.now + facts["after"], self.move_role)

    async def _leader_fails(self, facts: Json) -> None:
        leader = await self._leader()
        if not leader:
            return
        self.failing.add(leader)
        await self.client.patch(
            PODS.untyped(), leader, HOME, {"metadata": {"annotations": {f"{PREFIX}ready-seconds": NEVER}}}
        )
        await self.look()

        async def mended() -> None:
            self.failing.discard(leader)
            if not self.world.start["active"]:
                await self.client.patch(
                    PODS.untyped(),
                    leader,
                    HOME,
                    {"metadata": {"annotations": {f"{PREFIX}ready-seconds": None}}},
                )

        self.at(self.now + 15, self.move_role)
        self.at(self.now + facts["for"], mended)

    async def _nobody_leads(self, facts: Json) -> None:
        if leader := await self._leader():
            await self._set_role(leader, "follower" if "follower" in self.world.start["roles"] else "")
        self._for(facts, "nobody has the role")

    async def _labels_written(self, facts: Json) -> None:
        async def write() -> None:
            for pod in await self.pods():
                await self._label(_name(pod), {"example.com/checked": f"{self.now:.0f}"})

        for number in range(int(facts["for"] // facts["every"])):
            self.at(self.now + number * facts["every"], write)

    async def _node_down(self, facts: Json) -> None:
        if not (pods := await self.pods()):
            return
        last = _name(pods[-1])
        self.failing.add(last)
        await self.client.patch(
            PODS.untyped(), last, HOME, {"metadata": {"annotations": {f"{PREFIX}ready-seconds": NEVER}}}
        )

        async def mended() -> None:
            self.failing.discard(last)
            if not self.world.start["active"]:
                await self.client.patch(
                    PODS.untyped(),
                    last,
                    HOME,
                    {"metadata": {"annotations": {f"{PREFIX}ready-seconds": None}}},
                )

        self.at(self.now + facts["for"], mended)

    async def _nodes_full(self, facts: Json) -> None:
        nodes = self.world.start["nodes"]
        used = {f"node-{number}": [0.0, 0.0] for number in range(1, nodes["count"] + 1)}
        for pod in (await self.client.list(PODS.untyped(), ListOptions(HOME))).items:
            asked = _amounts(pod["spec"]["containers"][0].get("resources", {}).get("requests", {}))
            if node := pod["spec"].get("nodeName"):
                used[node][0] += asked.get(CPU, 0.0)
                used[node][1] += asked.get(MEMORY, 0.0)
        for node, (cores, memory) in used.items():
            spec = self._template(
                {CPU: max(nodes["cpu"] - cores, 0.001), MEMORY: max(nodes["memory"] - memory, 1.0)}
            )["spec"]
            spec["containers"][0]["resources"].pop("limits", None)
            body = {"metadata": {"name": f"filler-{node}"}, "spec": {**spec, "nodeName": node}}
            await self.client.create(PODS.untyped(), body, OTHERS)

        async def emptied() -> None:
            for node in used:
                await self.client.delete(PODS, f"filler-{node}", OTHERS, options=AT_ONCE)

        self._for(facts, "the nodes are full", emptied)

    def _refuse(self, facts: Json, what: str, part: str, code: int) -> None:
        self.refusals[part] = code

        async def over() -> None:
            self.refusals.pop(part, None)

        self._for(facts, what, over)

    async def _resizes_refused(self, facts: Json) -> None:
        self._refuse(facts, "resizes are refused", "/resize", facts["code"])

    async def _evictions_refused(self, facts: Json) -> None:
        self._refuse(facts, "evictions are refused", "/eviction", 429)

    async def _metrics_missing(self, facts: Json) -> None:
        if facts["what"] == "usage":
            self._refuse(facts, "metrics are missing", "/apis/metrics.k8s.io/", 503)
            return
        self.metrics.missing.add(facts["what"])

        async def over() -> None:
            self.metrics.missing.discard(facts["what"])

        self._for(facts, "metrics are missing", over)

    async def _recommender_restarts(self, facts: Json) -> None:
        how = facts["checkpoints"]
        for copy in list(self.copies):
            await self._stop(copy, at_once=how != "fresh")
        self.judge.forget(since=self.now - 600 if how == "fresh" else None, quiet=facts["away"])
        stored = await self._checkpoints()
        if how in ("half", "missing"):
            for checkpoint in stored[:: 2 if how == "half" else 1]:
                await self.client.delete(CHECKPOINTS, _name(checkpoint), HOME)
        elif how == "an hour old" and self._saved:
            older = {_name(one): one for one in self._saved[max(len(self._saved) - 2, 0)]}
            for one in stored:
                if _name(one) in older:
                    body = {"status": older[_name(one)].get("status", {})}
                    await self.client.patch(
                        CHECKPOINTS.untyped(), _name(one), HOME, body, how=PatchType.MERGE
                    )

        self._for({"for": facts["away"]}, "the recommender restarts", self._both_back)
        # Kept failures do not say it.
        if facts.get("blind"):
            await self._metrics_missing({"what": "usage", "for": facts["away"] + facts["blind"]})

    async def _updater_restarts(self, facts: Json) -> None:
        """The copy that leads dies; the other takes over."""
        if not self.copies:
            return
        await self._stop(self.copies[0], at_once=True)

        async def back() -> None:
            self._start_copy()

        self._for({"for": facts["away"]}, "the updater restarts", back)

    async def _webhook_away(self, facts: Json) -> None:
        self.is_webhook_away = True

        async def back() -> None:
            self.is_webhook_away = False

        self._for(facts, "the webhook is away", back)

    async def _scope_deleted(self, facts: Json) -> None:
        vpa = facts["vpa"]
        await self.client.delete(SCOPES, vpa, HOME)
        self.meant.dark.add(vpa)

        async def back() -> None:
            await self._make_scope(vpa)
            self.meant.dark.discard(vpa)

        self._for(facts, "a scope is deleted", back)

    async def _scope_edited(self, facts: Json) -> None:
        vpa, before = facts["vpa"], self.meant.scopes[facts["vpa"]]

        async def edit(labels: dict[str, str]) -> None:
            self.meant.scopes[vpa] = labels
            self.judge.forget(vpa, quiet=facts["away"])
            if facts["away"]:
                for copy in list(self.copies):
                    await self._stop(copy)
                self.at(self.now + facts["away"], self._both_back)
            body = {"spec": {"podSelector": {"matchLabels": labels}}}
            await self.client.patch(SCOPES.untyped(), vpa, HOME, body)

        async def back() -> None:
            await edit(before)

        self._for(facts, "a scope is edited", back)
        await edit({ROLE: facts["to"]})

    async def _both_back(self) -> None:
        self._start_copy()
        self._start_copy()

    async def _vpa_made_again(self, facts: Json) -> None:
        vpa = facts["vpa"]
        await self.client.delete(VPAS, vpa, HOME)
        self.meant.gone.add(vpa)

        async def back() -> None:
            self.meant.gone.discard(vpa)
            self.judge.forget(vpa)
            await self._make_vpa(vpa)

        self._for(facts, "a VPA is made again", back)

    async def _mode_edited(self, facts: Json) -> None:
        vpa, before = facts["vpa"], self.meant.modes[facts["vpa"]]

        async def edit(mode: str) -> None:
            self.meant.modes[vpa] = mode
            await self.client.patch(
                VPAS.untyped(), vpa, HOME, {"spec": {"updatePolicy": {"updateMode": mode}}}
            )

        async def back() -> None:
            await edit(before)

        self._for(facts, "a VPA's mode is edited", back)
        await edit(facts["mode"])

    async def _gate_off(self, facts: Json) -> None:
        self.meant.dark |= {name for name, scope in self.meant.scopes.items() if scope}

        async def restart(gates: str) -> None:
            self.gates = gates
            for copy in list(self.copies):
                await self._stop(copy)
                self._start_copy()

        async def back() -> None:
            self.meant.dark.clear()
            await restart(GATES)

        self._for(facts, "the gate is off", back)
        await restart("InPlace=true")

    async def _patch_template(self, template: Json) -> None:
        body = {"spec": {"template": template}}
        resource = WORKLOADS[self.world.start["kind"]]
        await self.client.patch(resource.untyped(), NAME, HOME, body, how=PatchType.STRATEGIC)

    async def _target_edited(self, facts: Json) -> None:
        asked = self.world.start["requests"]
        await self._patch_template(self._template({**asked, MEMORY: asked[MEMORY] * facts["factor"]}))

    async def _rollout(self, _facts: Json) -> None:
        await self._patch_template({"metadata": {"annotations": {"example.com/rollout": f"{self.now:.0f}"}}})

    async def _canary(self, facts: Json) -> None:
        template = self._template(self.world.start["requests"], CANARY)
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME, "track": CANARY}},
            "template": template,
        }
        await self.client.create(DEPLOYMENTS.untyped(), {"metadata": {"name": CANARY}, "spec": spec}, HOME)

        async def over() -> None:
            await self.client.delete(DEPLOYMENTS, CANARY, HOME)

        self._for(facts, "a canary", over)

    async def _scaled(self, facts: Json) -> None:
        kind = self.world.start["kind"]
        if kind == "DaemonSet":
            return

        async def scale(replicas: int) -> None:
            self.judge.replicas = replicas
            await self.client.patch(WORKLOADS[kind].untyped(), NAME, HOME, {"spec": {"replicas": replicas}})

        async def back() -> None:
            await scale(self.world.start["pods"])

        self._for(facts, "the workload is scaled", back)
        await scale(facts["to"])

    async def _bursts(self, facts: Json) -> None:
        self.demand.burst(self.now, facts["for"], facts["whom"], facts["factor"], (facts["resource"],))

    async def _saturated(self, facts: Json) -> None:
        pods = len(await self.pods()) or 1
        share = self.world.start["nodes"]["cpu"] * self.world.start["nodes"]["count"] / pods
        for role, profile in self.world.start["usage"].items():
            self.demand.burst(self.now, facts["for"], role, share * 1.005 / profile["cpu"], (CPU,))

    async def _slow_starts(self, facts: Json) -> None:
        key = f"{PREFIX}start-seconds"
        # Only new pods heed it; the template is edited, and a rollout follows, as where an image grew.
        await self._patch_template({"metadata": {"annotations": {key: f"{facts['seconds']:.0f}"}}})

        async def over() -> None:
            await self._patch_template({"metadata": {"annotations": {key: None}}})

        self._for(facts, "pods start slowly", over)

    async def _pod_crashes(self, _facts: Json) -> None:
        if pods := await self.pods():
            await self.client.delete(PODS, _name(pods[0]), HOME, options=AT_ONCE)

    async def _second_budget(self, facts: Json) -> None:
        if not (pods := await self.pods()):
            return
        await self._label(_name(pods[0]), {"example.com/precious": "true"})
        await self._budget("second", {"example.com/precious": "true"})
        # Kept failures say it by a happening of its own.
        for role in self.world.start["usage"] if "factor" in facts else ():
            self.demand.burst(self.now, facts["for"], role, facts["factor"], (MEMORY,))

        async def over() -> None:
            await self.client.delete(BUDGETS, "second", HOME)

        self._for(facts, "a second budget", over)


HAPPENS: Mapping[str, Callable[[_Stage, Json], Awaitable[None]]] = {
    "the role moves": _Stage._role_moves,
    "the role moves often": _Stage._role_moves_often,
    "the leader is killed for memory": _Stage._leader_killed,
    "the leader fails": _Stage._leader_fails,
    "nobody has the role": _Stage._nobody_leads,
    "labels are written": _Stage._labels_written,
    "a node is down": _Stage._node_down,
    "the nodes are full": _Stage._nodes_full,
    "resizes are refused": _Stage._resizes_refused,
    "evictions are refused": _Stage._evictions_refused,
    "metrics are missing": _Stage._metrics_missing,
    "the recommender restarts": _Stage._recommender_restarts,
    "the updater restarts": _Stage._updater_restarts,
    "the webhook is away": _Stage._webhook_away,
    "a scope is deleted": _Stage._scope_deleted,
    "a scope is edited": _Stage._scope_edited,
    "a VPA is made again": _Stage._vpa_made_again,
    "a VPA's mode is edited": _Stage._mode_edited,
    "the gate is off": _Stage._gate_off,
    "the target is edited": _Stage._target_edited,
    "a rollout": _Stage._rollout,
    "a canary": _Stage._canary,
    "the workload is scaled": _Stage._scaled,
    "use bursts": _Stage._bursts,
    "CPU is saturated": _Stage._saturated,
    "pods start slowly": _Stage._slow_starts,
    "a pod crashes": _Stage._pod_crashes,
    "a second budget": _Stage._second_budget,
}


def _object(resource: Resource[Any], name: str, spec: Json) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _name(body: Json) -> str:
    return str(body["metadata"]["name"])


def _container(pod: Json) -> Json:
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or [{}]
    return statuses[0]


def _is_running(pod: Json) -> bool:
    return bool(_container(pod).get("state", {}).get("running"))


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _amounts(amounts: Mapping[str, Any]) -> dict[str, float]:
    return {name: Quantity.parse(str(text)).as_float() for name, text in amounts.items()}


def _quantities(amounts: Mapping[str, float]) -> dict[str, str]:
    return {CPU: f"{amounts[CPU] * 1000:.0f}m", MEMORY: f"{amounts[MEMORY]:.0f}"}
