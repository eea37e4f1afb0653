"""HorizontalPodAutoscalers: the model knows the rules, this only hands objects over."""

from datetime import datetime

from trimtab.lab.apiserver.errors import invalid
from trimtab.lab.resources.strategy import Strategy
from trimtab.lab.storage.codec import JsonObject
from trimtab.model import hpa
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError
from trimtab.model.hpa import create_update as strategy
from trimtab.model.hpa import defaults

KIND, GROUP = "HorizontalPodAutoscaler", "autoscaling"
ZEROS = {"currentMetrics": None, "desiredReplicas": 0}


class HpaStrategy(Strategy):
    """Autoscalers of every served version, under the server's feature gates."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def default(self, obj: JsonObject) -> None:
        """Fill in what the object's own version defaults."""
        if isinstance(obj.get("spec", {}), dict):
            fill = defaults.default_v1 if obj["apiVersion"].endswith("/v1") else defaults.default
            obj.update(fill(obj))

    def convert(self, obj: JsonObject, group: str, version: str) -> JsonObject:
        """Return the object in v1 or v2."""
        try:
            return hpa.canonical(hpa.to_v1(obj) if version == "v1" else hpa.to_v2(obj))
        except hpa.InvalidObjectError as problem:
            raise invalid(KIND, GROUP, obj["metadata"].get("name", ""), problem.errors) from problem

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Drop what the gates switch off; start with nothing observed."""
        _become(obj, strategy.create(obj, self._gates).stored)
        obj["status"] = dict(ZEROS)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Drop what the gates switch off and the stored object does not use."""
        _become(obj, strategy.update(obj, old, self._gates).stored)
        obj["status"] = {**ZEROS, **(obj.get("status") or {})}

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Write the fields that are always there."""
        obj["status"] = {**ZEROS, **(obj.get("status") or {})}

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Ask the model about a new object."""
        return _of_spec(strategy.create(obj, self._gates))

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Ask the model about a change; what the stored object already uses stays allowed."""
        return _of_spec(strategy.update(obj, old, self._gates))

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Ask the model about a new status."""
        return _of_spec(strategy.update_status(obj, old))


def _become(obj: JsonObject, stored: JsonObject) -> None:
    meta = obj["metadata"]
    obj.clear()
    obj.update(stored)
    obj["metadata"] = meta


def _of_spec(admission: strategy.RequestResult) -> list[FieldError]:
    """Leave out metadata, which the server checks for every kind alike."""
    return [error for error in admission.errors if not error.field.startswith("metadata")]
