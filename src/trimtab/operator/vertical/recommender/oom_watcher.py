"""Out-of-memory kills on their way from pod changes and eviction events to the recommender's next loop."""

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

MOST_WAITING = 10_000
"""Kills kept between two loops; a cluster where more happen has other worries, and memory stays bounded."""


class Kill(NamedTuple):
    """A kill, and the pod as it was then; None if only an event told of it."""

    oom: OOM
    pod: Pod | None = None


class OomObserver:
    """Collects kills; `take` hands them over once."""

    def __init__(
        self,
        client: Client,
        pods: NamespacedInformer[Pod],
        namespaces: Sequence[str] = (),
        compat: VpaCompat = DEFAULT,
    ) -> None:
        self._waiting: deque[Kill] = deque(maxlen=MOST_WAITING)
        self._compat = compat
        self._events = [
            Informer(client, CORE_EVENTS.into(Event), ListOptions(namespace or None, fields="reason=Evicted"))
            for namespace in namespaces or ("",)
        ]
        for informer in self._events:
            informer.subscribe(self._take_event)
        pods.subscribe(self._take_pod)

    async def run(self) -> None:
        """Follow eviction events in the watched namespaces until cancelled."""
        await asyncio.gather(*(informer.run() for informer in self._events))

    def problems(self) -> dict[str, str]:
        """Return why eviction events cannot be followed, by name."""
        error = next((informer.last_error for informer in self._events if informer.last_error), None)
        return {"eviction events": error} if error else {}

    def victims(self) -> Iterator[Pod]:
        """Yield the pods of the kills that wait; some are gone from the cluster."""
        for kill in self._waiting:
            if kill.pod is not None:
                yield kill.pod

    def take(self) -> tuple[Kill, ...]:
        """Return what happened since the last call."""
        found = tuple(self._waiting)
        self._waiting.clear()
        return found

    def put_back(self, kills: tuple[Kill, ...]) -> None:
        """Keep kills for the next loop, whose containers the model does not know yet."""
        self._waiting.extendleft(reversed(kills))

    def _take_pod(self, delta: Delta[Pod]) -> None:
        if delta.change is CacheEvent.UPDATED and delta.old is not None and delta.new is not None:
            found = ooms_of_update(delta.old, delta.new, self._compat)
            self._waiting.extend(Kill(oom, delta.new) for oom in found)

    def _take_event(self, delta: Delta[Event]) -> None:
        if delta.new is not None:
            self._waiting.extend(Kill(oom) for oom in ooms_of_event(delta.new))
