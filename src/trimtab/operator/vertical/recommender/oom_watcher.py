"""Collects out-of-memory kills from pod updates and eviction events."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.input.oom import OOM, ooms_of_event, ooms_of_update
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import Pod

MAX_WAITING = 10_000
"""Kills kept between two steps, so that memory stays bounded."""


class Kill(NamedTuple):
    """A kill, with the pod as it was then unless only an event reported it."""

    oom: OOM
    pod: Pod | None = None


class OomObserver:
    """Collects kills until `take` returns them."""

    def __init__(
        self,
        client: Client,
        pods: NamespacedInformer[Pod],
        namespaces: Sequence[str] = (),
        compat: VpaCompat = DEFAULT,
    ) -> None:
        self._waiting: deque[Kill] = deque(maxlen=MAX_WAITING)
        self._compat = compat
        self._events = [
            Informer(client, CORE_EVENTS.into(Event), ListOptions(namespace or None, fields="reason=Evicted"))
            for namespace in namespaces or ("",)
        ]
        for informer in self._events:
            informer.subscribe(self._on_event)
        pods.subscribe(self._on_pod)

    async def run(self) -> None:
        """Watch eviction events in the watched namespaces until cancelled."""
        await asyncio.gather(*(informer.run() for informer in self._events))

    def problems(self) -> dict[str, str]:
        """Return why eviction events cannot be watched, by name."""
        error = next((informer.last_error for informer in self._events if informer.last_error), None)
        return {"eviction events": error} if error else {}

    def victims(self) -> Iterator[Pod]:
        """Yield the pods of waiting kills, deleted pods included."""
        for kill in self._waiting:
            if kill.pod is not None:
                yield kill.pod

    def take(self) -> tuple[Kill, ...]:
        """Return the kills since the last call."""
        kills = tuple(self._waiting)
        self._waiting.clear()
        return kills

    def put_back(self, kills: tuple[Kill, ...]) -> None:
        """Keep kills for the next step."""
        self._waiting.extendleft(reversed(kills))

    def _on_pod(self, delta: Delta[Pod]) -> None:
        if delta.change is CacheEvent.UPDATED and delta.old is not None and delta.new is not None:
            ooms = ooms_of_update(delta.old, delta.new, self._compat)
            self._waiting.extend(Kill(oom, delta.new) for oom in ooms)

    def _on_event(self, delta: Delta[Event]) -> None:
        if delta.new is not None:
            self._waiting.extend(Kill(oom) for oom in ooms_of_event(delta.new))
