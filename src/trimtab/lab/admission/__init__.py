"""Admission: others may change or refuse a write before it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from trimtab.lab.apiserver.request import ApiRequest, RequestPath
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.storage.codec import JsonObject


@dataclass(frozen=True)
class AdmissionAttributes:
    """One write on its way: what is done to which object, and the object before and after."""

    operation: str
    resource: ServedResource
    target: RequestPath
    obj: JsonObject | None
    old: JsonObject | None
    request: ApiRequest

    def with_object(self, obj: JsonObject) -> "AdmissionAttributes":
        """Return the attempt with the object as it is now."""
        return replace(self, obj=obj)


class AdmissionPlugin(Protocol):
    """One admission step."""

    async def mutate(self, attempt: AdmissionAttributes) -> JsonObject | None:
        """Return the object, changed or not."""
        ...

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Raise when the write is refused."""
        ...


class AdmissionChain:
    """All admission steps in order."""

    def __init__(self, steps: Sequence[AdmissionPlugin] = ()) -> None:
        self._steps = tuple(steps)

    async def mutate(self, attempt: AdmissionAttributes) -> JsonObject:
        """Return the object after every step."""
        assert attempt.obj is not None, "only writes of an object can be changed on their way"
        for step in self._steps:
            changed = await step.mutate(attempt)
            if changed is not None:
                attempt = attempt.with_object(changed)
        assert attempt.obj is not None
        return attempt.obj

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Let every step refuse the write."""
        for step in self._steps:
            await step.validate(attempt)
