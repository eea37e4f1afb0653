"""Elects a leader among the pods of a workload and shows it in a label.

It replaces the election that real programs hold among themselves. `load.usage` gives the leader its share of the load.
"""

from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.resource import Json
from trimtab.model.times import format_micro_time
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import is_active, is_ready
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import Election
from trimtab_lab.load.usage import workload_of
from trimtab_lab.nodes.caches import Caches

LEASE_SECONDS = 15


class LeaderElections:
    """Keeps one leader in each workload that has an `election` in the load plan."""

    def __init__(self, caches: Caches, load: Load) -> None:
        self._clock = caches.clock
        self._pods = caches.pods
        self._leases = caches.leases
        self._load = load
        self._leaders: dict[Key, tuple[str, float]] = {}
        self.queue = WorkQueue("elections", caches.clock, self.reconcile)
        self._pods.subscribe(self._on_pod_event)

    def elect(self, namespace: str, workload: str, pod: str) -> None:
        """Make a pod the leader if it is ready."""
        self._leaders[namespace, workload] = (pod, self._clock.monotonic())
        self.queue.add((namespace, workload))

    def leader(self, namespace: str, workload: str) -> str:
        """Return the name of the leading pod, or an empty text."""
        return self._leaders.get((namespace, workload), ("", 0.0))[0]

    def _on_pod_event(self, delta: Delta[LabPod]) -> None:
        if delta.change is not CacheEvent.SYNCED:
            target = workload_of(delta.object)
            if target in self._leaders or self._load.election(target) is not None:
                self.queue.add(target)

    async def reconcile(self, key: Key) -> None:
        """Elect a leader if there is none or its term is over, and update labels and lease."""
        election = self._load.election(key)
        if election is None:
            self._leaders.pop(key, None)
            return
        pods = [pod for pod in self._pods.all(key[0]) if workload_of(pod) == key and is_active(pod)]
        leader = self._choose(key, election, pods)
        # The old leader loses its label first, so that there are never two.
        for pod in sorted(pods, key=lambda pod: pod.metadata.name == leader):
            role = election.leader if pod.metadata.name == leader else election.follower
            if pod.metadata.labels.get(election.label) != role:
                await self._pods.patch(pod, {"metadata": {"labels": {election.label: role}}})
        if election.lease and leader:
            await self._write_lease(key[0], election.lease, leader)

    def _choose(self, key: Key, election: Election, pods: list[LabPod]) -> str:
        now = self._clock.monotonic()
        ready = [pod.metadata.name for pod in pods if is_ready(pod)]
        leader, since = self._leaders.get(key, (_labelled_leader(election, pods), now))
        is_over = bool(election.every) and now - since >= election.every
        if leader not in ready or is_over:
            leader, since = _next_leader(leader, ready), now
        self._leaders[key] = (leader, since)
        if election.every:
            # At least a millisecond: a term that ends a rounding error from now would be asked for without end.
            self.queue.add_after(key, max(since + election.every - now, 0.001), is_deadline=True)
        return leader

    async def _write_lease(self, namespace: str, name: str, leader: str) -> None:
        lease = self._leases.get(name, namespace)
        if lease is not None and lease.spec.holder_identity == leader:
            return
        now = format_micro_time(self._clock.now())
        spec: Json = {
            "holderIdentity": leader,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": lease.spec.lease_transitions + 1 if lease is not None else 0,
        }
        if lease is not None:
            await self._leases.patch(lease, {"spec": spec})
            return
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        await self._leases.create({**kind, "metadata": {"name": name}, "spec": spec}, namespace)


def _labelled_leader(election: Election, pods: list[LabPod]) -> str:
    labelled = (pod for pod in pods if pod.metadata.labels.get(election.label) == election.leader)
    return next((pod.metadata.name for pod in labelled), "")


def _next_leader(leader: str, ready: list[str]) -> str:
    """Return the next ready pod by name, starting over after the last."""
    return next((name for name in ready if name > leader), ready[0] if ready else "")
