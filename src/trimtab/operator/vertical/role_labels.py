"""Sets the label of a role on the pod that holds the role's Lease.

Leases are watched only in namespaces where a pod declares a role, and the controller writes only that label. An
expired Lease has no holder, because a wrong pod with the leader's size is worse than none. Before a label is removed
for that reason the controller reads the Lease from the API server, since its own watch may lag.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from trimtab.clock import keep_running
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client, ListOptions, Preconditions
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.resource import LEASES, PODS
from trimtab.decide.vertical.control.controllers import creator_of
from trimtab.decide.vertical.control.lease_holder import HolderState, ObservedLease, observe_lease
from trimtab.decide.vertical.control.role_labels import (
    LEASE_ANNOTATION,
    InvalidDeclaration,
    Relabel,
    RoleDeclaration,
    find_holder,
    parse_declaration,
    plan_roles,
)
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.objects import Lease
from trimtab.model.core.pod import Pod
from trimtab.operator.control_loop import ControlLoop, ControlLoopMetrics
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.kinds import pod_reference

log = logging.getLogger(__name__)
UNUSED_SECONDS = 60.0
"""How long the Leases of a namespace are watched after its last pod with a role."""
PERIOD_SECONDS = 5.0
"""How often Leases are checked for expiry, and failed writes are repeated."""


class RoleLabelController(ControlLoop):
    """Moves role labels between pods."""

    name = "roles"

    def __init__(
        self,
        client: Client,
        ownership: Ownership,
        view: ClusterView,
        events: EventRecorder,
        excluded: Collection[str] = (),
        metrics: ControlLoopMetrics | None = None,
    ) -> None:
        super().__init__(client.clock, ownership, PERIOD_SECONDS, metrics)
        self._client = client
        self._ownership = ownership
        self._view = view
        self._events = events
        self._excluded = frozenset(excluded)
        self._leases = RoleLeases(client, self.wake)
        self._logged: set[tuple[str, str, str | None]] = set()
        """Changes that a dry run has logged."""
        view.pods.subscribe(self._on_pod)

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a label is being changed."""
        return self._ownership.is_busy(shard)

    async def start(self) -> None:
        """Wait for the caches."""
        await self._view.wait_synced()

    async def close(self) -> None:
        """Stop watching Leases."""
        await self._leases.close()

    async def step(self) -> int:
        """Reconcile every declared role and return the number of changed labels."""
        self._problems = {}
        changed = 0
        namespaces: set[str] = set()
        for declaration, pods in self._declared().items():
            # The Lease decides the shard, so that one replica both removes and adds the label.
            lease = NamespacedName(declaration.namespace, declaration.lease)
            # Without all pods a second one could get the label, and without all selectors one could be orphaned.
            if not self._ownership.owns(str(lease)) or not self._is_listed(lease):
                continue
            namespaces.add(lease.namespace)
            if not self._leases.watch(lease.namespace):
                problem = self._leases.problem(lease.namespace)
                self._problems[f"Leases of {lease.namespace}"] = problem
                continue
            plan = await self._plan(declaration, lease, pods)
            if isinstance(plan, InvalidDeclaration):
                self._warn(pods[0], plan.message)
            else:
                changed += await self._apply(plan, lease)
        await self._leases.end_unused(namespaces)
        return changed

    def _is_listed(self, lease: NamespacedName) -> bool:
        return self._view.has_shard(self._ownership.share(str(lease)))

    async def _plan(
        self, declaration: RoleDeclaration, lease: NamespacedName, pods: list[Pod]
    ) -> tuple[Relabel, ...] | InvalidDeclaration:
        """Return the label changes that the Lease implies, or none while its holder is uncertain."""
        keys = self._selector_keys(pods)
        state = self._leases.holder_state(lease)
        if state is HolderState.EXPIRED:
            released = plan_roles(declaration, pods, "", keys)
            if not released or isinstance(released, InvalidDeclaration):
                return released  # the same with any holder
            try:
                state = await self._leases.read(lease)
            except errors.ClusterError as error:
                self._problems[f"Lease {lease}"] = str(error)
                return ()
        if state is HolderState.UNCONFIRMED:
            return ()
        seen = self._leases.get(lease)
        if state is HolderState.FREE or seen is None:
            return plan_roles(declaration, pods, "", keys)
        self._warn_of_unknown_holder(declaration, lease, pods, seen)
        return plan_roles(declaration, pods, seen.holder, keys)

    def _warn_of_unknown_holder(
        self, declaration: RoleDeclaration, lease: NamespacedName, pods: list[Pod], seen: ObservedLease
    ) -> None:
        held_for = self._clock.monotonic() - seen.held_since
        if held_for > seen.duration and find_holder(pods, seen.holder) is None:
            self._warn(
                pods[0],
                f"Lease {lease} is held by {seen.holder!r}, which names no pod of this role, so that no pod "
                f"gets label {declaration.key}={declaration.value}; the identity has to be the pod's name, alone or "
                "followed by _ and more",
            )

    def _declared(self) -> dict[RoleDeclaration, list[Pod]]:
        declared: dict[RoleDeclaration, list[Pod]] = defaultdict(list)
        for pod in self._view.pods:
            if pod.metadata.namespace in self._excluded:
                continue
            declaration = parse_declaration(pod)
            if isinstance(declaration, InvalidDeclaration):
                if self._ownership.owns(pod.metadata.key):
                    self._warn(pod, declaration.message)
            elif declaration is not None:
                declared[declaration].append(pod)
        return dict(
            sorted(declared.items(), key=lambda item: (item[0].namespace, item[0].lease, item[0].key))
        )

    def _selector_keys(self, pods: list[Pod]) -> set[str]:
        keys: set[str] = set()
        for creator in {creator_of(pod) for pod in pods}:
            while creator is not None:
                keys |= self._view.controllers.selector_keys(creator)
                controller = self._view.controllers.get(creator)
                creator = controller.parent if controller else None
        return keys

    async def _apply(self, plan: tuple[Relabel, ...], lease: NamespacedName) -> int:
        """Change labels in order until one fails, so that no two pods have the role."""
        changed = 0
        if self._client.is_dry_run:
            self._log_dry_run(plan)
            return changed
        for change in plan:
            meta = change.pod.metadata
            body = {"metadata": {"labels": {change.key: change.value}}}
            same = Preconditions(meta.uid, meta.resource_version or None)
            try:
                with self._ownership.writing_for(str(lease)) as client:
                    await client.patch(PODS, meta.name, meta.namespace, body, preconditions=same)
            except errors.NotFound:
                continue  # deleted, and its label with it
            except errors.Fenced:
                return changed  # another replica owns this role now
            except errors.ClusterError as error:
                self._problems[f"role of {meta.key}"] = str(error)
                log.warning("role of pod %s is not changed: %s", meta.key, error)
                return changed
            changed += 1
            log.info("role changed", extra={"facts": _facts(change)})
        return changed

    def _log_dry_run(self, plan: tuple[Relabel, ...]) -> None:
        for change in plan:
            would = change.pod.metadata.key, change.key, change.value
            if would not in self._logged:
                self._logged.add(would)
                log.info("dry run: would change a role", extra={"facts": _facts(change)})

    def _warn(self, pod: Pod, message: str) -> None:
        self._problems[f"role of {pod.metadata.key}"] = message
        self._events.event(pod_reference(pod), "Warning", "RoleNotAssigned", message)

    def _on_pod(self, delta: Delta[Pod]) -> None:
        pod = delta.new or delta.old
        if pod is not None and LEASE_ANNOTATION in pod.metadata.annotations:
            self.wake()


def _facts(change: Relabel) -> dict[str, str | None]:
    return {"pod": change.pod.metadata.key, "label": change.key, "to": change.value}


class RoleLeases:
    """Watches Leases per namespace, and calls `on_change` when a holder changes."""

    def __init__(self, client: Client, on_change: Callable[[], None]) -> None:
        self._client = client
        self._clock = client.clock
        self._on_change = on_change
        self._seen: dict[NamespacedName, ObservedLease] = {}
        self._informers: dict[str, Informer[Lease]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._used_at: dict[str, float] = {}

    def watch(self, namespace: str) -> bool:
        """Watch the Leases of a namespace from now on. Return whether they are listed already."""
        self._used_at[namespace] = self._clock.monotonic()
        informer = self._informers.get(namespace)
        if informer is None:
            informer = Informer(self._client, LEASES, ListOptions(namespace=namespace))
            informer.subscribe(self._on_lease)
            self._informers[namespace] = informer
            self._tasks[namespace] = keep_running(f"the watch of Leases in {namespace}", informer.run)
        return informer.has_synced

    def problem(self, namespace: str) -> str:
        """Return why the Leases of a namespace are not listed."""
        return self._informers[namespace].last_error or "the first list is not complete"

    async def end_unused(self, used: Collection[str]) -> None:
        """End the watches of namespaces where no pod has declared a role for a while."""
        now = self._clock.monotonic()
        unused = [
            namespace
            for namespace, used_at in self._used_at.items()
            if namespace not in used and now - used_at > UNUSED_SECONDS
        ]
        ended = [self._tasks.pop(namespace) for namespace in unused]
        for namespace in unused:
            del self._informers[namespace], self._used_at[namespace]
        self._seen = {lease: seen for lease, seen in self._seen.items() if lease.namespace not in unused}
        await _end(ended)

    def get(self, lease: NamespacedName) -> ObservedLease | None:
        """Return a Lease as last observed, or None if it does not exist."""
        return self._seen.get(lease)

    def holder_state(self, lease: NamespacedName) -> HolderState:
        """Return the state of a Lease's holder, as far as the watch shows."""
        seen = self._seen.get(lease)
        return HolderState.FREE if seen is None else seen.holder_state(self._clock.monotonic())

    async def read(self, lease: NamespacedName) -> HolderState:
        """Read a Lease from the API server, or raise ClusterError if that fails."""
        # A list of one object: the role has the right to list, for the watch, and no right to get.
        options = ListOptions(lease.namespace, fields=f"metadata.name={lease.name}")
        listing = await self._client.list(LEASES, options)
        if not listing.items:
            self._seen.pop(lease, None)
            return HolderState.FREE
        self._observe(listing.items[0])
        state = self.holder_state(lease)
        return HolderState.FREE if state is HolderState.EXPIRED else state

    async def close(self) -> None:
        """Stop watching."""
        await _end(self._tasks.values())

    def _on_lease(self, delta: Delta[Lease]) -> None:
        if delta.change is CacheEvent.SYNCED:
            self._on_change()
        elif delta.new is not None:
            self._observe(delta.new)
        elif delta.old is not None:
            self._seen.pop(delta.old.metadata.namespaced_name, None)
            self._on_change()

    def _observe(self, lease: Lease) -> None:
        key = lease.metadata.namespaced_name
        before = self._seen.get(key)
        seen = observe_lease(before, lease, self._clock.now(), self._clock.monotonic())
        self._seen[key] = seen
        if before is None or (before.holder, before.is_confirmed) != (seen.holder, seen.is_confirmed):
            self._on_change()


async def _end(ended: Iterable[asyncio.Task[None]]) -> None:
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)
