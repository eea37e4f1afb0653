"""DaemonSets: one pod on each node that may run it."""

from trimtab.clock import Clock
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base import pods as podstate
from trimtab.lab.controllers.base.kinds import (
    DAEMON_SETS,
    ControllerRevision,
    PodSet,
    RunNode,
    RunPod,
    RunSpec,
    owner_reference,
)
from trimtab.lab.controllers.base.placement import mismatch
from trimtab.lab.controllers.base.pods import REVISION_HASH_LABEL, new_pod
from trimtab.lab.controllers.base.status_writer import StatusPatcher
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.controllers.revisions import Revisions
from trimtab.lab.controllers.rollout import resolve
from trimtab.lab.controllers.stateful_sets import revision_of
from trimtab.model.json import wire

#: What daemons put up with, so that they run on nodes that others must leave.
TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": effect}
    for trouble, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


class DaemonSetController:
    """Keeps one pod per matching node; surge is treated as unavailability of one."""

    def __init__(
        self,
        clock: Clock,
        sets: WriteThroughCache[PodSet],
        revisions: WriteThroughCache[ControllerRevision],
        pods: WriteThroughCache[RunPod],
        nodes: WriteThroughCache[RunNode],
    ) -> None:
        self._clock = clock
        self._sets = sets
        self._pods = pods
        self._nodes = nodes
        self._revisions = Revisions(clock, revisions, DAEMON_SETS)
        self._statuses = StatusPatcher(sets)
        self.queue = WorkQueue("daemonsets", clock, self.reconcile)
        sets.subscribe(self._changed)
        pods.subscribe(self._pod_changed)
        nodes.subscribe(self._node_changed)

    def _changed(self, delta: Delta[PodSet]) -> None:
        if delta.new is not None:
            self.queue.add((delta.new.metadata.namespace, delta.new.metadata.name))

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        for pod in filter(None, (delta.old, delta.new)):
            for owner in pod.metadata.owner_references:
                if owner.controller and owner.kind == "DaemonSet":
                    self.queue.add((pod.metadata.namespace, owner.name))

    def _node_changed(self, _delta: Delta[RunNode]) -> None:
        for one in self._sets.all():
            self.queue.add((one.metadata.namespace, one.metadata.name))

    async def reconcile(self, key: Key) -> None:
        """Make and delete pods so that each matching node has one, and renew the old ones."""
        namespace, name = key
        one = self._sets.get(name, namespace)
        if one is None or one.metadata.deletion_timestamp is not None:
            return
        revision = await self._revisions.current(one)
        nodes = [node.metadata.name for node in self._nodes.all() if not mismatch(daemon_spec(one), node)]
        await self._place(one, nodes, revision)
        await self._renew(one, nodes, _hash(revision))
        await self._statuses.write(one, self._status(one, nodes, _hash(revision)))
        pods = [pod for pods in self._by_node(one).values() for pod in pods]
        wait = podstate.next_available(pods, one.spec.min_ready_seconds, self._clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _by_node(self, one: PodSet) -> dict[str, list[RunPod]]:
        found: dict[str, list[RunPod]] = {}
        for pod in self._pods.owned(one.metadata.uid):
            found.setdefault(node_of(pod), []).append(pod)
        return found

    async def _place(self, one: PodSet, nodes: list[str], revision: ControllerRevision) -> None:
        now, placed = self._clock.now(), self._by_node(one)
        for node, pods in placed.items():
            living = [pod for pod in pods if not podstate.is_going(pod)]
            ended = [pod for pod in living if pod.is_finished]
            spare = [pod for pod in living if not pod.is_finished][1 if node in nodes else 0 :]
            for pod in (*ended, *spare):
                await self._pods.delete(pod, now)
        for node in nodes:
            if not placed.get(node):
                await self._pods.create(_new_daemon(one, node, _hash(revision)), one.metadata.namespace)

    async def _renew(self, one: PodSet, nodes: list[str], revision: str) -> None:
        """Delete pods of old templates, as many as may be unavailable at once; broken ones do not count."""
        if one.spec.update_strategy.type != "RollingUpdate":
            return
        value = one.spec.update_strategy.rolling_update.max_unavailable
        budget = max(resolve(value, len(nodes), rounds_up=True), 1)
        placed = self._by_node(one)
        now = self._clock.now()
        pods = [pod for node in nodes for pod in placed.get(node, ()) if podstate.is_active(pod)]
        available = [
            pod for pod in pods if podstate.until_available(pod, one.spec.min_ready_seconds, now) == 0.0
        ]
        budget -= len(nodes) - len(available)
        for pod in pods:
            if revision_of(pod) == revision:
                continue
            if pod not in available:
                await self._pods.delete(pod, now)
            elif budget > 0:
                budget -= 1
                await self._pods.delete(pod, now)

    def _status(self, one: PodSet, nodes: list[str], revision: str) -> Json:
        placed = self._by_node(one)
        first = [
            pod
            for node in nodes
            if (pod := next((p for p in placed.get(node, ()) if podstate.is_active(p)), None)) is not None
        ]
        available = podstate.count_available(first, one.spec.min_ready_seconds, self._clock.now())
        return {
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(first),
            "numberMisscheduled": sum(node not in nodes for node in placed),
            "numberReady": sum(map(podstate.is_ready, first)),
            "numberAvailable": available or None,
            "numberUnavailable": len(nodes) - available or None,
            "updatedNumberScheduled": sum(revision_of(pod) == revision for pod in first) or None,
            "observedGeneration": one.metadata.generation,
        }


def node_of(pod: RunPod) -> str:
    """Return the node that a daemon is on, or is made for."""
    if pod.spec.node_name or pod.spec.affinity is None:
        return pod.spec.node_name
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    for term in terms.node_selector_terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""


def daemon_spec(one: PodSet) -> RunSpec:
    """Return the spec of the template with what daemons tolerate."""
    spec = dict(one.spec.template.get("spec") or {})
    return wire.convert({**spec, "tolerations": [*(spec.get("tolerations") or ()), *TOLERATIONS]}, RunSpec)


def _new_daemon(one: PodSet, node: str, revision: str) -> Json:
    owner = owner_reference(DAEMON_SETS, one.metadata)
    pod = new_pod(one.spec.template, owner, labels={REVISION_HASH_LABEL: revision})
    spec: Json = pod["spec"]
    given = spec.get("tolerations") or []
    spec["tolerations"] = [*given, *(one for one in TOLERATIONS if one not in given)]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    here = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    # The scheduler places daemons too; each asks for its node by name, in every alternative it has.
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": here} for term in terms]
    return pod


def _hash(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(REVISION_HASH_LABEL, "")
