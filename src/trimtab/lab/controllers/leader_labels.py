"""Leaders of workloads: one ready pod carries the leader's label, and gives it up when its time is over.

Stands in for the election that such programs hold among themselves; `load.sharing` gives the leader its share.
"""

from trimtab.clock import Clock
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import RunPod
from trimtab.lab.controllers.base.pods import is_active, is_ready
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.load.load import Load
from trimtab.lab.load.plan import Election
from trimtab.lab.load.pods import workload_of
from trimtab.model.core.objects import Lease
from trimtab.model.times import format_micro_time

LEASE_SECONDS = 15


class Elections:
    """Keeps one leader in each workload whose load asks for one."""

    def __init__(
        self, clock: Clock, pods: WriteThroughCache[RunPod], leases: WriteThroughCache[Lease], load: Load
    ) -> None:
        self._clock = clock
        self._pods = pods
        self._leases = leases
        self._load = load
        self._leading: dict[Key, tuple[str, float]] = {}
        self.queue = WorkQueue("elections", clock, self.reconcile)
        pods.subscribe(self._pod_changed)

    def elect(self, namespace: str, workload: str, pod: str) -> None:
        """Make a pod the leader from now on, as far as it is ready."""
        self._leading[namespace, workload] = (pod, self._clock.monotonic())
        self.queue.add((namespace, workload))

    def leader(self, namespace: str, workload: str) -> str:
        """Return the name of the pod that leads; empty if none does."""
        return self._leading.get((namespace, workload), ("", 0.0))[0]

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        if delta.change is not CacheEvent.SYNCED:
            target = workload_of(delta.object)
            if self._load.election_of(target) is not None:
                self.queue.add(target)

    async def reconcile(self, key: Key) -> None:
        """Choose a leader if there is none or its time is over, and show who it is."""
        election = self._load.election_of(key)
        if election is None:
            return
        pods = [pod for pod in self._pods.all(key[0]) if workload_of(pod) == key and is_active(pod)]
        leader = self._choose(key, election, pods)
        # The old leader steps down before the new one steps up: there are never two.
        for pod in sorted(pods, key=lambda pod: pod.metadata.name == leader):
            role = election.leader if pod.metadata.name == leader else election.follower
            if pod.metadata.labels.get(election.label) != role:
                await self._pods.patch(pod, {"metadata": {"labels": {election.label: role}}})
        if election.lease and leader:
            await self._hold(key[0], election.lease, leader)

    def _choose(self, key: Key, election: Election, pods: list[RunPod]) -> str:
        now = self._clock.monotonic()
        ready = [pod.metadata.name for pod in pods if is_ready(pod)]
        leader, since = self._leading.get(key, (self._labelled(election, pods), now))
        left = election.every - (now - since) if election.every else float("inf")
        if leader not in ready or left <= 0:
            leader, since = _after(leader, ready), now
            left = election.every or float("inf")
        self._leading[key] = (leader, since)
        if left != float("inf"):
            self.queue.add_after(key, left, is_deadline=True)
        return leader

    @staticmethod
    def _labelled(election: Election, pods: list[RunPod]) -> str:
        """Return who already carries the label, from an earlier run."""
        found = (pod for pod in pods if pod.metadata.labels.get(election.label) == election.leader)
        return next((pod.metadata.name for pod in found), "")

    async def _hold(self, namespace: str, name: str, leader: str) -> None:
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


def _after(leader: str, ready: list[str]) -> str:
    """Return the next ready pod by name, or the first again; nobody if none is ready."""
    return next((name for name in ready if name > leader), ready[0] if ready else "")
