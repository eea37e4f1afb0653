"""A small scheduler: binds each pod to the emptiest node that it fits on."""

from collections import Counter
from contextlib import suppress

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.transport.transport import Request
from trimtab.model.core.objects import Node
from trimtab.model.json import wire
from trimtab_lab.controllers.kinds import PODS, LabPod
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import condition, is_active
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.nodes.caches import Caches
from trimtab_lab.nodes.capacity import node_allocatable, pod_requests, total_requests
from trimtab_lab.nodes.placement import node_mismatch
from trimtab_lab.nodes.write_through_cache import key_of

_INSUFFICIENT = {"cpu": "Insufficient cpu", "memory": "Insufficient memory", "pods": "Too many pods"}


class Scheduler:
    """Binds pods that have no node."""

    def __init__(self, caches: Caches) -> None:
        self._clock = caches.clock
        self._caches = caches
        self._unschedulable: dict[Key, None] = {}
        self.queue = WorkQueue("scheduling", caches.clock, self.reconcile)
        caches.pods.subscribe(self._on_pod_event)
        caches.nodes.subscribe(self._on_node_event)

    def _on_pod_event(self, delta: Delta[LabPod]) -> None:
        if delta.change is CacheEvent.SYNCED:
            return
        pod = delta.object
        if delta.new is not None and not pod.spec.node_name:
            self.queue.add(key_of(pod))
        elif delta.new is None or pod.is_finished:
            self._unschedulable.pop(key_of(pod), None)
            self._retry_unschedulable()

    def _on_node_event(self, _delta: Delta[Node]) -> None:
        self._retry_unschedulable()

    def _retry_unschedulable(self) -> None:
        for key in self._unschedulable:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        """Bind one pod, or write the reason why it is unschedulable."""
        namespace, name = key
        pod = self._caches.pods.get(name, namespace)
        if pod is None or pod.spec.node_name or not is_active(pod) or pod.spec.scheduling_gates:
            self._unschedulable.pop(key, None)
            return
        reasons: Counter[str] = Counter()
        fitting: list[tuple[float, int, str]] = []
        for node in self._caches.nodes.all():
            if mismatch := node_mismatch(pod.spec, node):
                reasons[mismatch] += 1
                continue
            allocatable = node_allocatable(node)
            used = total_requests(self._caches.pods_on(node.metadata.name))
            insufficient = allocatable.insufficient(used, pod_requests(pod))
            reasons.update(_INSUFFICIENT[name] for name in insufficient)
            if not insufficient:
                fitting.append((used.share_of(allocatable), used.pods, node.metadata.name))
        if fitting:
            await self._bind(pod, min(fitting)[2])
            self._unschedulable.pop(key, None)
            return
        self._unschedulable[key] = None
        await self._write_unschedulable(pod, reasons)

    async def _bind(self, pod: LabPod, node: str) -> None:
        meta = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = PODS.path(meta.namespace, meta.name, "binding")
        request = Request("POST", path, (), {"Content-Type": "application/json"}, wire.encode(body))
        await self._caches.client.sender.send(f"binding pods {meta.key} to {node}", request)
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        self._caches.pods.assume(bound, lambda cached: bool(cached.spec.node_name))

    async def _write_unschedulable(self, pod: LabPod, reasons: Counter[str]) -> None:
        total = len(self._caches.nodes.all())
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "no nodes"
        message = f"0/{total} nodes are available: {listed}."
        before = pod.status.condition("PodScheduled")
        if before is not None and before.message == message:
            return
        scheduled = condition(
            pod.status.conditions,
            "PodScheduled",
            holds=False,
            reason="Unschedulable",
            message=message,
            now=self._clock.now(),
        )
        with suppress(errors.NotFound):
            await self._caches.pods.patch(pod, {"status": {"conditions": [scheduled]}}, subresource="status")
