"""The annotation with the last resize that the updater requested of a pod.

It is written before the resize is requested, so a new updater process continues where the last one stopped. It holds
the VPA, the time and the requested resources, and how often the kubelet refused to lower a memory limit in use.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated

import msgspec

from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire

RESIZE_ANNOTATION = "trimtab.dev/resize"
FIRST_RETRY = timedelta(minutes=5)
LAST_RETRY = timedelta(hours=1)

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a time zone. Every user may write the annotation; one without a time zone is ignored."""
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class ResizeAnnotation(Wire):
    """The last resize that was requested of a pod."""

    vpa: str = ""
    at: Moment | None = None
    resources: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """The requested resources, by container."""
    refusals: Count = 0
    """How often in a row the kubelet refused to lower a memory limit."""
    refused_at: Moment | None = None
    """When it refused last; absent while a lower limit is requested again."""
    ends_boost: bool = False
    """Whether the resize ends a startup boost. Reverting it would make the boost permanent: its annotation is gone."""

    def matches_spec(self, pod: Pod) -> bool:
        """Return whether the pod's spec is still what was requested."""
        return self.at is not None and has_resources(pod, self.resources)

    def keeps_memory_limits(self, now: datetime) -> bool:
        """Return whether it is too early to lower a memory limit again."""
        if self.refused_at is None:
            return False
        doublings: int = min(max(self.refusals - 1, 0), 8)
        return now - self.refused_at < min(FIRST_RETRY * (1 << doublings), LAST_RETRY)


NO_RESIZE_ANNOTATION = ResizeAnnotation()


def read_resize_annotation(pod: Pod) -> ResizeAnnotation:
    """Return the pod's annotation, or an empty one if it is absent or malformed."""
    value = pod.metadata.annotations.get(RESIZE_ANNOTATION)
    return NO_RESIZE_ANNOTATION if value is None else _decoded(value)


@lru_cache(maxsize=4096)
def _decoded(value: str) -> ResizeAnnotation:
    try:
        return wire.decode(value, ResizeAnnotation)
    except wire.WireError:
        return NO_RESIZE_ANNOTATION


def has_resources(pod: Pod, resources: Mapping[str, ResourceRequirements]) -> bool:
    """Return whether each of these containers has these requests and limits in its spec."""
    return all(
        resources.get(container.name, container.resources) == container.resources
        for container in pod.spec.containers
    )
