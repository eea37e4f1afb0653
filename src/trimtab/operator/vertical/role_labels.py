"""Keeps role labels in step with Leases: on the holder's pod, off the others.

It watches Leases only in namespaces where a pod declares a role, and writes nothing but one label of such pods. A
Lease that nobody renews any more makes nobody the holder: better no leader's size than the wrong pod with it. Before a
label is taken off for that reason the server is asked, because it may be our watch that is silent.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection

from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.control.controllers import creator_of
from trimtab.decide.vertical.control.lease_holder import SeenLease, Tenure
from trimtab.decide.vertical.control.role_labels import (
    LEASE_ANNOTATION,
    Declaration,
    Malformed,
    Relabel,
    declaration_of,
    holder_among,
    plan_roles,
)
from trimtab.model.core.pod import Pod
from trimtab.operator.ownership import Ownership, ShardedOwner
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.kinds import pod_reference
from trimtab.operator.vertical.role_leases import RoleLeases

log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0
"""How often Leases are checked for having run out, and failed writes are tried again."""


class RoleLabelController:
    """The component; `step` brings all labels up to date once."""

    name = "roles"

    def __init__(
        self,
        client: Client,
        ownership: Ownership,
        view: ClusterView,
        events: EventRecorder,
        excluded: Collection[str] = (),
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._ownership = ownership
        self._view = view
        self._events = events
        self._excluded = frozenset(excluded)
        self._wake = asyncio.Event()
        self._leases = RoleLeases(client, self._wake.set)
        self._problems: dict[str, str] = {}
        self._would: set[tuple[str, str, str | None]] = set()
        """What a dry run has logged."""
        view.pods.subscribe(self._on_pod)

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        return dict(self._problems)

    async def run(self) -> None:
        """Keep labels right until cancelled."""
        try:
            await self._view.wait_synced()
            while True:
                self._wake.clear()
                try:
                    if self._ownership.may_write():
                        await self.step()
                except Exception as error:  # one odd object must not end the others' roles
                    self._problems["roles"] = str(error)
                    log.exception("roles")
                await self._wait()
        finally:
            await self.close()

    def shard_gained(self, shard: int) -> None:
        """Look at the roles that are ours now."""
        self._wake.set()

    def shard_lost(self, shard: int) -> None:
        """Do nothing: the fence of its roles is closed."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a label is being changed."""
        return isinstance(self._ownership, ShardedOwner) and self._ownership.is_busy(shard)

    async def close(self) -> None:
        """Stop watching Leases."""
        await self._leases.close()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return

    async def step(self) -> int:
        """Look at every declared role; return how many labels were changed."""
        self._problems = {}
        changed = 0
        for declaration, pods in self._declared().items():
            if not self._ownership.owns(_lease_of(declaration)):
                continue
            await self._leases.follow(declaration.namespace)
            plan = await self._plan(declaration, pods)
            if isinstance(plan, Malformed):
                self._complain(pods[0], plan.message)
            else:
                changed += await self._carry_out(plan, self._ownership.share(_lease_of(declaration)))
        return changed

    async def _plan(self, declaration: Declaration, pods: list[Pod]) -> tuple[Relabel, ...] | Malformed:
        """Return the changes that follow from what is known of the Lease; none if too little is."""
        namespace, lease = declaration.namespace, declaration.lease
        keys = self._selector_keys(pods)
        tenure = self._leases.tenure(namespace, lease)
        if tenure is Tenure.SILENT:
            released = plan_roles(declaration, pods, "", keys)
            if not released or isinstance(released, Malformed):
                return released  # nothing depends on the answer
            try:
                tenure = await self._leases.ask(namespace, lease)
            except errors.ClusterError as error:
                self._problems[f"Lease {_lease_of(declaration)}"] = str(error)
                return ()
        if tenure is Tenure.UNPROVED:
            return ()
        seen = self._leases.seen(namespace, lease)
        if tenure is Tenure.FREE or seen is None:
            return plan_roles(declaration, pods, "", keys)
        self._look_for_holder(declaration, pods, seen)
        return plan_roles(declaration, pods, seen.holder, keys)

    def _look_for_holder(self, declaration: Declaration, pods: list[Pod], seen: SeenLease) -> None:
        """Complain about a holder that has renewed its Lease for a while and is no pod of the role."""
        held_for = self._clock.monotonic() - seen.held_since
        if held_for > seen.duration and holder_among(pods, seen.holder) is None:
            self._complain(
                pods[0],
                f"Lease {_lease_of(declaration)} is held by {seen.holder!r}, which names no pod of this role, so that no pod "
                f"gets label {declaration.key}={declaration.value}; the identity has to be the pod's name, alone or "
                "followed by _ and more",
            )

    def _declared(self) -> dict[Declaration, list[Pod]]:
        found: dict[Declaration, list[Pod]] = defaultdict(list)
        for pod in self._view.pods:
            if pod.metadata.namespace in self._excluded:
                continue
            declaration = declaration_of(pod)
            if isinstance(declaration, Malformed):
                if self._ownership.owns(pod.metadata.key):
                    self._complain(pod, declaration.message)
            elif declaration is not None:
                found[declaration].append(pod)
        return dict(sorted(found.items(), key=lambda item: (item[0].namespace, item[0].lease, item[0].key)))

    def _selector_keys(self, pods: list[Pod]) -> set[str]:
        keys: set[str] = set()
        for creator in {creator_of(pod) for pod in pods}:
            while creator is not None:
                keys |= self._view.controllers.selector_keys(creator)
                controller = self._view.controllers.get(creator)
                creator = controller.parent if controller else None
        return keys

    async def _carry_out(self, plan: tuple[Relabel, ...], share: int) -> int:
        """Change labels in order; if a demotion fails nobody is promoted, so that no two pods have the role."""
        done = 0
        if self._client.is_dry_run:
            self._tell_dry_run(plan)
            return done
        for change in plan:
            meta = change.pod.metadata
            body = {"metadata": {"labels": {change.key: change.value}}}
            try:
                with self._ownership.writing(share) as client:
                    await client.patch(
                        PODS, meta.name, meta.namespace, body, preconditions=Preconditions(uid=meta.uid)
                    )
            except errors.NotFound:
                continue  # gone, and its role with it
            except errors.Fenced:
                return done  # another copy keeps this role now
            except errors.ClusterError as error:
                self._problems[f"role of {meta.key}"] = str(error)
                log.warning("role of pod %s is not changed: %s", meta.key, error)
                return done
            done += 1
            log.info(
                "role changed", extra={"facts": {"pod": meta.key, "label": change.key, "to": change.value}}
            )
        return done

    def _tell_dry_run(self, plan: tuple[Relabel, ...]) -> None:
        for change in plan:
            would = change.pod.metadata.key, change.key, change.value
            if would not in self._would:
                self._would.add(would)
                facts = {"pod": would[0], "label": would[1], "to": would[2]}
                log.info("dry run: would change a role", extra={"facts": facts})

    def _complain(self, pod: Pod, message: str) -> None:
        self._problems[f"role of {pod.metadata.key}"] = message
        self._events.event(pod_reference(pod), "Warning", "RoleNotAssigned", message)

    def _on_pod(self, delta: Delta[Pod]) -> None:
        pod = delta.new or delta.old
        if pod is not None and LEASE_ANNOTATION in pod.metadata.annotations:
            self._wake.set()


def _lease_of(declaration: Declaration) -> str:
    """Return what a role is shared out by: its Lease, so that one copy takes the label off and puts it on."""
    return f"{declaration.namespace}/{declaration.lease}"
