"""The rules of HorizontalPodAutoscalers, which are the model's."""

from datetime import datetime

from trimtab.model import hpa
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError
from trimtab.model.hpa import create_update as strategy
from trimtab.model.hpa import defaults
from trimtab.model.status import invalid
from trimtab_lab.kinds.strategy import StatusStrategy
from trimtab_lab.storage.codec import JsonObject

NO_GATES = FeatureGates.of({})
KIND, GROUP = "HorizontalPodAutoscaler", "autoscaling"


class HpaStrategy(StatusStrategy):
    """HPAs of every served version, under the server's feature gates."""

    status_zeros = {"currentMetrics": None, "desiredReplicas": 0}

    def __init__(self, rules: ServerRules, gates: FeatureGates = NO_GATES) -> None:
        super().__init__(rules)
        self._gates = gates

    def default(self, obj: JsonObject) -> None:
        """Fill in the defaults of the object's own version."""
        if isinstance(obj.get("spec", {}), dict):
            fill = defaults.default_v1 if obj["apiVersion"].endswith("/v1") else defaults.default
            obj.update(fill(obj))

    def convert(self, obj: JsonObject, group: str, version: str) -> JsonObject:
        try:
            return hpa.canonical(hpa.to_v1(obj) if version == "v1" else hpa.to_v2(obj))
        except hpa.InvalidObjectError as problem:
            raise invalid(KIND, GROUP, obj["metadata"].get("name", ""), problem.errors) from problem

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Drop fields of disabled gates and start with an empty status."""
        _become(obj, strategy.create(obj, self._gates, self.rules).stored)
        super().prepare_for_create(obj, now)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Drop fields of disabled gates that the stored object does not use."""
        _become(obj, strategy.update(obj, old, self._gates, self.rules).stored)
        self.prepare_for_status(obj, old)

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Write the fields that are always there, and drop those of newer versions."""
        if not self.rules.hpa_generations:
            obj.update(strategy.without_condition_generations(obj))
        super().prepare_for_status(obj, old)

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Return why a new object is invalid."""
        return _of_spec(strategy.create(obj, self._gates, self.rules))

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why a change is invalid. Fields that the stored object uses stay allowed."""
        return _of_spec(strategy.update(obj, old, self._gates, self.rules))

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Return why a status is invalid."""
        return _of_spec(strategy.update_status(obj, old, self.rules))


def _become(obj: JsonObject, stored: JsonObject) -> None:
    meta = obj["metadata"]
    obj.clear()
    obj.update(stored)
    obj["metadata"] = meta


def _of_spec(admission: strategy.RequestResult) -> list[FieldError]:
    # Metadata is validated for every kind alike.
    return [error for error in admission.errors if not error.field.startswith("metadata")]
