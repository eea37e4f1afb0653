"""Writes a condition to HPAs that cannot be decoded, which no decision reaches.

kube-apiserver stores native HPAs with a target of `1e1000000000`. Such an HPA is not cached, so nothing else would say
why it does not scale.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import UnreadableObject
from trimtab.cluster.cache.shared import SharedInformers
from trimtab.cluster.client import Preconditions
from trimtab.cluster.resource import Json, Resource
from trimtab.decide.horizontal.status.conditions import SCALING_ACTIVE
from trimtab.model.times import format_time
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.ownership import Ownership

log = logging.getLogger(__name__)

SPEC_UNREADABLE = "SpecUnreadable"
RETRY_SECONDS = 60.0
"""How long after a failed write it is tried again."""


@dataclass(frozen=True, slots=True)
class _Unreadable:
    resource: Resource[Any]
    namespace: str
    name: str
    note: UnreadableObject


class UnreadableHpas:
    """Reports HPAs that cannot be decoded, each once per reason."""

    def __init__(self, clock: Clock, caches: SharedInformers, ownership: Ownership) -> None:
        self._clock = clock
        self._caches = caches
        self._ownership = ownership
        self._reported: dict[str, str] = {}
        self._not_before = 0.0

    def has_unreported(self) -> bool:
        """Return whether there is an HPA to report now."""
        found = list(self._found())
        uids = {hpa.note.uid for hpa in found}
        self._reported = {uid: why for uid, why in self._reported.items() if uid in uids}
        return self._clock.monotonic() >= self._not_before and any(map(self._is_unreported, found))

    async def report(self) -> None:
        """Write the condition of every HPA that was not reported yet."""
        self._not_before = self._clock.monotonic() + RETRY_SECONDS
        for hpa in [hpa for hpa in self._found() if self._is_unreported(hpa)]:
            try:
                await self._write(hpa)
            except errors.ClusterError as error:
                log.debug("hpa %s/%s: its condition was not written: %s", hpa.namespace, hpa.name, error)
                continue
            self._reported[hpa.note.uid] = hpa.note.why

    def _is_unreported(self, hpa: _Unreadable) -> bool:
        is_owned = self._ownership.owns(f"{hpa.namespace}/{hpa.name}")
        return is_owned and self._reported.get(hpa.note.uid) != hpa.note.why

    def _found(self) -> Iterator[_Unreadable]:
        for cache in self._caches:
            if cache.resource.kind != OWN_HPAS.kind:
                continue
            resource = OWN_HPAS if cache.resource.group == OWN_HPAS.group else NATIVE_HPAS
            for _, informer in cache.informers():
                for (namespace, name), note in informer.counts.unreadable.items():
                    yield _Unreadable(resource, namespace, name, note)

    async def _write(self, hpa: _Unreadable) -> None:
        client, resource = self._ownership.client_for(f"{hpa.namespace}/{hpa.name}"), hpa.resource.untyped()
        found = await client.get(resource, hpa.name, hpa.namespace)
        meta, before = found["metadata"], found.get("status", {}).get("conditions") or []
        if meta["uid"] != hpa.note.uid:
            return
        new = self._condition(hpa, before)
        conditions = [condition for condition in before if condition.get("type") != SCALING_ACTIVE]
        if new in before:
            return
        await client.patch(
            resource,
            hpa.name,
            hpa.namespace,
            {"status": {"conditions": [*conditions, new]}},
            subresource="status",
            preconditions=Preconditions(uid=meta["uid"], resource_version=meta["resourceVersion"]),
        )

    def _condition(self, hpa: _Unreadable, before: list[Json]) -> Json:
        old = next((condition for condition in before if condition.get("type") == SCALING_ACTIVE), {})
        is_same = old.get("status") == "False"
        moved = old.get("lastTransitionTime") if is_same else format_time(self._clock.now())
        return {
            "type": SCALING_ACTIVE,
            "status": "False",
            "lastTransitionTime": moved,
            "reason": SPEC_UNREADABLE,
            "message": f"the object cannot be read, so nothing is scaled: {hpa.note.why}",
        }
