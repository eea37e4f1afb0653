"""The DaemonSet controller: one pod on each node that may run it."""

from collections.abc import Collection

from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.model.core.objects import Node
from trimtab.model.json import wire
from trimtab_lab.controllers.base.caches import Caches
from trimtab_lab.controllers.base.kinds import (
    DAEMON_SETS,
    LabPod,
    LabPodSpec,
    LabWorkload,
    owner_reference,
    scaled_value,
)
from trimtab_lab.controllers.base.placement import node_mismatch
from trimtab_lab.controllers.base.pods import (
    REVISION_HASH_LABEL,
    count_available,
    is_active,
    is_ready,
    is_terminating,
    new_pod,
    next_available_in,
    seconds_until_available,
)
from trimtab_lab.controllers.base.status_writer import StatusPatcher
from trimtab_lab.controllers.base.work_queue import WorkQueue
from trimtab_lab.controllers.base.write_through_cache import Key, key_of
from trimtab_lab.controllers.revisions import RevisionHistory, pod_revision

#: What DaemonSet pods tolerate, so that they run on nodes which other pods must leave.
TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": effect}
    for taint, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


class DaemonSetController:
    """Keeps one pod per matching node. With `maxSurge` it replaces one pod at a time."""

    def __init__(self, caches: Caches) -> None:
        self._clock = caches.clock
        self._daemon_sets = caches.daemon_sets
        self._pods = caches.pods
        self._nodes = caches.nodes
        self._history = RevisionHistory(caches, DAEMON_SETS)
        self._statuses = StatusPatcher(caches.daemon_sets)
        self.queue = WorkQueue("daemonsets", caches.clock, self.reconcile)
        self._daemon_sets.subscribe(self.queue.add_object)
        self._pods.subscribe(self.queue.controller_handler("DaemonSet"))
        self._nodes.subscribe(self._on_node_event)

    def _on_node_event(self, _delta: Delta[Node]) -> None:
        for daemon_set in self._daemon_sets.all():
            self.queue.add(key_of(daemon_set))

    async def reconcile(self, key: Key) -> None:
        """Create, delete and update the pods of one DaemonSet, and write its status."""
        namespace, name = key
        daemon_set = self._daemon_sets.get(name, namespace)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return
        current = await self._history.current(daemon_set)
        revision = current.metadata.labels.get(REVISION_HASH_LABEL, "")
        spec = _pod_spec(daemon_set)
        nodes = [node.metadata.name for node in self._nodes.all() if not node_mismatch(spec, node)]
        await self._manage_pods(daemon_set, nodes, revision)
        await self._rolling_update(daemon_set, nodes, revision)
        await self._statuses.write(daemon_set, self._status(daemon_set, nodes, revision))
        pods = self._pods.owned(daemon_set.metadata.uid)
        wait = next_available_in(pods, daemon_set.spec.min_ready_seconds, self._clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _pods_by_node(self, daemon_set: LabWorkload) -> dict[str, list[LabPod]]:
        by_node: dict[str, list[LabPod]] = {}
        for pod in self._pods.owned(daemon_set.metadata.uid):
            by_node.setdefault(assigned_node(pod), []).append(pod)
        return by_node

    async def _manage_pods(self, daemon_set: LabWorkload, nodes: Collection[str], revision: str) -> None:
        """Delete finished and surplus pods, and create the missing ones."""
        now, by_node = self._clock.now(), self._pods_by_node(daemon_set)
        for node, pods in by_node.items():
            finished = [pod for pod in pods if pod.is_finished and not is_terminating(pod)]
            surplus = [pod for pod in pods if is_active(pod)][1 if node in nodes else 0 :]
            for pod in (*finished, *surplus):
                await self._pods.delete(pod, now)
        for node in nodes:
            if not by_node.get(node):
                body = _new_pod(daemon_set, node, revision)
                await self._pods.create(body, daemon_set.metadata.namespace)

    async def _rolling_update(self, daemon_set: LabWorkload, nodes: Collection[str], revision: str) -> None:
        """Delete pods of older revisions. Unavailable pods do not count against `maxUnavailable`."""
        strategy = daemon_set.spec.update_strategy
        if strategy.type != "RollingUpdate":
            return
        now, by_node = self._clock.now(), self._pods_by_node(daemon_set)
        pods = [pod for node in nodes for pod in by_node.get(node, ()) if is_active(pod)]
        min_ready = daemon_set.spec.min_ready_seconds
        available = [pod for pod in pods if seconds_until_available(pod, min_ready, now) == 0.0]
        limit = strategy.rolling_update.max_unavailable
        budget = max(scaled_value(limit, len(nodes), rounds_up=True), 1) - (len(nodes) - len(available))
        for pod in pods:
            if pod_revision(pod) == revision:
                continue
            if pod not in available:
                await self._pods.delete(pod, now)
            elif budget > 0:
                budget -= 1
                await self._pods.delete(pod, now)

    def _status(self, daemon_set: LabWorkload, nodes: Collection[str], revision: str) -> Json:
        by_node = self._pods_by_node(daemon_set)
        active = {node: [pod for pod in pods if is_active(pod)] for node, pods in by_node.items()}
        scheduled = [active[node][0] for node in nodes if active.get(node)]
        available = count_available(scheduled, daemon_set.spec.min_ready_seconds, self._clock.now())
        return {
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(scheduled),
            "numberMisscheduled": sum(node not in nodes for node in by_node),
            "numberReady": sum(map(is_ready, scheduled)),
            "numberAvailable": available or None,
            "numberUnavailable": len(nodes) - available or None,
            "updatedNumberScheduled": sum(pod_revision(pod) == revision for pod in scheduled) or None,
            "observedGeneration": daemon_set.metadata.generation,
        }


def assigned_node(pod: LabPod) -> str:
    """Return the node of a DaemonSet pod, also before it is scheduled."""
    if pod.spec.node_name or pod.spec.affinity is None:
        return pod.spec.node_name
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in terms.node_selector_terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""


def _pod_spec(daemon_set: LabWorkload) -> LabPodSpec:
    spec = dict(daemon_set.spec.template.get("spec") or {})
    return wire.convert({**spec, "tolerations": [*(spec.get("tolerations") or ()), *TOLERATIONS]}, LabPodSpec)


def _new_pod(daemon_set: LabWorkload, node: str, revision: str) -> Json:
    owner = owner_reference(DAEMON_SETS, daemon_set.metadata)
    pod = new_pod(daemon_set.spec.template, owner, labels={REVISION_HASH_LABEL: revision})
    spec: Json = pod["spec"]
    given = spec.get("tolerations") or []
    spec["tolerations"] = [*given, *(toleration for toleration in TOLERATIONS if toleration not in given)]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    on_node = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    # The scheduler binds these pods, too. Each term of the affinity must name the node.
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": on_node} for term in terms]
    return pod
