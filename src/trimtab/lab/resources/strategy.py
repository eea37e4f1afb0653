"""What differs from kind to kind: defaults, what a write may set, validation, conversion, grace.

A strategy sees storage-version objects as plain JSON. The base class is right for kinds without rules of their own.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.lab.storage.codec import JsonObject
from trimtab.model.field_errors import FieldError


class Strategy:
    """The rules of one kind; the methods change the object they are given."""

    #: What happens to dependents when a delete request does not say.
    default_propagation = "Background"
    #: Whether deletion may wait for the object's own shutdown.
    is_graceful = False
    #: Whether DELETE answers with the object even when it is gone at once.
    returns_deleted = False
    #: Whether a PUT must carry the version it was read at.
    needs_version_on_update = False
    #: Whether writes to `status` may also change labels and annotations; those of custom resources may not.
    status_writes_metadata = True
    #: Whether an object may be created with a status, as nodes register themselves whole.
    keeps_status_on_create = False

    def default(self, obj: JsonObject) -> None:
        """Fill in defaults; called on every decoded object, so it must be idempotent."""

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Reset what a client may not choose on create."""

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Carry over what a client may not change."""

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Adjust a status write after the rest was taken from the old object."""

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Return what is wrong with an object."""
        return []

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return what an update may not change."""
        return []

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Return why an object may not be created."""
        return self.validate(obj)

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why an object may not replace another."""
        return self.validate(obj) + self.validate_change(obj, old)

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why a status may not replace another."""
        return []

    def warnings(self, obj: JsonObject) -> list[str]:
        """Return sentences to send back as Warning headers."""
        return []

    def convert(self, obj: JsonObject, group: str, version: str) -> JsonObject:
        """Return the object in another served version."""
        obj["apiVersion"] = f"{group}/{version}" if group else version
        return obj

    def grace_seconds(self, obj: JsonObject, asked: int | None) -> int:
        """Return how long deletion waits for the object's own shutdown."""
        return 0

    def is_held(self, obj: JsonObject) -> bool:
        """Tell whether something besides finalizers keeps a deleted object alive."""
        return False

    def mark_deleted(self, obj: JsonObject) -> None:
        """Adjust an object whose deletion has begun."""

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the extra values that field selectors may ask for."""
        return {}

    def field_names(self) -> frozenset[str]:
        """Return the extra names that field selectors may use."""
        return frozenset(self.fields({"metadata": {}}))


def text_at(obj: JsonObject, *path: str) -> str:
    """Return the text at a path, or an empty one."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def is_condition_true(obj: JsonObject, kind: str) -> bool:
    """Return whether the status has a condition of this type that is true."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(
        condition.get("type") == kind and condition.get("status") == "True" for condition in conditions
    )


def keep_from(obj: JsonObject, old: JsonObject, name: str) -> None:
    """Give `obj` the field of `old`, or none."""
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)
