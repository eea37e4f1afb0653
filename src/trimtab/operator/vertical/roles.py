"""Keeps role labels in step with Leases: on the holder's pod, off the others.

It watches Leases only in namespaces where a pod declares a role, and writes nothing but one label of such pods. A
Lease that nobody renews any more makes nobody the holder: better no leader's size than the wrong pod with it.
"""

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.cache import Delta
from trimtab.cluster.client import Client, Selection
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.informer import Informer
from trimtab.cluster.patching import Preconditions
from trimtab.cluster.resources import LEASES, PODS
from trimtab.decide.vertical.controllers import creator_of
from trimtab.decide.vertical.roles import (
    LEASE_ANNOTATION,
    Declaration,
    Malformed,
    Relabel,
    declaration_of,
    plan_roles,
)
from trimtab.model.lease import Lease
from trimtab.model.pod import Pod
from trimtab.operator.ownership import Ownership, Shared
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.references import pod_reference

log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0
"""How often Leases are checked for having run out, and failed writes are tried again."""
_DEFAULT_DURATION = 15


@dataclass
class _Seen:
    """A Lease as it was last seen, and when it last changed by our own clock."""

    holder: str
    renewed: object
    duration: float
    at: float


class RoleKeeper:
    """The component; `step` brings all labels up to date once."""

    name = "roles"

    def __init__(
        self, client: Client, ownership: Ownership, view: ClusterView, events: EventRecorder
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._ownership = ownership
        self._view = view
        self._events = events
        self._leases: dict[tuple[str, str], _Seen] = {}
        self._informers: dict[str, Informer[Lease]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._problems: dict[str, str] = {}
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

    def shard_gained(self, shard: int, last_alive: float | None) -> None:
        """Look at the roles that are ours now."""
        self._wake.set()

    def shard_lost(self, shard: int) -> None:
        """Do nothing: the fence of its roles is closed."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a label is being changed."""
        return isinstance(self._ownership, Shared) and self._ownership.is_busy(shard)

    async def close(self) -> None:
        """Stop watching Leases."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
            informer = self._watch(declaration.namespace)
            await informer.wait_synced()
            identity = self._holder(declaration)
            plan = plan_roles(declaration, pods, identity, self._selector_keys(pods))
            if isinstance(plan, Malformed):
                self._complain(pods[0], plan.message)
            else:
                changed += await self._carry_out(plan, self._ownership.share(_lease_of(declaration)))
        return changed

    def _declared(self) -> dict[Declaration, list[Pod]]:
        found: dict[Declaration, list[Pod]] = defaultdict(list)
        for pod in self._view.pods:
            declaration = declaration_of(pod)
            if isinstance(declaration, Malformed):
                if self._ownership.owns(pod.metadata.key):
                    self._complain(pod, declaration.message)
            elif declaration is not None:
                found[declaration].append(pod)
        return dict(sorted(found.items(), key=lambda item: (item[0].namespace, item[0].lease, item[0].key)))

    def _holder(self, declaration: Declaration) -> str:
        """Return who holds a Lease; nobody if it has not changed for as long as it lasts."""
        seen = self._leases.get((declaration.namespace, declaration.lease))
        if seen is None or self._clock.monotonic() - seen.at > seen.duration:
            return ""
        return seen.holder

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

    def _complain(self, pod: Pod, message: str) -> None:
        self._problems[f"role of {pod.metadata.key}"] = message
        self._events.event(pod_reference(pod), "Warning", "RoleNotAssigned", message)

    def _watch(self, namespace: str) -> Informer[Lease]:
        informer = self._informers.get(namespace)
        if informer is None:
            informer = Informer(self._client, LEASES, Selection(namespace=namespace))
            informer.subscribe(self._on_lease)
            self._informers[namespace] = informer
            self._tasks.append(asyncio.ensure_future(informer.run()))
        return informer

    def _on_lease(self, delta: Delta[Lease]) -> None:
        lease = delta.new or delta.old
        if lease is None:
            return
        key = (lease.metadata.namespace, lease.metadata.name)
        if delta.new is None:
            self._leases.pop(key, None)
            self._wake.set()
            return
        spec, before = lease.spec, self._leases.get(key)
        now = self._clock.monotonic()
        is_news = before is None or before.holder != spec.holder_identity
        if before is None or is_news or before.renewed != spec.renew_time:
            duration = float(spec.lease_duration_seconds or _DEFAULT_DURATION)
            self._leases[key] = _Seen(spec.holder_identity, spec.renew_time, duration, now)
        if is_news:
            self._wake.set()

    def _on_pod(self, delta: Delta[Pod]) -> None:
        pod = delta.new or delta.old
        if pod is not None and LEASE_ANNOTATION in pod.metadata.annotations:
            self._wake.set()


def _lease_of(declaration: Declaration) -> str:
    """Return what a role is shared out by: its Lease, so that one copy takes the label off and puts it on."""
    return f"{declaration.namespace}/{declaration.lease}"
