"""The VPAs of a cluster, once it serves any: a dashboard may run where they are not installed, or not yet."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from trimtab.cluster import errors
from trimtab.cluster.cache.informers import Caches
from trimtab.cluster.discovery import Discovery
from trimtab.dashboard.vertical import OperatorVertical
from trimtab.dashboard.views import VerticalPage, VerticalRow
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.operator import Parts
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.wiring import compat_of

log = logging.getLogger(__name__)

SEEK_SECONDS: Final = 30.0


class ServedVPAs:
    """A source of VPAs that is empty until there is something to watch."""

    def __init__(
        self,
        parts: Parts,
        source: Callable[[ClusterView], OperatorVertical],
        settings: Callable[[], Settings],
    ) -> None:
        """Take what makes the source, and what returns the settings of one who looks, as they are at the moment."""
        self._parts = parts
        self._settings = settings
        self._make = source
        self._source = source(parts.site.view.size_pods()) if parts.site is not None else None
        self._caches: Caches | None = None
        self._view = parts.site.view if parts.site is not None else None

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, by id."""
        return self._source.rows() if self._source is not None else ()

    async def page(self, identity: str) -> VerticalPage | None:
        """Return everything about one VPA."""
        return await self._source.page(identity) if self._source is not None else None

    def problems(self) -> dict[str, str]:
        """Return what keeps VPAs from being seen."""
        return {
            cache.resource.plural: cache.last_error() or "the first list is not complete"
            for cache in (self._view.all_caches() if self._view is not None else ())
            if not cache.has_synced
        }

    async def run(self) -> None:
        """Watch the VPAs as soon as the cluster serves them."""
        if self._source is not None:
            return
        discovery = Discovery(self._parts.client)
        while not await self._is_served(discovery):
            await self._parts.clock.sleep(SEEK_SECONDS)
        await self._watch()

    async def adopt(self) -> None:
        """Go by the settings as they are now, if the view is this page's own."""
        if self._caches is not None:
            await self._watch()

    async def _watch(self) -> None:
        """Watch the namespaces of the settings, and go by their gates."""
        settings = self._settings()
        if self._caches is None or self._caches.namespaces != settings.watch_namespaces:
            await self.close()
            self._caches = Caches(self._parts.client, settings.watch_namespaces)
            self._view = ClusterView(self._parts.client, self._caches).size_pods()
            # Shown at once: a kind that may not be listed must not hide the others.
            self._source = self._make(self._view)
        assert self._view is not None
        self._view.gates = FeatureGates.parse(settings.feature_gates)
        self._view.compat = compat_of(settings.compat)
        try:
            await self._view.begin()
        except errors.ClusterError as error:
            log.info("whether there are scopes cannot be told: %s", error)

    async def close(self) -> None:
        """Stop watching."""
        if self._caches is not None:
            await self._caches.close()

    async def _is_served(self, discovery: Discovery) -> bool:
        try:
            return await discovery.served(VPAS.group, VPAS.version, VPAS.plural) is not None
        except errors.ClusterError as error:
            log.info("whether there are VPAs cannot be told: %s", error)
            return False
