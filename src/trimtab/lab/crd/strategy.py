"""The rules of custom objects: defaults, schema and CEL of their definition."""

from trimtab.lab.codec import JsonObject
from trimtab.lab.crd.cel import validate_rules
from trimtab.lab.crd.defaulting import apply_defaults
from trimtab.lab.crd.schema import validate as validate_schema
from trimtab.lab.strategies.base import Scene, Strategy
from trimtab.model.fielderror import FieldError


class CustomStrategy(Strategy):
    """Custom objects in any of their versions; all versions have one form (conversion None)."""

    def __init__(self, schemas: dict[str, JsonObject]) -> None:
        self._schemas = schemas

    def _schema(self, obj: JsonObject) -> JsonObject:
        return self._schemas.get(obj["apiVersion"].rpartition("/")[2], {})

    def default(self, obj: JsonObject) -> None:
        """Fill in the schema's defaults."""
        apply_defaults(obj, self._schema(obj))

    def prepare_for_create(self, obj: JsonObject, scene: Scene) -> None:
        """Default again what admission may have changed."""
        self.default(obj)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject, scene: Scene) -> None:
        """Default again what admission may have changed."""
        self.default(obj)

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Check schema, then rules; rules need a value of the right shape."""
        schema = self._schema(obj)
        return validate_schema(_plain(obj), schema) or validate_rules(obj, schema)

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check what changed; a problem that the stored object already has does not block other changes."""
        schema = self._schema(obj)
        found = validate_schema(_plain(obj), schema)
        if found:
            known = {str(problem) for problem in validate_schema(_plain(old), schema)}
            found = [problem for problem in found if str(problem) not in known]
        return found or validate_rules(obj, schema, old)

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check a status like the rest."""
        return self.validate_update(obj, old)


def _plain(obj: JsonObject) -> JsonObject:
    """Leave out metadata, which has rules of its own."""
    return {name: value for name, value in obj.items() if name != "metadata"}
