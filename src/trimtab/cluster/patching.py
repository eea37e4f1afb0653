"""The ways to change part of an object, and what must still hold on the server when we do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from trimtab.cluster.resource import Json


class PatchType(Enum):
    """The ways to change part of an object."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still hold on the server for a write to be accepted."""

    uid: str | None = None
    resource_version: str | None = None

    def as_json(self) -> Json:
        """Return the fields that are set, as the API spells them."""
        pairs = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {name: value for name, value in pairs.items() if value}

    def within(self, body: Any, how: PatchType) -> Any:
        """Return the patch with the preconditions in it."""
        wanted = self.as_json()
        if not wanted:
            return body
        if how is PatchType.JSON:
            tests = [
                {"op": "test", "path": f"/metadata/{name}", "value": value} for name, value in wanted.items()
            ]
            return [*tests, *body]
        return {**body, "metadata": {**body.get("metadata", {}), **wanted}}


NO_PRECONDITIONS = Preconditions()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete."""

    preconditions: Preconditions = NO_PRECONDITIONS
    grace_seconds: int | None = None
    propagation: str | None = None

    def as_json(self) -> Json:
        """Return the options that are set, as the API spells them."""
        pairs: Mapping[str, Any] = {
            "preconditions": self.preconditions.as_json() or None,
            "gracePeriodSeconds": self.grace_seconds,
            "propagationPolicy": self.propagation,
        }
        return {name: value for name, value in pairs.items() if value is not None}


DELETE_DEFAULTS = DeleteOptions()
