"""The disruption controller: keeps the status of PodDisruptionBudgets, by which evictions are allowed.

It runs inside the lab's API server and computes the status again after each change of a budget or a pod.
"""

from collections.abc import Callable

from trimtab.clock import Clock
from trimtab_lab.controllers.kinds import scaled_value
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.kinds.workloads import selector_of
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore, WatchCacheEvent

OwnerReplicas = Callable[[str], int | None]
BUDGETS = "poddisruptionbudgets.policy"


class DisruptionController:
    """Keeps the status of every PodDisruptionBudget up to date."""

    def __init__(self, clock: Clock, store: ObjectStore) -> None:
        self._store = store
        #: Namespaces.
        self.queue = WorkQueue("disruption budgets", clock, self._reconcile)
        store.listen(self._on_change)

    def _on_change(self, resource: str, change: WatchCacheEvent) -> None:
        if resource in (BUDGETS, "pods") and self._store.resource(BUDGETS).entries:
            self.queue.add(("", change.entry.namespace))

    async def _reconcile(self, key: Key) -> None:
        namespace = key[1]
        pods = [entry.decoded() for entry in self._store.resource("pods").all(namespace)]
        for entry in self._store.resource(BUDGETS).all(namespace):
            budget = entry.decoded()
            status = budget_status(budget, pods, self._owner_replicas)
            if status != budget.get("status"):
                budget["status"] = status
                self._store.commit(BUDGETS, budget, {})

    def _owner_replicas(self, uid: str) -> int | None:
        """Return the replicas of a controller, of a Deployment rather than its ReplicaSet."""
        stored = self._store.by_uid(uid)
        if stored is None:
            return None
        owner = stored[1].decoded()
        for reference in owner["metadata"].get("ownerReferences") or ():
            if reference.get("controller"):
                parent_replicas = self._owner_replicas(reference.get("uid", ""))
                if parent_replicas is not None:
                    return parent_replicas
        replicas = owner.get("spec", {}).get("replicas")
        return replicas if isinstance(replicas, int) else None


def budget_status(budget: JsonObject, pods: list[JsonObject], owner_replicas: OwnerReplicas) -> JsonObject:
    spec, before = budget.get("spec") or {}, budget.get("status") or {}
    covered = _covered(spec, pods)
    healthy = sum(map(_is_healthy, covered))
    expected, desired = _expected_and_desired(spec, covered, owner_replicas)
    staying = {pod["metadata"]["name"] for pod in covered if "deletionTimestamp" not in pod["metadata"]}
    disrupted = {
        name: moment for name, moment in (before.get("disruptedPods") or {}).items() if name in staying
    }
    status: JsonObject = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(healthy - desired, 0) if expected else 0,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    if before.get("conditions"):
        status["conditions"] = before["conditions"]
    return status


def _covered(spec: JsonObject, pods: list[JsonObject]) -> list[JsonObject]:
    if spec.get("selector") is None:
        return []
    selector = selector_of(spec["selector"])
    return [
        pod
        for pod in pods
        if selector.matches(pod["metadata"].get("labels") or {})
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]


def _is_healthy(pod: JsonObject) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)


def _expected_and_desired(
    spec: JsonObject, covered: list[JsonObject], owner_replicas: OwnerReplicas
) -> tuple[int, int]:
    """Return the number of expected pods, and of those that must be healthy."""
    expected = len(covered)
    if "maxUnavailable" in spec or isinstance(spec.get("minAvailable"), str):
        expected = _expected_by_owners(covered, owner_replicas)
    if "maxUnavailable" in spec:
        max_unavailable = scaled_value(spec["maxUnavailable"], expected, rounds_up=True)
        return expected, max(expected - max_unavailable, 0)
    return expected, scaled_value(spec.get("minAvailable"), expected, rounds_up=True)


def _expected_by_owners(covered: list[JsonObject], owner_replicas: OwnerReplicas) -> int:
    owners = {
        reference.get("uid", "")
        for pod in covered
        for reference in pod["metadata"].get("ownerReferences") or ()
        if reference.get("controller")
    }
    return sum(owner_replicas(uid) or 0 for uid in sorted(owners)) or len(covered)
