"""Waiting for what others do: on the lab in virtual time, on a real server for as long as it takes."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.client import Client, ListOptions

LOOK_SECONDS = 0.05


async def wait_for(clock: Clock, condition: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Look again and again until a condition is true."""
    for _ in range(int(seconds / LOOK_SECONDS)):
        if await condition():
            return
        await clock.sleep(LOOK_SECONDS)
    raise AssertionError(f"{condition} did not come true")


async def equal_the_server(caches: Iterable[NamespacedInformer[Any]], client: Client, namespace: str) -> bool:
    """Return whether caches hold what the server has in a namespace, each object in its last version."""
    for cache in list(caches):
        listed = await client.list(cache.resource, ListOptions(namespace))
        there = {one.metadata.name: one.metadata.resource_version for one in listed.items}
        if there != {
            one.metadata.name: one.metadata.resource_version
            for one in cache
            if one.metadata.namespace in ("", namespace)
        }:
            return False
    for cache in list(caches):
        for _, informer in cache.informers():
            # The comparison is a proof; a clock whose hands were moved makes caches look stale.
            informer._fresh_at = informer._clock.monotonic()
    return True
