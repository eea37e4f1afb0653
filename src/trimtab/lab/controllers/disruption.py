"""Budgets: the disruption controller's arithmetic, so that evictions can be judged without a controller manager.

After each change of a budget or of a pod that one covers, the budget's status is counted again.
"""

import asyncio
import logging
from collections.abc import Callable
from math import ceil

from trimtab.lab.resources.workloads import selector_of
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore
from trimtab.lab.storage.watch_cache import WatchCacheEvent

OwnerReplicas = Callable[[str], int | None]
LOG = logging.getLogger(__name__)
BUDGETS = "poddisruptionbudgets.policy"


class Budgets:
    """Keeps the status of every PodDisruptionBudget up to date."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._namespaces: dict[str, None] = {}
        self._wake = asyncio.Event()
        store.listen(self._notice)

    def _notice(self, resource: str, change: WatchCacheEvent) -> None:
        if resource in (BUDGETS, "pods") and self._store.resource(BUDGETS).entries:
            self._namespaces[change.entry.namespace] = None
            self._wake.set()

    async def run(self) -> None:
        """Count again whenever something changed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._namespaces:
                namespace = next(iter(self._namespaces))
                del self._namespaces[namespace]
                try:
                    self._count(namespace)
                except Exception:  # one odd object must not stop the counting of the others
                    LOG.exception("counting the budgets of namespace %s", namespace)

    def _count(self, namespace: str) -> None:
        pods = [entry.decoded() for entry in self._store.resource("pods").all(namespace)]
        for entry in self._store.resource(BUDGETS).all(namespace):
            budget = entry.decoded()
            status = budget_status(budget, pods, self._owner_replicas)
            if status != budget.get("status"):
                budget["status"] = status
                self._store.commit(BUDGETS, budget, {})

    def _owner_replicas(self, uid: str) -> int | None:
        """Return how many pods a controller wants, following a ReplicaSet to its Deployment."""
        found = self._store.by_uid(uid)
        if found is None:
            return None
        owner = found[1].decoded()
        for reference in owner["metadata"].get("ownerReferences") or ():
            if reference.get("controller"):
                above = self._owner_replicas(reference.get("uid", ""))
                if above is not None:
                    return above
        replicas = owner.get("spec", {}).get("replicas")
        return replicas if isinstance(replicas, int) else None


def budget_status(budget: JsonObject, pods: list[JsonObject], owner_replicas: OwnerReplicas) -> JsonObject:
    """Return what a budget allows now."""
    spec, before = budget.get("spec") or {}, budget.get("status") or {}
    covered = _covered(spec, pods)
    healthy = sum(map(_is_healthy, covered))
    expected, desired = _wanted(spec, covered, owner_replicas)
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
    """Return the pods that a budget speaks for; without a selector it speaks for none."""
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
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _wanted(spec: JsonObject, covered: list[JsonObject], owner_replicas: OwnerReplicas) -> tuple[int, int]:
    """Return how many pods are expected and how many must stay healthy."""
    expected = len(covered)
    if "maxUnavailable" in spec or isinstance(spec.get("minAvailable"), str):
        expected = _expected_by_owners(covered, owner_replicas)
    if "maxUnavailable" in spec:
        return expected, max(expected - _share(spec["maxUnavailable"], expected), 0)
    return expected, _share(spec.get("minAvailable", 1), expected)


def _share(value: int | str, total: int) -> int:
    if isinstance(value, int):
        return value
    return ceil(int(value.rstrip("%")) * total / 100)


def _expected_by_owners(covered: list[JsonObject], owner_replicas: OwnerReplicas) -> int:
    owners = {
        reference.get("uid", "")
        for pod in covered
        for reference in pod["metadata"].get("ownerReferences") or ()
        if reference.get("controller")
    }
    counted = [owner_replicas(uid) for uid in sorted(owners)]
    return sum(one for one in counted if one is not None) or len(covered)
