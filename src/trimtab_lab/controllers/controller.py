"""What all workload controllers share: a queue of keys, fed by the store's changes after a lag."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster.resource import Resource
from trimtab_lab.controllers.objects import Key, Objects, storage_of
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.storage.store import Entry, WatchCacheEvent

#: The longest time until controllers see a change, in seconds. Those of a real cluster read caches, which lag.
LAG_SECONDS = 0.02
Lag = Callable[[], float]


def seeded_lag(seed: int | None) -> Lag:
    """Return how long each change takes to reach the controllers."""
    chance = random.Random(seed)  # noqa: S311 - spreads events in time, keeps no secret
    return lambda: chance.uniform(0, LAG_SECONDS)


class Controller:
    """Reconciles the objects of one resource."""

    def __init__(self, resource: Resource[Any], objects: Objects, clock: Clock, lag: Lag) -> None:
        self.resource = resource
        self.objects = objects
        self.clock = clock
        self._lag = lag
        self._storage = storage_of(resource)
        self.queue = WorkQueue(resource.plural, clock, self.reconcile)
        objects.store.listen(self._on_change)

    async def reconcile(self, key: Key) -> None:
        """Bring one object up to date."""
        raise NotImplementedError

    def _on_change(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue an object that changed, and the owner of an object that it may own."""
        if storage == self._storage:
            self.enqueue((change.entry.namespace, change.entry.name))
            return
        for entry in (change.entry, change.previous):
            for uid in entry.owners if entry is not None else ():
                owner = self.objects.store.by_uid(uid)
                if owner is not None and owner[0] == self._storage:
                    self.enqueue((owner[1].namespace, owner[1].name))
        self.on_other(storage, change)

    def on_other(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue what a change of another resource concerns."""

    def enqueue(self, key: Key) -> None:
        """Reconcile an object once the change has reached the controllers."""
        self.queue.add_after(key, self._lag())

    def enqueue_matching(self, labels: Entry) -> None:
        """Enqueue the objects of a namespace whose selector matches an object without a controller."""
        for owner in self.objects.all(self.resource, labels.namespace):
            if owner.selector.matches(labels.labels):
                self.enqueue((owner.metadata.namespace, owner.metadata.name))


async def stop(tasks: Sequence[asyncio.Task[None]], queues: Sequence[WorkQueue] = ()) -> None:
    """Cancel the timers of queues, then tasks."""
    for queue in queues:
        queue.close()
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
