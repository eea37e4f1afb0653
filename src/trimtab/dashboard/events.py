"""The events that a cluster keeps about an autoscaler, whoever told them."""

import logging
from typing import Final

from trimtab.cluster import errors
from trimtab.cluster.client import Client, Selection
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.dashboard.views import EventView
from trimtab.model.core.objects import Event

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
            found = await self._client.list(CORE_EVENTS.into(Event), Selection(namespace, fields=fields))
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
