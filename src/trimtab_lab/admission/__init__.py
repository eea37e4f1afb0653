"""Admission: plugins change or reject a write before it is stored.

`AdmissionChain` calls the plugins in order: `pod_resources` (LimitRanger, PodResizeValidator) and `webhooks`, whose rules and
selectors are in `matching`. Validation that belongs to a kind is in `resources`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trimtab_lab.apiserver.request import ResourceRequest
from trimtab_lab.storage.codec import JsonObject


@dataclass(frozen=True)
class AdmissionAttributes:
    """A write before it is stored: the request, and the object before and after."""

    operation: str
    request: ResourceRequest
    obj: JsonObject | None
    old: JsonObject | None

    def with_object(self, obj: JsonObject) -> "AdmissionAttributes":
        """Return the attributes with a changed object."""
        return replace(self, obj=obj)


class AdmissionPlugin:
    """A step of admission. The base class admits every write unchanged."""

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject | None:
        """Return the changed object, or None if nothing changed."""
        return None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an error to reject the write."""


class AdmissionChain:
    """All admission plugins in order."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self._plugins = tuple(plugins)

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject:
        """Return the object after every plugin."""
        for plugin in self._plugins:
            changed = await plugin.mutate(attributes)
            if changed is not None:
                attributes = attributes.with_object(changed)
        assert attributes.obj is not None, "only writes of an object are mutated"
        return attributes.obj

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an error if a plugin rejects the write."""
        for plugin in self._plugins:
            await plugin.validate(attributes)
