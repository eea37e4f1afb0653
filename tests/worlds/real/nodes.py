"""Plays the pods of a VPA world as their controller and their kubelet would, and sums up what became of them."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.worlds.real.hpas import Json
from tests.worlds.real.metrics import pod_metrics
from tests.worlds.real.server import Api, ApiError
from tests.worlds.real.vpas import GIBIBYTE, VpaWorld
from tests.worlds.real.workload import conditions, timestamp
from tests.worlds.world import Happening
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP
from trimtab.model.quantity import Quantity

NODE: Json = {"metadata": {"name": "node-1"}}
NODE_STATUS: Json = {
    "capacity": {"cpu": "640", "memory": "4Ti", "pods": "5000"},
    "allocatable": {"cpu": "640", "memory": "4Ti", "pods": "5000"},
    "conditions": [{"type": "Ready", "status": "True"}],
}
_RECREATED_AFTER, _STEP, _TARGET_EVERY, _TOLD_AGAIN = 1.0, 0.5, 3.0, 30.0
"""Seconds."""
_RESOURCES = ("cpu", "memory")
OUTCOMES = (
    "OOM kills", "starved GiB-s", "starved core-s", "wasted GiB-s", "wasted core-s", "unavailable pod-s",
)  # fmt: skip


@dataclass
class Pod:
    """A pod that is played."""

    uid: str
    ordinal: int
    started: float
    resources: Json
    """Those that its container has, which a resize makes those of its spec."""
    ready_at: float
    restarts: int = 0
    killed_at: float | None = None
    shown: Any = None
    sizes: dict[str, float] = field(default_factory=dict)


class PlayedPods:
    """One side of a VPA world."""

    def __init__(self, world: VpaWorld, side: str, replay: int, run: str, api: Api) -> None:
        self.world, self.side, self.replay = world, side, replay
        self.namespace = f"v{run}-{world.name.replace('.', '-')}-r{replay}-{side}"
        self._call, self._pods_path = api.call, f"/api/v1/namespaces/{self.namespace}/pods"
        self._vpa_api = f"{NATIVE_VPA_GROUP if side == 'upstream' else OWN_GROUP}/v1"
        self._vpas = f"/apis/{self._vpa_api}/namespaces/{self.namespace}/verticalpodautoscalers"
        self._pods: dict[int, Pod] = {}
        self._gone_since: dict[int, float] = {}
        self._zero = self._before = self._acts_after = 0.0
        self._uid = ""
        self._factor, self._max_memory, self._mode = 1.0, "", "Off"
        self._until: dict[str, float] = {}
        """By name of a happening that lasts: its end."""
        self._labels_every, self._labelled_at, self._tick = 0.0, 0.0, 0
        self._refusal = ""
        self._has_standbys = self._has_metrics = False
        self._served: set[str] = set()
        self._last_target: dict[str, float] = {}
        self._target_read_at = 0.0
        self.record: Json = {
            "world": world.name, "replay": replay, "side": side, "log": [], "broken": [], "targets": [], "tell": world.tell(),
            "outcomes": dict.fromkeys(OUTCOMES, 0.0),
        }  # fmt: skip

    @property
    def now(self) -> float:
        """Return the seconds since the start."""
        return time.time() - self._zero

    async def set_up(self) -> None:
        """Make the namespace, the StatefulSet and its pods, which are old."""
        self._zero = time.time()
        await self._call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}}, ok=(409,))
        template = {"metadata": {"labels": {"app": "db"}}, "spec": self._pod_spec()}
        spec = {
            "replicas": self.world.pods, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": template,
        }  # fmt: skip
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets"
        made = await self._call("POST", path, {"metadata": {"name": "db"}, "spec": spec})
        self._uid = made["metadata"]["uid"]
        status = {"replicas": self.world.pods, "readyReplicas": self.world.pods}
        await self._call("PATCH", f"{path}/db/status", {"status": status})
        self._has_standbys = any(each.what == "standbys" for each in self.world.happenings)
        for ordinal in range(self.world.pods):
            await self._create(ordinal)

    async def begin(self, acts_after: float) -> None:
        """Start the clock, let happen what is so from the start, serve metrics, and create the VPA.

        For some seconds it only recommends.
        """
        self._zero, self._before, self._acts_after = time.time(), 0.0, acts_after
        for happening in self.world.happenings:
            if happening.at == 0.0:
                await self.happen(happening)
        self._has_metrics = True
        await self._create_vpa()

    async def clean(self) -> None:
        """Delete what was made. No namespace controller runs here."""
        await self._call("DELETE", self._vpas)
        await self._call("DELETE", f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets")
        await self._call("DELETE", self._pods_path, {"gracePeriodSeconds": 0})

    def _pod_spec(self) -> Json:
        container = {"name": "app", "image": "x", "resources": self.world.resources}
        return {
            "nodeName": "node-1", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
            "containers": [container],
        }  # fmt: skip

    async def _create(self, ordinal: int) -> None:
        owner = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "db",
            "uid": self._uid,
            "controller": True,
        }
        metadata = {"name": f"db-{ordinal}", "labels": {"app": "db"}, "ownerReferences": [owner]}
        await self._call("POST", self._pods_path, {"metadata": metadata, "spec": self._pod_spec()}, ok=(409,))

    async def _create_vpa(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        spec: Json = {"targetRef": target, "updatePolicy": {"updateMode": self._mode}}
        if self._max_memory:
            bounds = {"containerName": "*", "maxAllowed": {"memory": self._max_memory}}
            spec["resourcePolicy"] = {"containerPolicies": [bounds]}
        kind = {"apiVersion": self._vpa_api, "kind": "VerticalPodAutoscaler"}
        await self._call("POST", self._vpas, {**kind, "metadata": {"name": "db"}, "spec": spec}, ok=(409,))

    async def happen(self, happening: Happening) -> None:
        """Let something happen."""
        facts, what = happening.facts, happening.what
        self._note(f"{what} {dict(facts)}")
        self._until[what] = self.now + facts.get("for", 0.0)
        if what == "labels":
            self._labels_every = facts["every"]
        elif what == "without":
            self._until = {**self._until, f"without {facts['resource']}": self._until[what]}
        elif what == "load":
            self._factor *= facts["times"]
        elif what == "refusals":
            self._refusal = facts["how"]
        elif what == "bounds":
            self._max_memory = facts["memory"]
            policy = {
                "containerPolicies": [{"containerName": "*", "maxAllowed": {"memory": facts["memory"]}}]
            }
            await self._call("PATCH", f"{self._vpas}/db", {"spec": {"resourcePolicy": policy}}, ok=(404,))
        elif what == "vpa":
            await self._call("DELETE", f"{self._vpas}/db", ok=(404,))
            await asyncio.sleep(facts["for"])
            await self._create_vpa()
        elif what == "rollout":
            for ordinal in reversed(range(self.world.pods)):
                await self._call(
                    "DELETE", f"{self._pods_path}/db-{ordinal}", {"gracePeriodSeconds": 0}, ok=(404,)
                )
                await asyncio.sleep(_RECREATED_AFTER + self.world.start_up + 1)

    def _lasts(self, what: str) -> bool:
        return self.now < self._until.get(what, 0.0)

    def _note(self, text: str) -> None:
        self.record["log"].append((round(self.now, 1), text))

    # The work of the StatefulSet's controller and of the kubelet.

    async def run(self) -> None:
        """Play the pods until cancelled."""
        while True:
            with suppress(ApiError):
                await self._step()
            await asyncio.sleep(_STEP)

    async def _step(self) -> None:
        listed = await self._call("GET", self._pods_path)
        found = {int(item["metadata"]["name"].removeprefix("db-")): item for item in listed["items"]}
        now = self.now
        for ordinal in range(self.world.pods):
            if ordinal in found:
                self._gone_since.pop(ordinal, None)
                await self._play(ordinal, found[ordinal], now)
            elif now - self._gone_since.setdefault(ordinal, now) >= _RECREATED_AFTER:
                await self._create(ordinal)
        if self._lasts("labels") and now - self._labelled_at >= self._labels_every:
            self._labelled_at, self._tick = now, self._tick + 1
            body = {"metadata": {"labels": {"worlds/tick": str(self._tick)}}}
            for ordinal in found:
                await self._call("PATCH", f"{self._pods_path}/db-{ordinal}", body, ok=(404,))
        if now >= self._acts_after and self._mode == "Off":
            self._mode = self.world.mode
            body = {"spec": {"updatePolicy": {"updateMode": self._mode}}}
            await self._call("PATCH", f"{self._vpas}/db", body, ok=(404,))
        self._sum_up(now, set(found))
        if now - self._target_read_at >= _TARGET_EVERY:
            self._target_read_at = now
            await self._note_target()

    async def _play(self, ordinal: int, item: Json, now: float) -> None:
        wanted, uid = item["spec"]["containers"][0]["resources"], item["metadata"]["uid"]
        pod, before = self._pods.get(ordinal), self._pods.get(ordinal)
        if pod is None or pod.uid != uid:
            is_old = before is None
            started, ready_at = (-600.0, -590.0) if is_old else (now, now + self.world.start_up)
            pod = self._pods[ordinal] = Pod(uid, ordinal, started, wanted, ready_at)
            self._note_size(pod, before, "new pod")
        waits = self._refusal if pod.resources != wanted and self._lasts("refusals") else ""
        if pod.resources != wanted and not waits:
            pod.resources = wanted
            self._note_size(pod, pod, "resized")
        limit = pod.resources.get("limits", {}).get("memory")
        if limit is not None and now >= pod.ready_at and self._usage(pod, "memory", now) > _amount(limit):
            if pod.killed_at is None or now - pod.killed_at > _TOLD_AGAIN:
                self._note(f"db-{ordinal} killed for memory at {_amount(limit) / GIBIBYTE:.2f} GiB")
            pod.restarts, pod.killed_at, pod.ready_at = pod.restarts + 1, now, now + self.world.start_up
            self.record["outcomes"]["OOM kills"] += self._mode != "Off"
        is_ready = now >= pod.ready_at and (ordinal == 0 or not self._has_standbys)
        shown = (is_ready, pod.restarts, pod.resources, waits)
        if shown != pod.shown:
            pod.shown = shown
            body = {"status": self._status(pod, waits, is_ready=is_ready)}
            await self._call("PATCH", f"{self._pods_path}/db-{ordinal}/status", body, ok=(404,))

    def _status(self, pod: Pod, waits: str, *, is_ready: bool) -> Json:
        started = timestamp(self._zero + pod.started)
        since = timestamp(self._zero + max(pod.started, pod.killed_at or pod.started))
        shown = conditions(
            since, timestamp(self._zero + pod.ready_at) if is_ready else since, is_ready=is_ready
        )
        if waits:
            shown.append(
                {"type": "PodResizePending", "status": "True", "reason": waits, "lastTransitionTime": since}
            )
        container: Json = {
            "name": "app", "image": "x", "imageID": "x", "ready": is_ready, "started": True, "restartCount": pod.restarts,
            "resources": pod.resources, "allocatedResources": pod.resources["requests"],
            "state": {"running": {"startedAt": since}},
        }  # fmt: skip
        if pod.killed_at is not None:
            killed = {"reason": "OOMKilled", "exitCode": 137, "startedAt": started, "finishedAt": since}
            container["lastState"] = {"terminated": killed}
        return {
            "phase": "Running",
            "startTime": started,
            "conditions": shown,
            "containerStatuses": [container],
        }

    def _usage(self, pod: Pod, resource: str, now: float) -> float:
        if now < pod.ready_at:
            return self.world.usage[resource].idle * 0.3
        used = self.world.usage[resource].at(now, self._factor, pod.ordinal)
        limit = pod.resources.get("limits", {}).get("cpu")
        return min(used, _amount(limit)) if resource == "cpu" and limit is not None else used

    def pod_metrics(self) -> list[Json]:
        """Return the usage of all pods, as metrics-server has it."""
        now, items = self.now, []
        if self._lasts("outage") or not self._has_metrics:
            return []
        served = [resource for resource in _RESOURCES if not self._lasts(f"without {resource}")]
        self._served.update(served)
        for pod in self._pods.values():
            if pod.started <= now - 1 and pod.ordinal not in self._gone_since:
                amounts = {
                    "cpu": f"{round(self._usage(pod, 'cpu', now) * 1e9)}n",
                    "memory": str(round(self._usage(pod, "memory", now))),
                }
                container = {"name": "app", "usage": {name: amounts[name] for name in served}}
                items.append(
                    pod_metrics(self.namespace, f"db-{pod.ordinal}", timestamp(self._zero + now), [container])
                )
        return items

    # What became of them.

    def _sum_up(self, now: float, found: set[int]) -> None:
        seconds, self._before = (now - self._before) * (self._mode != "Off"), now
        sums = self.record["outcomes"]
        for ordinal in range(self.world.pods):
            pod = self._pods[ordinal]
            if ordinal not in found or now < pod.ready_at:
                sums["unavailable pod-s"] += seconds
                continue
            for resource, unit, size in (("memory", "GiB-s", GIBIBYTE), ("cpu", "core-s", 1)):
                needed = self.world.usage[resource].at(now, self._factor, ordinal)
                spare = (_amount(pod.resources["requests"][resource]) - needed) / size
                sums[f"wasted {unit}" if spare > 0 else f"starved {unit}"] += abs(spare) * seconds

    def _note_size(self, pod: Pod, before: Pod | None, how: str) -> None:
        sizes = {name: _amount(pod.resources["requests"][name]) for name in _RESOURCES}
        old = before.sizes if before else {}
        pod.sizes = sizes
        if not old:
            return
        self._note(
            f"db-{pod.ordinal} {how}: {old['cpu']:.2f} -> {sizes['cpu']:.2f} cores, "
            f"{old['memory'] / GIBIBYTE:.2f} -> {sizes['memory'] / GIBIBYTE:.2f} GiB"
        )
        for name in _RESOURCES:
            if sizes[name] < old[name] and name not in self._served:
                text = f"{name} of db-{pod.ordinal} lowered though no sample of it was ever served"
                self.record["broken"].append((round(self.now, 1), "blind", text))

    async def _note_target(self) -> None:
        vpa = await self._call("GET", f"{self._vpas}/db", ok=(404,))
        if vpa["kind"] == "Status":  # It does not exist.
            return
        recommended = vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
        for each in recommended[:1]:
            target = {name: _amount(each["target"][name]) for name in _RESOURCES if name in each["target"]}
            cpu, memory = (target.get(name, 0.0) for name in _RESOURCES)
            self.record["targets"].append((round(self.now, 1), cpu, memory))
            last = self._last_target
            if any(abs(amount - last.get(name, 0)) > 0.2 * amount for name, amount in target.items()):
                self._last_target = target
                self._note(f"target {cpu:.2f} cores, {memory / GIBIBYTE:.2f} GiB")


def _amount(quantity: str) -> float:
    return Quantity.parse(quantity).as_float()
