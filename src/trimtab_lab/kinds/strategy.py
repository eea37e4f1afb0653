"""The rules that a kind may have: defaults, what a write may set, validation, conversion, deletion.

A strategy gets objects in the storage version as plain JSON and changes them in place. The base class suits kinds without
rules.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.field_errors import FieldError
from trimtab.model.times import format_time
from trimtab_lab.storage.codec import JsonObject


class Strategy:
    """The rules of a kind."""

    #: What happens to dependents when a delete request names no policy.
    default_propagation = "Background"
    #: Whether deletion may wait for the object's own shutdown.
    is_graceful = False
    #: Whether DELETE returns the object even when it is gone at once.
    returns_deleted = False
    #: Whether a PUT must carry the version it was read at.
    needs_version_on_update = False
    #: Whether writes to `status` may also change labels and annotations; those of custom resources may not.
    status_writes_metadata = True
    #: Whether an object may be created with a status, as nodes register themselves whole.
    keeps_status_on_create = False
    #: The paths that field selectors may use, besides name and namespace.
    selectable_fields: tuple[str, ...] = ()
    #: What is filled in where it is missing.
    defaults: JsonObject = {}

    def __init__(self, rules: ServerRules = KUBERNETES_1_37) -> None:
        self.rules = rules

    def default(self, obj: JsonObject) -> None:
        """Fill in defaults. It runs on every decoded object and must be idempotent."""
        fill(obj, self.defaults)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Reset what a client may not choose on create."""

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Carry over what a client may not change."""

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Adjust a status write after the rest was taken from the old object."""

    def validate(self, obj: JsonObject) -> list[FieldError]:
        return []

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return what an update may not change."""
        return []

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Return why an object may not be created."""
        return self.validate(obj)

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why an object may not replace the old object."""
        return self.validate(obj) + self.validate_change(obj, old)

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why a status may not replace the old status."""
        return []

    def convert(self, obj: JsonObject, group: str, version: str) -> JsonObject:
        """Return the object in another served version."""
        obj["apiVersion"] = f"{group}/{version}" if group else version
        return obj

    def grace_seconds(self, obj: JsonObject, requested: int | None) -> int:
        """Return how long deletion waits for the object's own shutdown."""
        return 0

    def is_held(self, obj: JsonObject) -> bool:
        """Return whether a deleted object stays for another reason than finalizers."""
        return False

    def mark_deleted(self, obj: JsonObject) -> None:
        """Adjust an object whose deletion has begun."""

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the values that field selectors compare."""
        return {path: text_at(obj, *path.split(".")) for path in self.selectable_fields}

    def field_names(self) -> frozenset[str]:
        """Return the names that field selectors may use."""
        return frozenset(self.fields({"metadata": {}}))


class ReturnedStrategy(Strategy):
    """Kinds without rules whose deletion returns the object."""

    returns_deleted = True


class StatusStrategy(Strategy):
    """Kinds whose status starts empty and always has some fields."""

    #: Fields of `status` that are always written, as the typed API has them.
    status_zeros: Mapping[str, Any] = {}

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start with an empty status."""
        obj["status"] = dict(self.status_zeros)

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Write the fields that are always there."""
        obj["status"] = {**self.status_zeros, **(obj.get("status") or {})}


def text_at(obj: JsonObject, *path: str) -> str:
    """Return the text at a path, or an empty text."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def condition(kind: str, reason: str, message: str, now: datetime, status: str = "True") -> JsonObject:
    time = format_time(now)
    return {"type": kind, "status": status, "lastTransitionTime": time, "reason": reason, "message": message}


def is_condition_true(obj: JsonObject, kind: str) -> bool:
    """Return whether the status has a condition of this type that is true."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions)


def keep_from(obj: JsonObject, old: JsonObject, name: str) -> None:
    """Give `obj` the field of `old`, or remove it."""
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)


def fill(obj: JsonObject, defaults: JsonObject) -> None:
    """Set the fields that are missing, at any depth."""
    for name, value in defaults.items():
        if isinstance(value, dict):
            fill(obj.setdefault(name, {}), value)
        else:
            obj.setdefault(name, value)


def set_defaults(obj: JsonObject, /, **defaults: Any) -> None:
    """Set the fields that are missing."""
    for name, value in defaults.items():
        obj.setdefault(name, value)
