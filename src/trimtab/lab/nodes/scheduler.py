"""A small scheduler: each pod goes to the first node, by name, that it may run on and that has room."""

from collections import Counter

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.store import KeyIndex
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.transport.transport import Request
from trimtab.lab.controllers.base.kinds import PODS, RunNode, RunPod
from trimtab.lab.controllers.base.placement import mismatch
from trimtab.lab.controllers.base.pods import is_active
from trimtab.lab.controllers.base.status_writer import condition
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.nodes.capacity import allocatable, requests_of, used_by
from trimtab.model.json import wire

NO_ROOM = {"cpu": "Insufficient cpu", "memory": "Insufficient memory", "pods": "Too many pods"}


class Scheduler:
    """Binds pods that have no node."""

    def __init__(
        self, clock: Clock, pods: WriteThroughCache[RunPod], nodes: WriteThroughCache[RunNode]
    ) -> None:
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._by_node: KeyIndex[RunPod, str] = KeyIndex(
            lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ()
        )
        self._waiting: dict[Key, None] = {}
        self.queue = WorkQueue("scheduling", clock, self.reconcile)
        pods.informer.add_index(self._by_node)
        pods.subscribe(self._pod_changed)
        nodes.subscribe(self._node_changed)

    def pods_on(self, node: str) -> list[RunPod]:
        """Return the pods that are bound to a node, bindings of this moment included."""
        return self._pods.indexed(self._by_node, node, lambda pod: pod.spec.node_name == node)

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        if delta.change is CacheEvent.SYNCED:
            return
        pod = delta.object
        key = (pod.metadata.namespace, pod.metadata.name)
        if delta.new is not None and not pod.spec.node_name:
            self.queue.add(key)
        elif delta.new is None or pod.is_finished:
            self._waiting.pop(key, None)
            self._try_again()

    def _node_changed(self, _delta: Delta[RunNode]) -> None:
        self._try_again()

    def _try_again(self) -> None:
        for key in self._waiting:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        """Bind one pod, or say why it cannot be bound."""
        namespace, name = key
        pod = self._pods.get(name, namespace)
        if pod is None or pod.spec.node_name or not is_active(pod) or pod.spec.scheduling_gates:
            self._waiting.pop(key, None)
            return
        why_not: Counter[str] = Counter()
        for node in self._nodes.all():
            reasons = self._obstacles(pod, node)
            if not reasons:
                await self._bind(pod, node.metadata.name)
                self._waiting.pop(key, None)
                return
            why_not.update(reasons)
        self._waiting[key] = None
        await self._refuse(pod, why_not)

    def _obstacles(self, pod: RunPod, node: RunNode) -> list[str]:
        why = mismatch(pod.spec, node)
        if why:
            return [why]
        lacking = allocatable(node).lacks(used_by(self.pods_on(node.metadata.name)), requests_of(pod))
        return [NO_ROOM[name] for name in lacking]

    async def _bind(self, pod: RunPod, node: str) -> None:
        meta = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = PODS.path(meta.namespace, meta.name, "binding")
        request = Request("POST", path, (), {"Content-Type": "application/json"}, wire.encode(body))
        await self._pods.client.sender.send(f"binding pods {meta.key} to {node}", request)
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self._pods.assume(msgspec.structs.replace(pod, spec=spec), lambda cached: bool(cached.spec.node_name))

    async def _refuse(self, pod: RunPod, why_not: Counter[str]) -> None:
        total = len(self._nodes.all())
        listed = ", ".join(f"{count} {why}" for why, count in sorted(why_not.items())) or "no nodes"
        message = f"0/{total} nodes are available: {listed}."
        known = pod.status.condition("PodScheduled")
        if known is not None and known.message == message:
            return
        scheduled = condition(
            pod.status.conditions,
            "PodScheduled",
            holds=False,
            reason="Unschedulable",
            message=message,
            now=self._clock.now(),
        )
        try:
            await self._pods.patch(pod, {"status": {"conditions": [scheduled]}}, subresource="status")
        except errors.NotFound:
            return
