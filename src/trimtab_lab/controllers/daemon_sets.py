"""The DaemonSet controller: one pod on each node that may run it."""

from collections.abc import Collection, Mapping, Sequence

from trimtab.clock import Clock
from trimtab.cluster.resource import Json
from trimtab.model.json import wire
from trimtab_lab.controllers.controller import Controller, Lag
from trimtab_lab.controllers.kinds import (
    DAEMON_SETS,
    NODES,
    PODS,
    LabPod,
    LabPodSpec,
    LabWorkload,
    owner_reference,
    scaled_value,
)
from trimtab_lab.controllers.objects import Key, Objects
from trimtab_lab.controllers.pods import (
    REVISION_HASH_LABEL,
    count_available,
    is_active,
    is_ready,
    is_terminating,
    new_pod,
    next_available_in,
    seconds_until_available,
)
from trimtab_lab.controllers.revisions import RevisionHistory, pod_revision
from trimtab_lab.nodes.scheduler import node_mismatch
from trimtab_lab.storage.store import WatchCacheEvent

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


class DaemonSetController(Controller):
    """Keeps one pod per matching node. With `maxSurge` it replaces one pod at a time."""

    def __init__(self, objects: Objects, clock: Clock, lag: Lag) -> None:
        super().__init__(DAEMON_SETS, objects, clock, lag)
        self._history = RevisionHistory(objects, DAEMON_SETS)

    def on_other(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue all DaemonSets when a node changes."""
        if storage == "nodes":
            for daemon_set in self.objects.all(DAEMON_SETS):
                self.enqueue((daemon_set.metadata.namespace, daemon_set.metadata.name))

    async def reconcile(self, key: Key) -> None:
        """Create, delete and update the pods of one DaemonSet, and write its status."""
        while True:
            daemon_set = self.objects.get(DAEMON_SETS, key)
            if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
                return
            current = await self._history.current(daemon_set)
            revision = current.metadata.labels.get(REVISION_HASH_LABEL, "")
            spec = _pod_spec(daemon_set)
            nodes = [node.metadata.name for node in self.objects.all(NODES) if not node_mismatch(spec, node)]
            if not await self._step(daemon_set, nodes, revision):
                break
        await self.objects.write_status(DAEMON_SETS, daemon_set, self._status(daemon_set, nodes, revision))
        pods = self.objects.owned(PODS, daemon_set.metadata.uid)
        wait = next_available_in(pods, daemon_set.spec.min_ready_seconds, self.clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _pods_by_node(self, daemon_set: LabWorkload) -> dict[str, list[LabPod]]:
        by_node: dict[str, list[LabPod]] = {}
        for pod in self.objects.owned(PODS, daemon_set.metadata.uid):
            by_node.setdefault(assigned_node(pod), []).append(pod)
        return by_node

    async def _step(self, daemon_set: LabWorkload, nodes: Sequence[str], revision: str) -> bool:
        """Create or delete one pod, and return whether that was needed. A webhook may take time over each."""
        by_node = self._pods_by_node(daemon_set)
        pod = self._surplus(by_node, nodes) or self._outdated(daemon_set, by_node, nodes, revision)
        if pod is not None:
            await self.objects.delete(PODS, pod)
            return True
        missing = next((node for node in nodes if not by_node.get(node)), None)
        if missing is not None:
            body = _new_pod(daemon_set, missing, revision)
            await self.objects.create(PODS, body, daemon_set.metadata.namespace)
        return missing is not None

    def _surplus(self, by_node: Mapping[str, list[LabPod]], nodes: Sequence[str]) -> LabPod | None:
        """Return a pod that has finished or should not be on its node."""
        for node, pods in by_node.items():
            finished = [pod for pod in pods if pod.is_finished and not is_terminating(pod)]
            surplus = [pod for pod in pods if is_active(pod)][1 if node in nodes else 0 :]
            if finished or surplus:
                return (finished or surplus)[0]
        return None

    def _outdated(
        self,
        daemon_set: LabWorkload,
        by_node: Mapping[str, list[LabPod]],
        nodes: Sequence[str],
        revision: str,
    ) -> LabPod | None:
        """Return a pod of an older revision. Unavailable pods do not count against `maxUnavailable`."""
        strategy = daemon_set.spec.update_strategy
        if strategy.type != "RollingUpdate":
            return None
        min_ready, now = daemon_set.spec.min_ready_seconds, self.clock.now()
        pods = [pod for node in nodes for pod in by_node.get(node, ()) if is_active(pod)]
        available = [pod for pod in pods if seconds_until_available(pod, min_ready, now) == 0.0]
        old = [pod for pod in pods if pod_revision(pod) != revision]
        limit = strategy.rolling_update.max_unavailable
        budget = max(scaled_value(limit, len(nodes), rounds_up=True), 1) - (len(nodes) - len(available))
        unavailable = [pod for pod in old if pod not in available]
        return next(iter(unavailable or (old if budget > 0 else ())), None)

    def _status(self, daemon_set: LabWorkload, nodes: Collection[str], revision: str) -> Json:
        by_node = self._pods_by_node(daemon_set)
        active = {node: [pod for pod in pods if is_active(pod)] for node, pods in by_node.items()}
        scheduled = [active[node][0] for node in nodes if active.get(node)]
        available = count_available(scheduled, daemon_set.spec.min_ready_seconds, self.clock.now())
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
