"""Watches the kinds of HPAs that the settings ask for, as soon as the API server serves them."""

import asyncio
import logging

from trimtab.cluster import errors
from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.cluster.resource import Resource
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache
from trimtab.operator.horizontal.inputs.kinds import (
    NATIVE_HPAS,
    OWN_HPAS,
    ensure_hpa_controller_is_off,
    to_cache_entry,
)
from trimtab.operator.runtime import Runtime

log = logging.getLogger(__name__)

FIRST_LISTS_SECONDS = 10.0
"""How long to wait for the first lists, before starting without a kind that cannot be listed."""

STALE_AFTER = 60.0
"""Seconds without a sign from the server after which a cache is too old for decisions (fault F04)."""


class HpaWatches:
    """Fills the cache of HPAs, and reports what is wrong with its informers."""

    def __init__(self, runtime: Runtime, caches: SharedInformers, hpas: HpaCache) -> None:
        self._runtime = runtime
        self._caches = caches
        self._hpas = hpas
        settings = runtime.settings
        self._missing: dict[str, Resource[HorizontalPodAutoscaler]] = {}
        if settings.horizontal.own_hpas:
            self._missing["own"] = OWN_HPAS
        if settings.horizontal.native_hpas:
            self._missing["native"] = NATIVE_HPAS
        self._problems: dict[str, str] = {}

    async def start(self) -> None:
        """Watch the kinds that are served, and wait for their lists."""
        for name, resource in tuple(self._missing.items()):
            problem = await self._find_problem(resource)
            if problem:
                self._problems[name] = problem
                continue
            self._problems.pop(name, None)
            del self._missing[name]
            self._caches.get(resource.with_transform(to_cache_entry)).subscribe(
                self._hpas.event_handler(resource)
            )
        await self.wait_for_lists()
        for name, problem in self._problems.items():
            log.warning("%s HPAs: %s", name, problem)

    async def retry(self) -> None:
        """Try again to watch kinds that could not be watched before."""
        if self._problems:
            await self.start()

    async def wait_for_lists(self) -> None:
        """Wait for the first lists, but not long for a kind that cannot be listed (fault F16)."""
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                await self._caches.wait_synced()
        except TimeoutError:
            for name, problem in self._unlisted().items():
                log.warning("%s: %s", name, problem)

    def problems(self) -> dict[str, str]:
        """Return what is wrong with the informers, by name."""
        return self._problems | self._unlisted() | self.stale_caches()

    def stale_caches(self) -> dict[str, str]:
        """Return the caches that are too old for decisions, by resource."""
        return {
            cache.resource.plural: f"no sign from the server for {cache.staleness():.0f} s"
            for cache in self._caches
            if cache.has_synced and cache.staleness() > STALE_AFTER
        }

    def _unlisted(self) -> dict[str, str]:
        return {
            cache.resource.plural: cache.last_error() or "the first list is not complete"
            for cache in self._caches
            if not cache.has_synced
        }

    async def _find_problem(self, resource: Resource[HorizontalPodAutoscaler]) -> str:
        """Return why a kind cannot be watched now, or "" if it can."""
        try:
            served = await self._runtime.discovery.served(resource.group, resource.version, resource.plural)
        except errors.ClusterError as error:
            return str(error)
        if served is None:
            return (
                f"{resource.plural}.{resource.group} is not served: install it with "
                "`trimtab crds | kubectl apply --server-side -f -`"
            )
        if resource is not NATIVE_HPAS or isinstance(self._runtime.fence, ClosedFence):
            return ""
        runtime = self._runtime
        try:
            await ensure_hpa_controller_is_off(
                runtime.client, runtime.settings.watch_namespaces, runtime.clock.now()
            )
        except errors.ClusterError as error:
            return f"whether kube-controller-manager acts on native HPAs cannot be seen: {error}"
        return ""
