"""The rules of namespaces and nodes."""

from collections.abc import Mapping
from datetime import datetime

from trimtab.lab.resources.strategy import Strategy, keep_from, text_at
from trimtab.lab.storage.codec import JsonObject

NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """Namespaces: held by their own finalizers until their content is gone."""

    returns_deleted = True

    def default(self, obj: JsonObject) -> None:
        """Label the namespace with its name."""
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Active, held until emptied."""
        self.default(obj)
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Leave finalizers to the finalize subresource."""
        keep_from(obj, old, "spec")
        keep_from(obj, old, "status")

    def is_held(self, obj: JsonObject) -> bool:
        """Tell whether the namespace still waits for its content to go."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, obj: JsonObject) -> None:
        """Show that the namespace is going."""
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors may use."""
        return {"status.phase": text_at(obj, "status", "phase"), "name": text_at(obj, "metadata", "name")}


class NodeStrategy(Strategy):
    """Nodes, whose status may be given on create: an agent registers itself whole."""

    keeps_status_on_create = True

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Have a spec and a status."""
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors may use."""
        return {"spec.unschedulable": text_at(obj, "spec", "unschedulable") or "false"}
