"""Writing statuses: only when they changed, with conditions that keep the time of their last change."""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.write_through_cache import Seen, WriteThroughCache
from trimtab.model.core.meta import Condition
from trimtab.model.json import wire
from trimtab.model.times import format_time

T = TypeVar("T", bound=Seen)


class StatusPatcher(Generic[T]):
    """Patches the status subresource of one kind, once per change."""

    def __init__(self, mirror: WriteThroughCache[T]) -> None:
        self._mirror = mirror
        self._written: dict[str, bytes] = {}
        mirror.subscribe(self._forget)

    async def write(self, thing: T, status: Json) -> None:
        """Write a status unless it is what we wrote last; None clears a field."""
        uid, text = thing.metadata.uid, wire.encode(status)
        if self._written.get(uid) == text:
            return
        await self._mirror.patch(thing, {"status": status}, subresource="status")
        self._written[uid] = text

    def _forget(self, delta: Delta[T]) -> None:
        if delta.change is CacheEvent.DELETED:
            self._written.pop(delta.object.metadata.uid, None)


def condition(
    known: Iterable[Condition], kind: str, *, holds: bool, reason: str = "", message: str = "", now: datetime
) -> Json:
    """Return a condition; its transition time changes only with its status."""
    status = "True" if holds else "False"
    moment = next(
        (one.last_transition_time for one in known if one.type == kind and one.status == status), None
    )
    made: Json = {"type": kind, "status": status, "lastTransitionTime": format_time(moment or now)}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made
