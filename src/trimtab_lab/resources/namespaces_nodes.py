"""The rules of namespaces and nodes."""

from collections.abc import Mapping
from datetime import datetime

from trimtab_lab.resources.strategy import Strategy, keep_from, text_at
from trimtab_lab.storage.codec import JsonObject

NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """Namespaces, which stay until their content is deleted."""

    returns_deleted = True

    def default(self, obj: JsonObject) -> None:
        """Label the namespace with its name."""
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Active, with the finalizer of namespaces."""
        self.default(obj)
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep finalizers, which the finalize subresource changes."""
        keep_from(obj, old, "spec")
        keep_from(obj, old, "status")

    def is_held(self, obj: JsonObject) -> bool:
        """Return whether the namespace has content to delete."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, obj: JsonObject) -> None:
        """Set the phase to Terminating."""
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the values that field selectors compare."""
        return {"status.phase": text_at(obj, "status", "phase"), "name": text_at(obj, "metadata", "name")}


class NodeStrategy(Strategy):
    """Nodes, which an agent creates with their status."""

    keeps_status_on_create = True

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Add an empty spec and status."""
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the values that field selectors compare."""
        return {"spec.unschedulable": text_at(obj, "spec", "unschedulable") or "false"}
