"""State of vertical loops in other processes, read from the cluster: events, checkpoints, VPAs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.shared import InformerFactory, NamespacedInformer, SharedInformers
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.dashboard.auth.rights import NamespaceRights
from trimtab.dashboard.pages.views import EventView, VerticalPage, VerticalRow
from trimtab.dashboard.sources.vertical import OperatorVertical
from trimtab.decide.vertical.update.actions import PodUpdateResult
from trimtab.model.core.objects import Event
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP
from trimtab.operator.operator import Parts
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot, vpa_rules
from trimtab.operator.vertical.explain import CheckpointedState, CheckpointReader, preview_updates
from trimtab.operator.vertical.kinds import kinds_of

log = logging.getLogger(__name__)

DISCOVERY_SECONDS: Final = 30.0
"""How often the cluster is checked for VPAs until it serves them."""
PREVIEW_SECONDS: Final = 5.0
"""How long a preview of updates is shown. Pages of VPAs load every 10 s."""
MAX_EVENTS: Final = 50
_OF_SIZES: Final = ("Resize", "Evict")
"""What the reasons of events about the size of a pod contain: those of Trimtab, of upstream's VPA and of the kubelet."""
_INVOLVED_OBJECTS: Final = {
    "hpa": ("HorizontalPodAutoscaler", f"{OWN_GROUP}/"),
    "native": ("HorizontalPodAutoscaler", "autoscaling/"),
    "vpa": ("VerticalPodAutoscaler", f"{OWN_GROUP}/"),
    "native-vpa": ("VerticalPodAutoscaler", f"{NATIVE_VPA_GROUP}/"),
}


class ClusterEvents:
    """Lists stored events. If that is forbidden, there are none."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def about(self, identity: str, pods: Collection[str] = ()) -> tuple[EventView, ...]:
        """Return the events of an autoscaler by its id, and those about the sizes of `pods`, newest first."""
        kind, namespace, name = identity.split("/")
        involved_kind, group = _INVOLVED_OBJECTS[kind]
        own = await self._list(namespace, f"involvedObject.kind={involved_kind},involvedObject.name={name}")
        views = [_view(event) for event in own if event.involved_object.api_version.startswith(group)]
        if pods:
            views += [
                _view(event, event.involved_object.name)
                for event in await self._list(namespace, "involvedObject.kind=Pod")
                if event.involved_object.name in pods and any(word in event.reason for word in _OF_SIZES)
            ]
        return tuple(sorted(views, key=lambda view: -view.at)[:MAX_EVENTS])

    async def _list(self, namespace: str, fields: str) -> Sequence[Event]:
        try:
            listed = await self._client.list(CORE_EVENTS.into(Event), ListOptions(namespace, fields=fields))
        except errors.ClusterError as error:
            log.info("events of %s in %s cannot be listed: %s", fields, namespace, error)
            return ()
        return listed.items


def _view(event: Event, pod: str = "") -> EventView:
    at = (
        event.last_timestamp or event.event_time or event.first_timestamp or event.metadata.creation_timestamp
    )
    return EventView(
        at=at.timestamp() if at is not None else 0.0,
        type=event.type,
        reason=event.reason,
        message=event.message,
        pod=pod,
    )


class _Preview:
    """The last preview of updates. It covers all pods, so all pages share it."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._made: tuple[float, Mapping[str, PodUpdateResult]] | None = None

    async def get(
        self, clock: Clock, make: Callable[[], Awaitable[Mapping[str, PodUpdateResult]]]
    ) -> Mapping[str, PodUpdateResult]:
        """Return the preview, which `make` makes again after some seconds."""
        async with self._turn:
            now = clock.monotonic()
            if self._made is None or now - self._made[0] >= PREVIEW_SECONDS:
                self._made = (now, await make())
            return self._made[1]


@dataclass(frozen=True)
class RemoteState:
    """Reads checkpoints of the recommender, previews the updater, and lists events."""

    clock: Clock
    client: Client
    view: ClusterView
    settings: Callable[[], FoundSettings]
    """Returns the current settings of recommender and updater."""
    _preview: _Preview = field(default_factory=_Preview)

    async def checkpointed(self, vpa: str, control: ControlSnapshot) -> CheckpointedState | None:
        """Return the recommender's checkpointed state of a VPA, or None."""
        try:
            reader = CheckpointReader(self.clock, self.client, self.view, self.settings().settings)
            return await reader.read(vpa, control)
        except errors.ClusterError as error:
            log.info("checkpoints of VPA %s cannot be read: %s", vpa, error)
            return None

    async def preview(self) -> Mapping[str, PodUpdateResult]:
        """Return what the next update loop would do with each pod, some seconds old at most."""
        return await self._preview.get(self.clock, self._preview_updates)

    async def _preview_updates(self) -> Mapping[str, PodUpdateResult]:
        settings = self.settings()
        try:
            return await preview_updates(
                self.client,
                self.view,
                settings.settings,
                self.clock.now(),
                sees_all_pods=settings.updater_sees_all_pods,
            )
        except errors.ClusterError as error:
            log.info("updates cannot be previewed: %s", error)
            return {}

    async def events(self, identity: str, pods: Collection[str]) -> tuple[EventView, ...]:
        """Return the events of a VPA by its id, and those about the sizes of these pods of its namespace."""
        return await ClusterEvents(self.client).about(identity, pods)


class ServedVPAs:
    """Returns the VPAs, from the time on when the cluster serves the kind."""

    def __init__(
        self,
        parts: Parts,
        build_source: Callable[[ClusterView], OperatorVertical],
        settings: Callable[[], Settings],
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._build_source = build_source
        self._source = build_source(parts.site.view.size_pods()) if parts.site is not None else None
        self._informers: InformerFactory | None = None
        self._view = parts.site.view if parts.site is not None else None
        self.is_absent = False
        """Whether the cluster is known not to serve VPAs."""

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, sorted by id."""
        return self._source.rows() if self._source is not None else ()

    async def page(self, identity: str, rights: NamespaceRights) -> VerticalPage | None:
        """Return the parts of a VPA's page that a viewer may see, or None if there is no such VPA."""
        return await self._source.page(identity, rights) if self._source is not None else None

    @property
    def is_read(self) -> bool:
        """Return whether the VPAs are cached, or known not to be served."""
        return self.is_absent if self._view is None else self._view.vpas.is_read

    def caches(self) -> Iterator[NamespacedInformer[Any]]:
        """Yield every cache in use."""
        yield from self._view.all_caches() if self._view is not None else ()

    def problems(self) -> dict[str, str]:
        """Return why VPAs or their pods cannot be listed, by resource."""
        return {
            cache.resource.plural: cache.last_error() or "the first list is not complete"
            for cache in self.caches()
            if not cache.has_synced
        }

    async def run(self) -> None:
        """Watch the VPAs as soon as the cluster serves them."""
        if self._source is not None:
            return
        while not await self._is_served():
            await self._parts.clock.sleep(DISCOVERY_SECONDS)
        await self._watch()

    async def apply_settings(self) -> None:
        """Apply the current settings, unless the view belongs to the operator."""
        if self._informers is not None:
            await self._watch()

    async def _watch(self) -> None:
        settings = self._settings()
        kinds = kinds_of(settings)
        is_same = self._view is not None and self._view.kinds == kinds
        if self._informers is None or self._informers.namespaces != settings.watch_namespaces or not is_same:
            await self.close()
            client = self._parts.client
            self._informers = InformerFactory(client, settings.watch_namespaces)
            self._view = ClusterView(
                client, self._parts.runtime.discovery, SharedInformers(self._informers), kinds=kinds
            ).size_pods()
            # Set before the first list, so that a forbidden kind does not hide the others.
            self._source = self._build_source(self._view)
        assert self._view is not None
        self._view.gates = settings.gates
        self._view.rules = vpa_rules(settings.compat)
        try:
            await self._view.begin()
        except errors.ClusterError as error:
            log.info("discovering VPAScopes failed: %s", error)

    async def close(self) -> None:
        """Stop watching."""
        if self._informers is not None:
            await self._informers.close()

    async def _is_served(self) -> bool:
        discovery, kinds = self._parts.runtime.discovery, [kind.vpas for kind in kinds_of(self._settings())]
        try:
            served = [await discovery.served(kind.group, kind.version, kind.plural) for kind in kinds]
        except errors.ClusterError as error:
            log.info("discovering VPAs failed: %s", error)
            return False
        self.is_absent = not any(served)
        return not self.is_absent
