"""Plays a Deployment, its pods and its metrics for one controller, and records what the controller did with it."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.worlds.real.hpas import HpaWorld, Json
from tests.worlds.real.server import HPA_API, Api, ApiError
from tests.worlds.real.usage import Pod, Usage, Value
from tests.worlds.world import Happening

HAND = "worlds/hand"
"""The annotation that tells a scale by hand from the controller's."""


def timestamp(moment: float) -> str:
    """Return a moment as the API spells it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


class Workload:
    """One side of a world: the Deployment of a namespace, and the HPA that scales it."""

    def __init__(self, world: HpaWorld, side: str, replay: int, run: str, api: Api) -> None:
        self.world, self.side, self.replay = world, side, replay
        self.namespace = f"w{run}-{world.name.replace('.', '-')}-r{replay}-{side}"
        self._labels = {"worlds": run}
        self._call = api.call
        self.zero = time.time()
        """The moment of the start."""
        self.pods: dict[str, Pod] = {}
        self.wanted = world.replicas
        self.spec = world.spec
        self.usage = Usage(world)
        self.used = set(range(len(world.metrics)))
        """The metrics that the spec still has."""
        self._ordinal = self._revision = 0
        self._replica_sets: dict[int, str] = {}
        self._uid: str | None = None
        self._is_there = self._has_hpa = False
        self._hand: str | None = None
        self._surge: int | None = None
        self._trouble: list[tuple[float, str, float]] = []
        self._factors = [1.0] * len(world.metrics)
        self._status: tuple[int, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()
        self.record: Json = {
            "world": world.name, "replay": replay, "side": side, "sizes": [], "served": [], "rows": [], "specs": [],
            "status": [], "gone": [], "notes": [],
        }  # fmt: skip

    def begin(self) -> None:
        """Start the clock. All pods of the set-up are old."""
        self.zero = time.time()
        for pod in self.pods.values():
            pod.started, pod.ready_since = -600.0, -590.0
        self.record["sizes"].clear()
        self.usage.measure(0.0, self.pods.values())

    @property
    def now(self) -> float:
        """Return the seconds since the start."""
        return time.time() - self.zero

    # The objects.

    @property
    def _apps(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}"

    @property
    def hpas(self) -> str:
        """Return the path of the HPAs of the namespace."""
        return f"{HPA_API[self.side]}/namespaces/{self.namespace}/horizontalpodautoscalers"

    async def set_up(self) -> None:
        """Make the namespace with a Deployment and its pods."""
        body = {"metadata": {"name": self.namespace, "labels": self._labels}}
        await self._call("POST", "/api/v1/namespaces", body, ok=(409,))
        await self._make_target(self.world.replicas)
        await asyncio.gather(*[self._make_pod() for _ in range(self.world.replicas)])
        for pod in self.pods.values():
            pod.state, pod.started, pod.ready_since = "ready", -600.0, -590.0
            await self._show(pod)
        await self._show_replicas()

    async def clean(self) -> None:
        """Delete what was made. No namespace controller runs here."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        for path in (self.hpas, f"{self._apps}/deployments", f"{self._apps}/replicasets", pods):
            await self._call("DELETE", path, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
        await self._call("DELETE", f"/api/v1/namespaces/{self.namespace}/events")
        await self._call("DELETE", f"/api/v1/namespaces/{self.namespace}", ok=(404, 409))

    def _template(self) -> Json:
        requests = {"cpu": "100m", "memory": "64Mi"}
        for metric in self.world.metrics:
            if metric.resource:
                unit = "m" if metric.resource == "cpu" else ""
                requests[metric.resource] = f"{metric.request}{unit}"
        containers = [{"name": "main", "image": "x", "resources": {"requests": requests}}]
        if any(metric.kind == "ContainerResource" for metric in self.world.metrics):
            small = {"requests": {"cpu": "1m", "memory": "1Mi"}}
            containers.append({"name": "side", "image": "x", "resources": small})
        spec = {"containers": containers, "terminationGracePeriodSeconds": self.world.terminating}
        return {"metadata": {"labels": {"app": "web"}}, "spec": spec}

    async def _make_target(self, replicas: int) -> None:
        spec = {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": self._template()
        }  # fmt: skip
        body = {"metadata": {"name": "web", "labels": self._labels}, "spec": spec}
        made = await self._call("POST", f"{self._apps}/deployments", body)
        self._uid, self.wanted, self._status = made["metadata"]["uid"], replicas, ()
        await self._make_replica_set()
        self._is_there = True

    async def _make_replica_set(self) -> None:
        self._revision += 1
        metadata = {
            "name": f"web-{self._revision}", "labels": {"app": "web"},
            "ownerReferences": [_owner("Deployment", "web", self._uid)],
        }  # fmt: skip
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": self._template()}
        made = await self._call("POST", f"{self._apps}/replicasets", {"metadata": metadata, "spec": spec})
        self._replica_sets[self._revision] = made["metadata"]["uid"]

    async def _make_pod(self) -> None:
        self._ordinal += 1
        ordinal, now = self._ordinal, self.now
        pending, start_up = self.world.start_times(ordinal)
        is_slow = any(what == "slow" and until > now for until, what, _ in self._trouble)
        ready_at = now + pending + start_up * (3 if is_slow else 1)
        random = Random(f"{self.world.name} never {ordinal}")
        for until, what, share in self._trouble:
            if what == "never-ready" and until > now and random.random() < share:
                ready_at = max(ready_at, until)
        pod = Pod(f"web-{self._revision}-{ordinal}", ordinal, self._revision, now + pending, ready_at)
        self.pods[pod.name] = pod
        owner = _owner("ReplicaSet", f"web-{pod.revision}", self._replica_sets[pod.revision])
        template = self._template()
        metadata = {"name": pod.name, **template["metadata"], "ownerReferences": [owner]}
        spec = {**template["spec"], "nodeName": "node-1", "automountServiceAccountToken": False}
        body = {"metadata": metadata, "spec": spec}
        await self._call("POST", f"/api/v1/namespaces/{self.namespace}/pods", body, ok=(409,))

    async def _show(self, pod: Pod) -> None:
        """Write a pod's status, as the kubelet does."""
        is_ready = pod.state == "ready"
        changed = pod.ready_since if is_ready else pod.down_since or pod.started
        started = timestamp(self.zero + (pod.started or 0.0))
        status = {
            "phase": "Running", "startTime": started,
            "conditions": conditions(started, timestamp(self.zero + (changed or 0.0)), is_ready=is_ready),
            "containerStatuses": [
                {"name": each["name"], "image": "x", "imageID": "x", "ready": is_ready, "started": True,
                 "restartCount": 0 if pod.down_since is None else 1, "state": {"running": {"startedAt": started}}}
                for each in self._template()["spec"]["containers"]
            ],
        }  # fmt: skip
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}/status"
        await self._call("PATCH", path, {"status": status}, ok=(404,))

    async def _show_replicas(self) -> None:
        live = self._live()
        status = (len(live), len(self._ready()), sum(pod.revision == self._revision for pod in live))
        if status != self._status and self._is_there:
            self._status = status
            names = ("replicas", "readyReplicas", "updatedReplicas")
            body = {"status": dict(zip(names, status, strict=True)) | {"availableReplicas": status[1]}}
            await self._call("PATCH", f"{self._apps}/deployments/web/status", body, ok=(404,))

    async def _delete(self, pod: Pod) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}"
        if self.world.terminating and pod.started is not None:
            await self._call("DELETE", path, {"gracePeriodSeconds": self.world.terminating}, ok=(404,))
            await asyncio.sleep(self.world.terminating)
        await self._call("DELETE", path, {"gracePeriodSeconds": 0}, ok=(404,))
        self.pods.pop(pod.name, None)

    # The work of the Deployment's controllers and of the kubelet.

    def _live(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.state != "terminating"]

    def _ready(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.state == "ready"]

    async def run(self) -> None:
        """Follow the Deployment's replicas until cancelled."""
        while True:
            await self._noted(self._step())
            await asyncio.sleep(0.25)

    async def _step(self) -> None:
        now, changed = self.now, []
        for pod in self.pods.values():
            if pod.state == "pending" and now >= pod.runs_at:
                pod.state, pod.started = "running", now
                changed.append(pod)
            if pod.state in ("running", "down") and now >= pod.ready_at:
                pod.state, pod.ready_since = "ready", now
                changed.append(pod)
        await asyncio.gather(*[self._show(pod) for pod in {pod.name: pod for pod in changed}.values()])
        if self._is_there:
            await self._scale()
        await self._show_replicas()

    async def _scale(self) -> None:
        live = self._live()
        if self._surge is None:
            missing, doomed = (
                min(self.wanted - len(live), 20),
                _weakest(live)[: max(len(live) - self.wanted, 0)],
            )
        else:
            old = [pod for pod in live if pod.revision != self._revision]
            new = [pod for pod in live if pod.revision == self._revision]
            missing = min(self.wanted - len(new), self.wanted + self._surge - len(live))
            spare = max(sum(pod.state == "ready" for pod in live) - self.wanted, 0)
            ready = [pod for pod in old if pod.state == "ready"]
            doomed = [pod for pod in old if pod.state != "ready"] + _weakest(ready)[:spare]
            doomed = [] if missing > 0 else doomed + _weakest(new)[: max(len(new) - self.wanted, 0)]
            if not old:
                self._surge = None
        await asyncio.gather(*[self._make_pod() for _ in range(missing)])
        for pod in doomed:
            pod.state = "terminating"
            self.spawn(self._delete(pod))

    def spawn(self, job: Coroutine[Any, Any, None]) -> None:
        """Let something go on beside the rest."""
        task = asyncio.create_task(self._noted(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _noted(self, job: Coroutine[Any, Any, None]) -> None:
        try:
            await job
        except ApiError as error:
            self.record["notes"].append(f"{self.now:.1f} {error}"[:200])

    # What happens.

    async def make_hpa(self) -> None:
        """Create the HPA."""
        at = round(self.now, 2)
        body = {"metadata": {"name": "web", "labels": self._labels}, "spec": self.spec}
        kind = {"apiVersion": HPA_API[self.side].removeprefix("/apis/"), "kind": "HorizontalPodAutoscaler"}
        await self._call("POST", self.hpas, {**kind, **body}, ok=(409,))
        self._has_hpa = True
        self.record["specs"].append((at, self.spec))

    async def happen(self, happening: Happening) -> None:
        """Let something happen to the workload or its HPA."""
        now, facts = self.now, happening.facts
        if happening.what == "outage":
            self.usage.fail(facts["metric"], facts["how"], now, facts["for"])
        elif happening.what in ("never-ready", "slow"):
            self._trouble.append((now + facts["for"], happening.what, facts["share"]))
        elif happening.what == "edit":
            await self._edit(dict(facts))
        else:
            deeds: dict[str, Callable[[Json], Coroutine[Any, Any, None]]] = {
                "crash": self._crash, "rollout": self._roll_out, "hand": self._scale_by_hand,
                "target": self._recreate_target, "hpa": self._recreate_hpa,
            }  # fmt: skip
            await deeds[happening.what](dict(facts))

    async def _crash(self, facts: Json) -> None:
        ready = sorted(self._ready(), key=lambda pod: pod.ordinal)
        for pod in ready[: max(1, round(len(ready) * facts["share"]))]:
            pod.state, pod.down_since, pod.ready_at = "down", self.now, self.now + min(facts["for"], 12)
            await self._show(pod)

    async def _roll_out(self, facts: Json) -> None:
        if self._is_there and self._surge is None:
            await self._make_replica_set()
            self._surge = facts["surge"]

    async def _scale_by_hand(self, facts: Json) -> None:
        if self._is_there:
            body = {"metadata": {"annotations": {HAND: f"{self.now:.1f}"}}, "spec": {"replicas": facts["to"]}}
            await self._call("PATCH", f"{self._apps}/deployments/web", body, ok=(404,))

    async def _recreate_target(self, facts: Json) -> None:
        at, self._is_there = round(self.now, 2), False
        await self._call(
            "DELETE", f"{self._apps}/deployments/web", {"propagationPolicy": "Background"}, ok=(404,)
        )
        for pod in self._live():
            pod.state = "terminating"
            self.spawn(self._delete(pod))
        await asyncio.sleep(facts["for"])
        self._surge = None
        await self._make_target(facts["replicas"])
        self.record["gone"].append(("target", at, round(self.now, 2)))

    async def _recreate_hpa(self, facts: Json) -> None:
        at, self._has_hpa = round(self.now, 2), False
        await self._call("DELETE", f"{self.hpas}/web", ok=(404,))
        await asyncio.sleep(facts["for"])
        await self.make_hpa()
        self.record["gone"].append(("hpa", at, round(self.now, 2)))

    async def _edit(self, edit: Json) -> None:
        spec = dict(self.spec)
        if "minReplicas" in edit:
            spec["minReplicas"] = min(edit["minReplicas"], spec["maxReplicas"])
        if "maxReplicas" in edit:
            spec["maxReplicas"] = max(edit["maxReplicas"], spec["minReplicas"], 1)
        if "behavior" in edit:
            spec["behavior"] = edit["behavior"]
        if "factor" in edit:
            self._factors[edit["metric"]] *= edit["factor"]
        if "drop" in edit:
            kept = self.used - {edit["drop"]}
            has_load = any(self.world.metrics[number].kind in ("Object", "External") for number in kept)
            if kept and (spec["minReplicas"] > 0 or has_load):
                self.used = kept
        spec["metrics"] = [
            self.world.metrics[number].spec(self._factors[number]) for number in sorted(self.used)
        ]
        self.spec = {key: value for key, value in spec.items() if value is not None}
        if self._has_hpa:
            fields = {key: spec[key] for key in ("minReplicas", "maxReplicas", "metrics")}
            # A behavior is replaced, not merged with the old one.
            replaced = {**fields, "behavior": spec.get("behavior")}
            steps = [{"op": "add", "path": f"/spec/{key}", "value": value} for key, value in replaced.items()]
            if spec.get("behavior"):
                await self._call("PATCH", f"{self.hpas}/web", steps, patch="json-patch", ok=(404,))
            else:
                await self._call("PATCH", f"{self.hpas}/web", {"spec": replaced}, ok=(404,))
            self.record["specs"].append((round(self.now, 2), self.spec))

    # What the controller was told, and what it did.

    def note_served(self, number: int, how: str, measured: float, value: Value) -> None:
        """Record what the controller was told."""
        live = self._live()
        names = {pod.name for pod in live}
        since = [pod.ready_since or 0.0 for pod in live if pod.state == "ready"]
        if isinstance(value, dict):
            shown: Any = sorted(round(of_pod, 1) for name, of_pod in value.items() if name in names)
        else:
            shown = None if value is None else round(value, 1)
        youngest = round(measured - max(since), 2) if since else None
        self.record["served"].append((
            round(self.now, 2), number, how, shown, len(live), len(since), youngest, self.wanted, len(self.pods),
            round(self.now - measured, 1),
        ))  # fmt: skip

    def see_deployment(self, kind: str, deployment: Json) -> None:
        """Record a change of the replicas."""
        if kind == "DELETED" or deployment["metadata"]["uid"] != self._uid:
            return
        hand = deployment["metadata"].get("annotations", {}).get(HAND)
        replicas = deployment["spec"].get("replicas", 1)
        if replicas != self.wanted:
            by = "hand" if hand != self._hand else "controller"
            self.record["sizes"].append((round(self.now, 2), self.wanted, replicas, by))
            self.wanted = replicas
        self._hand = hand

    def see_hpa(self, kind: str, hpa: Json) -> None:
        """Record a change of the conditions."""
        conditions = hpa.get("status", {}).get("conditions") or []
        found = {each["type"]: [each["status"], each.get("reason", "")] for each in conditions}
        seen = [found.get(name, ["", ""]) for name in ("ScalingActive", "AbleToScale")]
        seen = [["", "deleted"], ["", ""]] if kind == "DELETED" else seen
        if not self.record["status"] or self.record["status"][-1][1:] != seen:
            self.record["status"].append([round(self.now, 2), *seen])

    def note_need(self) -> None:
        """Record how many replicas there are beside how many were needed, within the tolerances."""
        behavior = self.spec.get("behavior") or {}
        up, down = (
            float(behavior.get(direction, {}).get("tolerance", 0.1)) for direction in ("scaleUp", "scaleDown")
        )
        needed = max(
            self.world.demand(self.usage.sharing(number)[0], self.now)
            / (self.world.metrics[number].target * self._factors[number])
            for number in self.used
        )
        low = math.ceil(needed / (1 + up) - 1e-6)
        high = max(math.floor(needed / max(1 - down, 0.1) + 1e-6), math.ceil(needed - 1e-6), low)
        least = max(self.spec["minReplicas"], 1 if needed > 1e-9 else 0)
        bounds = [min(max(replicas, least), self.spec["maxReplicas"]) for replicas in (low, high)]
        wanted = self.wanted if self._is_there else None
        self.record["rows"].append(
            (round(self.now, 2), wanted, len(self._live()), len(self._ready()), *bounds)
        )


def conditions(started: str, changed: str, *, is_ready: bool) -> list[Json]:
    """Return the conditions of a pod that was started and became ready, or ceased to be, at some moments."""
    held = [("PodScheduled", True, started), ("Initialized", True, started)]
    held += [(kind, is_ready, changed) for kind in ("ContainersReady", "Ready")]
    return [{"type": kind, "status": str(holds), "lastTransitionTime": at} for kind, holds, at in held]


def _owner(kind: str, name: str, uid: str | None) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def _weakest(pods: list[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (pod.state == "ready", -pod.ordinal))
