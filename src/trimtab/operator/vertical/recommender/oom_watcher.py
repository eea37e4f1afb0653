"""Collects out-of-memory kills from pod updates, eviction events, and the pods of a shard that was just gained."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trimtab.cluster.cache.parts import Share
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.decide.vertical.input.oom import OOM, ooms_of_event, ooms_of_pod, ooms_of_update
from trimtab.decide.vertical.rules import Rules
from trimtab.model import times
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import Pod

MAX_WAITING = 10_000
"""Kills kept between two steps, so that memory stays bounded."""

HAND_OVER_NS = 120 * times.SECOND_NS
"""How long a shard may be without an owner. The shard of a dead replica is taken over well within that."""


class Kill(NamedTuple):
    """A kill, with the pod as it was then unless only an event reported it."""

    oom: OOM
    pod: Pod | None = None
    needs_checkpoint: bool = False
    """Whether the kill counts only for a VPA whose last checkpoint is older. It may be from before the VPA."""

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """Return what two reports of one kill have in common."""
        return self.oom.namespace, self.oom.pod, self.oom.container, self.oom.time_ns


class OomObserver:
    """Collects kills until `take` returns them."""

    def __init__(
        self,
        client: Client,
        pods: NamespacedInformer[Pod],
        share: Share,
        rules: Rules = Rules.TRIMTAB,
    ) -> None:
        self._waiting: deque[Kill] = deque(maxlen=MAX_WAITING)
        self._rules = rules
        self._events = NamespacedInformer(client, CORE_EVENTS.into(Event), share, fields="reason=Evicted")
        self._events.subscribe(self._on_event)
        pods.subscribe(self._on_pod)

    async def run(self) -> None:
        """Watch eviction events in the watched namespaces until cancelled."""
        await self._events.run()

    def problems(self) -> dict[str, str]:
        """Return why eviction events cannot be watched, by name."""
        error = self._events.last_error()
        return {"eviction events": error} if error else {}

    def add_missed(self, pods: Iterable[Pod], now_ns: int) -> None:
        """Add the kills that pods of a gained shard still show. They may have happened while it had no owner."""
        known = {kill.identity for kill in self._waiting}
        for pod in pods:
            for oom in ooms_of_pod(pod):
                kill = Kill(oom, pod, needs_checkpoint=now_ns - oom.time_ns >= HAND_OVER_NS)
                if kill.identity not in known:
                    self._waiting.append(kill)

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
            ooms = ooms_of_update(delta.old, delta.new, self._rules)
            self._waiting.extend(Kill(oom, delta.new) for oom in ooms)

    def _on_event(self, delta: Delta[Event]) -> None:
        if delta.new is not None:
            self._waiting.extend(Kill(oom) for oom in ooms_of_event(delta.new))
