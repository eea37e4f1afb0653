"""What the components of one process share: client, informers, discovery, metrics and events.

`trimtab run` creates one `Runtime` and gives it to every component, so that two components never watch, discover or
read the same data twice.
"""

import asyncio
import logging
from functools import cached_property

from prometheus_client import CollectorRegistry

from trimtab.clock import Clock, keep_running
from trimtab.cluster.cache.shared import InformerFactory, SharedInformers
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.events import EventBroadcaster
from trimtab.cluster.leases.fence import ClosedFence, Fence, NoFence
from trimtab.metrics.reader import MetricsReader
from trimtab.model.author import Author
from trimtab.operator.ownership import Ownership
from trimtab.operator.process import acting_client
from trimtab.operator.prometheus import CacheMetrics
from trimtab.operator.settings.settings import Settings
from trimtab.operator.share_keeper import share_of
from trimtab.plugins.guard import ASK_THE_OPERATOR, INSTALL_IT, Guards
from trimtab.plugins.metrics import PluginMetrics
from trimtab.plugins.registry import Plugins, load_usable_plugins

log = logging.getLogger(__name__)

FLUSH_SECONDS = 2.0
"""How long `close` waits for events that are not written yet."""


class Runtime:
    """The shared parts of one process. Create it inside the event loop, and close it at the end."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        settings: Settings,
        *,
        registry: CollectorRegistry | None = None,
        fence: Fence | None = None,
        instance: str = "trimtab",
        plugins: Plugins | None = None,
    ) -> None:
        """Share these parts, with the plug-ins that the settings name unless `plugins` are given."""
        self.clock = clock
        self.client = acting_client(client, settings)
        self.settings = settings
        self.registry = registry or CollectorRegistry()
        self.fence = fence or NoFence()
        self.writer = self.client.fenced(self.fence)
        """The client whose writes stop without the Lease."""
        self.ownership = Ownership(self.client, self.fence)
        self.instance = instance
        self.discovery = Discovery(self.client)
        self.informers = InformerFactory(self.client, share_of(self.client, self.fence, settings))
        CacheMetrics(self.informers, self.registry)
        self.events = EventBroadcaster(self.writer, instance)
        self.guards = Guards(
            load_usable_plugins(settings.plugins) if plugins is None else plugins,
            advice=ASK_THE_OPERATOR if isinstance(self.fence, ClosedFence) else INSTALL_IT,
        )
        """The loaded plug-ins."""
        PluginMetrics(self.guards, self.registry)
        self._writing_events: asyncio.Task[None] | None = None

    def author_for(self, key: str) -> Author:
        """Return this replica and its Lease for `namespace/name`."""
        return Author(replica=self.instance, lease_transitions=self.ownership.transitions_for(key))

    @cached_property
    def metrics(self) -> MetricsReader:
        """Return the reader of the metrics APIs. Equal queries in flight are one request."""
        settings = self.settings
        return MetricsReader(
            self.clock,
            self.client,
            deadline=settings.metrics.metrics_deadline.total_seconds(),
            max_bytes=settings.metrics.metrics_max_bytes,
        )

    def component_informers(self) -> SharedInformers:
        """Return an empty set of the shared informers, for one component to fill."""
        return SharedInformers(self.informers)

    def start(self) -> None:
        """Write events in the background from now on."""
        if self._writing_events is None:
            self._writing_events = keep_running("the recorder of events", self.events.run)

    async def run(self) -> None:
        """Run until cancelled, then close."""
        self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop watching and reading, then write the events that still wait."""
        if self._writing_events is not None:
            self._writing_events.cancel()
            await asyncio.gather(self._writing_events, return_exceptions=True)
            self._writing_events = None
        if "metrics" in self.__dict__:
            await self.metrics.close()
        await self.informers.close()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self.events.flush()
        except TimeoutError:
            log.debug("events were still waiting when the program ended")
