"""What the updater asked of a pod, kept on the pod, so that a fresh updater knows what is under way.

The annotation is written before the resize is requested. It says which VPA asked, when, and for what; and how often the
kubelet refused to lower a memory limit that was in use.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated

import msgspec

from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire

NOTE_ANNOTATION = "trimtab.dev/resize"
FIRST_RETRY = timedelta(minutes=5)
LAST_RETRY = timedelta(hours=1)

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time that can be compared with ours. Anybody may write the annotation; a note with another one is illegible."""
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class ResizeNote(Wire):
    """The last resize that was requested of a pod."""

    vpa: str = ""
    at: Moment | None = None
    resources: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """What each container was to have."""
    refusals: Count = 0
    """How often in a row the kubelet refused to lower a memory limit."""
    refused_at: Moment | None = None
    """When it refused last; absent while a lower limit is requested again."""
    ends_boost: bool = False
    """Whether it ends a startup boost. Taking it back would give the boost for good, since its note is gone by then."""

    def is_asked_of(self, pod: Pod) -> bool:
        """Return whether the pod's spec is what was requested; another writer may have changed it since."""
        return self.at is not None and has_resources(pod, self.resources)

    def holds_limits(self, now: datetime) -> bool:
        """Return whether it is too early to try to lower a memory limit again."""
        if self.refused_at is None:
            return False
        doublings: int = min(max(self.refusals - 1, 0), 8)
        return now - self.refused_at < min(FIRST_RETRY * (1 << doublings), LAST_RETRY)


NO_NOTE = ResizeNote()


def read_note(pod: Pod) -> ResizeNote:
    """Read the note; one that is absent or illegible says nothing."""
    value = pod.metadata.annotations.get(NOTE_ANNOTATION)
    return NO_NOTE if value is None else _decoded(value)


@lru_cache(maxsize=4096)
def _decoded(value: str) -> ResizeNote:
    try:
        return wire.decode(value, ResizeNote)
    except wire.WireError:
        return NO_NOTE


def has_resources(pod: Pod, resources: Mapping[str, ResourceRequirements]) -> bool:
    """Return whether each of these containers has these requests and limits in its spec."""
    return all(
        resources.get(container.name, container.resources) == container.resources
        for container in pod.spec.containers
    )
