"""Out-of-memory kills on their way from pod changes and eviction events to the recommender's next loop."""

from collections import deque

from trimtab.cluster.cache import Change, Delta
from trimtab.cluster.client import Client, Selection
from trimtab.cluster.informer import Informer
from trimtab.cluster.resources import CORE_EVENTS
from trimtab.decide.vertical.oom import OOM, ooms_of_event, ooms_of_update
from trimtab.model.event import Event
from trimtab.model.pod import Pod
from trimtab.operator.caches import KindCache

MOST_WAITING = 10_000
"""Kills kept between two loops; a cluster where more happen has other worries, and memory stays bounded."""


class OOMWatch:
    """Collects kills; `take` hands them over once."""

    def __init__(self, client: Client, pods: KindCache[Pod]) -> None:
        self._waiting: deque[OOM] = deque(maxlen=MOST_WAITING)
        self._events = Informer(client, CORE_EVENTS.into(Event), Selection(fields="reason=Evicted"))
        self._events.subscribe(self._take_event)
        pods.subscribe(self._take_pod)

    async def run(self) -> None:
        """Follow eviction events until cancelled."""
        await self._events.run()

    def take(self) -> tuple[OOM, ...]:
        """Return what happened since the last call."""
        found = tuple(self._waiting)
        self._waiting.clear()
        return found

    def put_back(self, ooms: tuple[OOM, ...]) -> None:
        """Keep kills for the next loop, whose containers the model does not know yet."""
        self._waiting.extendleft(reversed(ooms))

    def _take_pod(self, delta: Delta[Pod]) -> None:
        if delta.change is Change.UPDATED and delta.old is not None and delta.new is not None:
            self._waiting.extend(ooms_of_update(delta.old, delta.new))

    def _take_event(self, delta: Delta[Event]) -> None:
        if delta.new is not None:
            self._waiting.extend(ooms_of_event(delta.new))
