"""What the vertical loops of another process know, as far as the cluster tells it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.informers import InformerFactory, SharedInformers
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.dashboard.pages.views import EventView, VerticalPage, VerticalRow
from trimtab.dashboard.sources.vertical import OperatorVertical
from trimtab.decide.vertical.update.actions import PodUpdateResult
from trimtab.model.core.objects import Event
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.operator import Parts
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot, compat_of
from trimtab.operator.vertical.explain import (
    CheckpointedState,
    CheckpointReader,
    preview_updates,
)
from trimtab.operator.vertical.kinds import VPAS

log = logging.getLogger(__name__)

MOST_EVENTS: Final = 50
_ABOUT: Final = {
    "hpa": ("HorizontalPodAutoscaler", "autoscaling.trimtab.dev/"),
    "native": ("HorizontalPodAutoscaler", "autoscaling/"),
    "vpa": ("VerticalPodAutoscaler", "autoscaling.k8s.io/"),
}


class ClusterEvents:
    """Reads events; where that is not allowed there are none to show."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def about(self, identity: str) -> tuple[EventView, ...]:
        """Return what was told about one autoscaler, newest first, by its id."""
        kind, namespace, name = identity.split("/")
        wanted, group = _ABOUT[kind]
        fields = f"involvedObject.kind={wanted},involvedObject.name={name}"
        try:
            found = await self._client.list(CORE_EVENTS.into(Event), ListOptions(namespace, fields=fields))
        except errors.ClusterError as error:
            log.info("events about %s cannot be read: %s", identity, error)
            return ()
        told = [_view(one) for one in found.items if one.involved_object.api_version.startswith(group)]
        return tuple(sorted(told, key=lambda one: -one.at)[:MOST_EVENTS])


def _view(event: Event) -> EventView:
    at = (
        event.last_timestamp or event.event_time or event.first_timestamp or event.metadata.creation_timestamp
    )
    return EventView(
        at=at.timestamp() if at is not None else 0.0,
        type=event.type,
        reason=event.reason,
        message=event.message,
    )


@dataclass(frozen=True)
class RemoteState:
    """Checkpoints for what the recommender learned, a trial loop for what the updater would do, stored events."""

    clock: Clock
    client: Client
    view: ClusterView
    followed: Callable[[], FoundSettings]
    """Returns the settings of recommender and updater, as far as they are known at the moment."""

    async def learned(self, vpa: str, standings: ControlSnapshot) -> CheckpointedState | None:
        """Return what the recommender saved about a VPA."""
        try:
            saved = CheckpointReader(self.clock, self.client, self.view, self.followed().settings)
            return await saved.read(vpa, standings)
        except errors.ClusterError as error:
            log.info("the saved history of %s cannot be read: %s", vpa, error)
            return None

    async def verdicts(self) -> Mapping[str, PodUpdateResult]:
        """Return what the next update loop would do with each pod."""
        found = self.followed()
        try:
            return await preview_updates(
                self.client,
                self.view,
                found.settings,
                self.clock.now(),
                sees_all_pods=found.updater_sees_all_pods,
            )
        except errors.ClusterError as error:
            log.info("what the updater would do cannot be foreseen: %s", error)
            return {}

    async def events(self, identity: str) -> tuple[EventView, ...]:
        """Return what was told about a VPA, by its id."""
        return await ClusterEvents(self.client).about(identity)


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
        self._informers: InformerFactory | None = None
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
        discovery = self._parts.runtime.discovery
        while not await self._is_served(discovery):
            await self._parts.clock.sleep(SEEK_SECONDS)
        await self._watch()

    async def adopt(self) -> None:
        """Go by the settings as they are now, if the view is this page's own."""
        if self._informers is not None:
            await self._watch()

    async def _watch(self) -> None:
        """Watch the namespaces of the settings, and go by their gates."""
        settings = self._settings()
        if self._informers is None or self._informers.namespaces != settings.watch_namespaces:
            await self.close()
            client = self._parts.client
            self._informers = InformerFactory(client, settings.watch_namespaces)
            self._view = ClusterView(
                client, self._parts.runtime.discovery, SharedInformers(self._informers)
            ).size_pods()
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
        if self._informers is not None:
            await self._informers.close()

    async def _is_served(self, discovery: Discovery) -> bool:
        try:
            return await discovery.served(VPAS.group, VPAS.version, VPAS.plural) is not None
        except errors.ClusterError as error:
            log.info("whether there are VPAs cannot be told: %s", error)
            return False
