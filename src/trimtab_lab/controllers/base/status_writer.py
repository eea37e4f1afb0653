"""Writes statuses that changed, and builds conditions."""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.resource import Json
from trimtab.model.core.meta import Condition
from trimtab.model.json import wire
from trimtab.model.times import format_time
from trimtab_lab.controllers.base.write_through_cache import LabObject, WriteThroughCache

T = TypeVar("T", bound=LabObject)


class StatusPatcher(Generic[T]):
    """Patches the status of objects of one kind, once per change."""

    def __init__(self, cache: WriteThroughCache[T]) -> None:
        self._cache = cache
        self._written: dict[str, bytes] = {}
        cache.subscribe(self._on_change)

    async def write(self, obj: T, status: Json) -> None:
        """Write a status unless it is the one written last. A field with None is cleared."""
        uid, text = obj.metadata.uid, wire.encode(status)
        if self._written.get(uid) == text:
            return
        await self._cache.patch(obj, {"status": status}, subresource="status")
        self._written[uid] = text

    def _on_change(self, delta: Delta[T]) -> None:
        if delta.change is CacheEvent.DELETED:
            self._written.pop(delta.object.metadata.uid, None)


def condition(
    before: Iterable[Condition], kind: str, *, holds: bool, reason: str = "", message: str = "", now: datetime
) -> Json:
    """Return a condition. Its transition time changes only with its status."""
    status = "True" if holds else "False"
    since = next(
        (former.last_transition_time for former in before if (former.type, former.status) == (kind, status)),
        None,
    )
    body: Json = {"type": kind, "status": status, "lastTransitionTime": format_time(since or now)}
    if reason:
        body["reason"] = reason
    if message:
        body["message"] = message
    return body
