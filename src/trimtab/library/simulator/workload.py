"""The simulated workload: pods on nodes, what they use, and what the kubelet and the controllers do with them.

What belongs here: what a cluster does by itself. What does not: autoscalers. Amounts are whole millicores and bytes.
StatefulSets create their pods in parallel, and an evicted pod is gone at once.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from trimtab.model.core.pod import (
    CPU,
    MEMORY,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from trimtab.model.core.pod import Container as ContainerSpec
from trimtab.model.json import wire

Json = dict[str, Any]
Used = Mapping[str, tuple[int | None, int | None]]
"""Millicores and bytes by container. None is not measured."""
NEVER = math.inf
LONG_READY = 3600.0
"""How long the initial pods have been ready, so that they do not count as new."""
BACK_OFF, MOST_BACK_OFF, RESET_AFTER = 10.0, 300.0, 600.0
"""Seconds before a second restart, doubled each time; the most; and the time without a restart that ends it."""
LOST_NODE_SECONDS = 300.0
"""How long pods tolerate a node that is not ready. The pods of a StatefulSet wait for it."""
ROLLOUT_SHARE = 0.25


class ContainerSize(NamedTuple):
    """The requests and limits of a container as they are in force. A limit of 0 is none."""

    name: str
    cpu: int
    memory: int
    cpu_limit: int
    memory_limit: int


@dataclass(slots=True)
class SimulatedNode:
    """A node. Pods of others take the `taken` part of it."""

    name: str
    cpu: int
    memory: int
    labels: dict[str, str] = field(default_factory=dict)
    taken: tuple[int, int] = (0, 0)
    is_ready: bool = True
    lost_at: float = NEVER


@dataclass(slots=True)
class Behaviour:
    """How pods and the kubelet behave. It may change at any moment."""

    start_seconds: float = 30.0
    """From the start of a pod's containers until it can be ready."""
    active_label: tuple[str, str] | None = None
    """The label of the only pods that become ready. Without it all pods do."""
    resize_seconds: float = 2.0
    """From the request of a resize until it is done."""
    resizes: str = "done"
    """What the kubelet does with resizes: `done`, `deferred`, `infeasible`, or `ignored`. A full node defers in any case."""


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod: its object in the API server, and what it does."""

    api: Pod
    published: Pod
    """The object as those who watch have seen it last."""
    size: tuple[ContainerSize, ...]
    """The size in force, which differs from the spec while a resize waits."""
    revision: int
    starts_at: float
    """When its containers run. In the future while it waits after a kill, and NEVER while it is Pending."""
    can_be_ready_at: float
    is_ready: bool = False
    ready_since: float = 0.0
    resize_at: float = NEVER
    waiting: tuple[str, str] | None = None
    """The condition of a resize that waits, and its reason."""
    waiting_since: float = 0.0
    killed_at: float = -NEVER
    back_off: float = 0.0
    due: float = NEVER
    """When time alone next changes the pod."""

    @property
    def name(self) -> str:
        return self.api.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.api.metadata.labels

    @property
    def node(self) -> str:
        return self.api.spec.node_name


class Workload:
    """A Deployment, StatefulSet or DaemonSet with its pods. Each change of a pod is told to `on_change`."""

    def __init__(  # noqa: PLR0913 - one parameter per assumption, all but two of them by name
        self,
        name: str,
        template: Mapping[str, Any],
        *,
        kind: str = "Deployment",
        namespace: str = "default",
        replicas: int = 1,
        nodes: tuple[SimulatedNode, ...] = (),
        behaviour: Behaviour | None = None,
        now: float = 0.0,
    ) -> None:
        """Begin with `replicas` pods of a pod template (as JSON) that have been ready for an hour."""
        self.name, self.namespace, self.kind = name, namespace, kind
        self.template, self.revision = copy.deepcopy(dict(template)), 1
        self.replicas = replicas
        self.nodes = {node.name: node for node in nodes}
        self.behaviour = behaviour or Behaviour()
        self.pods: list[SimulatedPod] = []
        self.version = 0
        """Counts the changes of pods and nodes."""
        self.admit: Callable[[Json], Json] = lambda raw: raw
        self.on_change: Callable[[Pod | None, Pod | None], None] = lambda _old, _new: None
        self.on_kill: Callable[[SimulatedPod, str], None] = lambda _pod, _reason: None
        self._ready: tuple[int, list[SimulatedPod]] = (-1, [])
        self._created = 0
        self.next_due = NEVER
        """When time alone next changes a pod."""
        begin = now - LONG_READY - self.behaviour.start_seconds
        self.settle(begin)
        self.advance(begin + self.behaviour.start_seconds)
        self.advance(now)

    @property
    def selector(self) -> dict[str, str]:
        """Return the labels of the template, which select the pods."""
        return dict((self.template.get("metadata") or {}).get("labels") or {})

    @property
    def ready(self) -> list[SimulatedPod]:
        version, pods = self._ready
        if version != self.version:
            pods = [pod for pod in self.pods if pod.is_ready]
            self._ready = self.version, pods
        return pods

    def pod(self, name: str) -> SimulatedPod | None:
        return next((pod for pod in self.pods if pod.name == name), None)

    def is_running(self, pod: SimulatedPod, now: float) -> bool:
        """Return whether the containers run and their node can be reached."""
        return pod.starts_at <= now and self._reaches(pod)

    def is_up(self, pod: SimulatedPod, now: float) -> bool:
        """Return whether the pod has started, ready or not."""
        return pod.can_be_ready_at <= now and self._reaches(pod)

    # What users, controllers and the API server do.

    def scale(self, replicas: int, now: float) -> None:
        self.replicas = replicas
        self.settle(now)

    def roll_out(self, template: Mapping[str, Any], now: float) -> None:
        """Replace all pods by pods of another template, a quarter at a time; those of a StatefulSet one at a time."""
        self.template, self.revision = copy.deepcopy(dict(template)), self.revision + 1
        self.settle(now)

    def label(self, pod: SimulatedPod, labels: Mapping[str, str | None], now: float) -> None:
        """Set labels of a pod, or remove those that are None."""
        self._write(pod, now, labels=_merged(pod.labels, labels))
        if self.behaviour.active_label is not None:
            self._refresh(pod, now)

    def annotate(self, pod: SimulatedPod, annotations: Mapping[str, str | None], now: float) -> None:
        """Set annotations of a pod, or remove those that are None."""
        self._write(pod, now, annotations=_merged(pod.api.metadata.annotations, annotations))

    def resize(self, pod: SimulatedPod, spec: PodSpec, now: float) -> None:
        """Store a spec with other resources. The kubelet follows after a while."""
        pod.resize_at = NEVER if self.behaviour.resizes == "ignored" else now + self.behaviour.resize_seconds
        generation = pod.api.metadata.generation + 1
        metadata = msgspec.structs.replace(pod.api.metadata, generation=generation)
        pod.api = msgspec.structs.replace(pod.api, metadata=metadata, spec=spec)
        self._refresh(pod, now)

    def delete(self, pod: SimulatedPod, now: float) -> None:
        """Delete a pod. Its controller replaces it at once."""
        self._remove(pod)
        self.settle(now)

    def kill(self, pod: SimulatedPod, now: float, container: str = "", reason: str = "Error") -> None:
        """Kill a container, by default the first. It restarts, from the second time on after a back-off."""
        is_repeated = now - pod.killed_at < RESET_AFTER
        pod.back_off = min(pod.back_off * 2 or BACK_OFF, MOST_BACK_OFF) if is_repeated else 0.0
        began, ended = moment_of(pod.starts_at), moment_of(now)
        pod.killed_at = now
        self._start(pod, now + pod.back_off)
        self._set_ready(pod, False, now)
        state = ContainerStateTerminated(exit_code=137, reason=reason, started_at=began, finished_at=ended)
        last = ContainerState(terminated=state)
        container = container or pod.size[0].name
        statuses = tuple(
            msgspec.structs.replace(status, last_state=last, restart_count=status.restart_count + 1)
            if status.name == container
            else status
            for status in pod.api.status.container_statuses
        )
        pod.api = _with_status(pod.api, container_statuses=statuses)
        self._refresh(pod, now)
        self.on_kill(pod, reason)

    def set_node(self, name: str, now: float, *, is_ready: bool) -> None:
        """Let a node be ready or not. Pods of one that is not ready are replaced after five minutes."""
        node = self.nodes[name]
        node.is_ready, node.lost_at = is_ready, NEVER if is_ready else now
        self.version += 1
        for pod in self.pods:
            if pod.node == name:
                self._refresh(pod, now)
        self._plan()

    def remove_node(self, name: str, now: float) -> None:
        del self.nodes[name]
        self.version += 1
        for pod in [pod for pod in self.pods if pod.node == name]:
            self._remove(pod)
        self.settle(now)

    def check_memory(self, used: Mapping[str, Used], now: float) -> None:
        """Kill containers above their memory limit. On a node that is short of memory, kill what exceeds its request most."""
        excess: dict[str, list[tuple[int, str]]] = {}
        for pod in list(self.pods):
            amounts = used.get(pod.name)
            if amounts is None:
                continue
            above = [
                size.name
                for size in pod.size
                if 0 < size.memory_limit < (amounts.get(size.name, (0, 0))[1] or 0)
            ]
            if above:
                self.kill(pod, now, above[0], "OOMKilled")
            elif pod.node:
                memory = sum(memory or 0 for _, memory in amounts.values())
                excess.setdefault(pod.node, []).append((memory - _total(pod.size)[1], pod.name))
        for name, entries in excess.items():
            node = self.nodes[name]
            in_use = sum(memory or 0 for _, pod in entries for _, memory in used[pod].values())
            if in_use > node.memory and (victim := self.pod(max(entries)[1])) is not None:
                self.kill(victim, now, "", "OOMKilled")

    # What the cluster does by itself.

    def advance(self, now: float) -> None:
        """Bring everything up to date that only waited for time to pass."""
        if now < self.next_due:
            return
        for pod in list(self.pods):
            if pod.due <= now:
                self._refresh(pod, now)
        if self.kind == "Deployment":
            lost = [node for node in self.nodes.values() if node.lost_at + LOST_NODE_SECONDS <= now]
            names = {node.name for node in lost}
            for node in lost:
                node.lost_at = NEVER
            for pod in [pod for pod in self.pods if pod.node in names]:
                self._remove(pod)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Create and delete pods as the controller does, and let the scheduler and the kubelet try again."""
        if self.kind == "DaemonSet":
            self.replicas = len(self.nodes)
        surge = self._roll(now)
        names = self._missing_names(self.replicas + surge - len(self.pods))
        for name, node in names:
            self._create(name, node, now)
        surplus = len(self.pods) - self.replicas - surge
        if surplus > 0:
            self._shrink(surplus)
        for pod in self.pods:
            if pod.starts_at == NEVER and self._place(pod, now):
                self._refresh(pod, now)
            elif pod.waiting is not None and pod.resize_at == NEVER:
                self._carry_out(pod, now)
        self._plan()

    def _roll(self, now: float) -> int:
        """Delete pods of an older template as far as others are available. Return how many pods may be too many."""
        old = [pod for pod in self.pods if pod.revision != self.revision]
        if not old:
            return 0
        if self.kind != "Deployment":
            if all(pod.can_be_ready_at <= now for pod in self.pods):
                self._remove(max(old, key=lambda pod: _ordinal(pod.name)))
            return 0
        surge = math.ceil(self.replicas * ROLLOUT_SHARE)
        spare = len(self.ready) - (self.replicas - int(self.replicas * ROLLOUT_SHARE))
        for pod in sorted(old, key=lambda pod: pod.is_ready):
            if pod.is_ready:
                if spare <= 0:
                    break
                spare -= 1
            self._remove(pod)
        return surge if any(pod.revision != self.revision for pod in self.pods) else 0

    def _shrink(self, surplus: int) -> None:
        """Delete pods like a controller: of a StatefulSet the last, else the old, the unready and then the youngest."""
        if self.kind == "StatefulSet":
            kept = sorted(self.pods, key=lambda pod: _ordinal(pod.name))
        else:
            kept = sorted(
                self.pods,
                key=lambda pod: (pod.revision != self.revision, not pod.is_ready, pod.can_be_ready_at),
            )
        for pod in kept[-surplus:]:
            self._remove(pod)

    def _missing_names(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield name and node of the pods to create."""
        if self.kind == "StatefulSet":
            present = {pod.name for pod in self.pods}
            names = (f"{self.name}-{index}" for index in range(self.replicas))
            yield from ((name, "") for name in names if name not in present)
        elif self.kind == "DaemonSet":
            served = {pod.node for pod in self.pods}
            yield from ((self._fresh_name(), name) for name in self.nodes if name not in served)
        else:
            yield from ((self._fresh_name(), "") for _ in range(count))

    def _fresh_name(self) -> str:
        self._created += 1
        return f"{self.name}-{self._created}"

    def _create(self, name: str, node: str, now: float) -> None:
        kind, controller = self.kind, self.name
        if kind == "Deployment":
            kind, controller = "ReplicaSet", f"{controller}-{self.revision}"
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": f"{kind}-{controller}"}
        raw = copy.deepcopy(self.template)
        metadata: Json = raw.setdefault("metadata", {})
        metadata |= {"name": name, "namespace": self.namespace}
        metadata["ownerReferences"] = [owner | {"controller": True}]
        pod = wire.convert(self.admit(raw), Pod)
        uid = f"{name}-{now:.3f}"
        meta = msgspec.structs.replace(pod.metadata, uid=uid, creation_timestamp=moment_of(now), generation=1)
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        pod = msgspec.structs.replace(pod, metadata=meta, spec=spec)
        pod = _with_status(pod, phase="Pending", qos_class=qos_class_of(spec))
        made = SimulatedPod(pod, pod, size_of(spec), self.revision, NEVER, NEVER, ready_since=now)
        self.pods.append(made)
        self.version += 1
        self.on_change(None, pod)
        self._place(made, now)
        self._refresh(made, now)

    def _remove(self, pod: SimulatedPod) -> None:
        self.pods.remove(pod)
        self.version += 1
        self.on_change(pod.api, None)

    def _place(self, pod: SimulatedPod, now: float) -> bool:
        """Bind a pod to the emptiest node that has room. Without nodes there is always room."""
        name = pod.node
        if self.nodes:
            candidates = [self.nodes[name]] if name else list(self.nodes.values())
            wanted = _total(pod.size)
            rooms = [(*self._free(node), node.name) for node in candidates if node.is_ready]
            fitting = [
                (memory, cpu, name) for cpu, memory, name in rooms if cpu >= wanted[0] and memory >= wanted[1]
            ]
            if not fitting:
                return False
            *_, name = max(fitting)
        self._start(pod, now)
        spec = msgspec.structs.replace(pod.api.spec, node_name=name)
        statuses = tuple(
            ContainerStatus(name=container.name, resources=container.resources)
            for container in spec.containers
        )
        pod.api = _with_status(
            msgspec.structs.replace(pod.api, spec=spec),
            phase="Running",
            start_time=moment_of(now),
            container_statuses=statuses,
        )
        return True

    def _free(self, node: SimulatedNode, but: SimulatedPod | None = None) -> tuple[int, int]:
        held = [_total(pod.size) for pod in self.pods if pod.node == node.name and pod is not but]
        return (
            node.cpu - node.taken[0] - sum(cpu for cpu, _ in held),
            node.memory - node.taken[1] - sum(memory for _, memory in held),
        )

    def _refresh(self, pod: SimulatedPod, now: float) -> None:
        """Let a pod start, become ready or resize, if it is time for that."""
        if pod.resize_at <= now:
            self._carry_out(pod, now)
        rule = self.behaviour.active_label
        is_active = rule is None or pod.labels.get(rule[0]) == rule[1]
        self._set_ready(pod, is_active and self.is_up(pod, now), now)
        self._write(pod, now)

    def _reaches(self, pod: SimulatedPod) -> bool:
        return not self.nodes or (pod.node in self.nodes and self.nodes[pod.node].is_ready)

    def _start(self, pod: SimulatedPod, at: float) -> None:
        pod.starts_at, pod.can_be_ready_at = at, at + self.behaviour.start_seconds

    def _set_ready(self, pod: SimulatedPod, is_ready: bool, now: float) -> None:
        if pod.is_ready != is_ready:
            pod.is_ready, pod.ready_since = is_ready, now

    def _carry_out(self, pod: SimulatedPod, now: float) -> None:
        """Resize a pod as its spec asks for, or say why that has to wait."""
        waiting = self._obstacle(pod)
        pod.resize_at = NEVER
        if waiting is None:
            pod.size = size_of(pod.api.spec)
            if any(_restarts(container) for container in pod.api.spec.containers):
                self._start(pod, now)
                self._set_ready(pod, False, now)
            resources = {container.name: container.resources for container in pod.api.spec.containers}
            statuses = tuple(
                msgspec.structs.replace(status, resources=resources[status.name])
                for status in pod.api.status.container_statuses
            )
            pod.api = _with_status(pod.api, container_statuses=statuses)
        if waiting != pod.waiting or waiting is None:
            pod.waiting, pod.waiting_since = waiting, now
            self._write(pod, now)

    def _obstacle(self, pod: SimulatedPod) -> tuple[str, str] | None:
        wanted = size_of(pod.api.spec)
        asked = self.behaviour.resizes
        if asked in ("deferred", "infeasible") and wanted != pod.size:
            return "PodResizePending", asked.capitalize()
        node = self.nodes.get(pod.node)
        if node is None:
            return None
        new, old, room = _total(wanted), _total(pod.size), self._free(node, pod)
        if new[0] > node.cpu or new[1] > node.memory:
            return "PodResizePending", "Infeasible"
        grows = [index for index in (0, 1) if new[index] > old[index]]
        return ("PodResizePending", "Deferred") if any(new[index] > room[index] for index in grows) else None

    def _plan(self) -> None:
        """Note when time alone next changes something."""
        lost = [node.lost_at + LOST_NODE_SECONDS for node in self.nodes.values() if self.kind == "Deployment"]
        self.next_due = min([*(pod.due for pod in self.pods), *lost], default=NEVER)

    def _write(self, pod: SimulatedPod, now: float, **changes: Any) -> None:
        """Store the pod with changes of its metadata as a new object of the API server, and tell those who watch."""
        self.version += 1
        moments = (pod.resize_at, pod.starts_at, pod.can_be_ready_at)
        pod.due = min((moment for moment in moments if moment > now), default=NEVER)
        self.next_due = min(self.next_due, pod.due)
        metadata = msgspec.structs.replace(pod.api.metadata, resource_version=str(self.version), **changes)
        pod.api = _with_status(
            msgspec.structs.replace(pod.api, metadata=metadata),
            conditions=tuple(_conditions(pod)),
            container_statuses=tuple(
                msgspec.structs.replace(status, ready=pod.is_ready, state=_state(pod, now))
                for status in pod.api.status.container_statuses
            ),
        )
        before, pod.published = pod.published, pod.api
        self.on_change(before, pod.api)


def _conditions(pod: SimulatedPod) -> Iterator[PodCondition]:
    yield PodCondition(
        type="Ready", status=str(pod.is_ready), last_transition_time=moment_of(pod.ready_since)
    )
    if pod.waiting is not None:
        kind, reason = pod.waiting
        yield PodCondition(
            type=kind,
            status="True",
            reason=reason,
            message="the node has no room" if reason == "Deferred" else "the node is too small",
            last_transition_time=moment_of(pod.waiting_since),
            observed_generation=pod.api.metadata.generation,
        )


def _state(pod: SimulatedPod, now: float) -> ContainerState:
    if pod.starts_at > now:
        return ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    return ContainerState(running=ContainerStateRunning(started_at=moment_of(pod.starts_at)))


def _merged(present: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**present, **changes}.items() if value is not None}


def _with_status(pod: Pod, **changes: Any) -> Pod:
    status: PodStatus = msgspec.structs.replace(pod.status, **changes)
    return msgspec.structs.replace(pod, status=status)


def _restarts(container: ContainerSpec) -> bool:
    return any(policy.restart_policy == "RestartContainer" for policy in container.resize_policy)


def _ordinal(name: str) -> int:
    return int(name.rpartition("-")[2])


def _total(size: tuple[ContainerSize, ...]) -> tuple[int, int]:
    return sum(container.cpu for container in size), sum(container.memory for container in size)


def size_of(spec: PodSpec) -> tuple[ContainerSize, ...]:
    """Return the requests and limits of a pod's containers. A request is at least its limit if only that is given."""
    found = []
    for container in spec.containers:
        limits = container.resources.limits
        amounts = []
        for given in ({**limits, **container.resources.requests}, limits):
            amounts.append(given[CPU].milli_value() if CPU in given else 0)
            amounts.append(given[MEMORY].value() if MEMORY in given else 0)
        found.append(ContainerSize(container.name, *amounts))
    return tuple(found)


def qos_class_of(spec: PodSpec) -> str:
    """Return the QoS class that the API server gives to a pod."""
    resources = [container.resources for container in spec.containers]
    if not any(given.requests or given.limits for given in resources):
        return "BestEffort"
    is_guaranteed = all(
        name in given.limits and given.requests.get(name, given.limits[name]) == given.limits[name]
        for given in resources
        for name in (CPU, MEMORY)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


@lru_cache(maxsize=4096)
def moment_of(now: float) -> datetime:
    """Return a time as the API has it, in whole seconds."""
    return datetime.fromtimestamp(int(now), UTC)
