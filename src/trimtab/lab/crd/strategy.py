"""The rules of custom objects: defaults, schema and CEL of their definition."""

from datetime import datetime

from trimtab.lab.crd.cel import has_rules, validate_rules
from trimtab.lab.crd.schema import apply_defaults
from trimtab.lab.crd.schema import validate as validate_schema
from trimtab.lab.resources.strategy import Strategy
from trimtab.lab.storage.codec import JsonObject
from trimtab.model.field_errors import ErrorType, FieldError

#: Problems of size and shape; a rule could fail on them, or take for ever.
BLOCKING = frozenset(
    {
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
        ErrorType.NOT_SUPPORTED,
    }
)
SKIPPED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class CustomStrategy(Strategy):
    """Custom objects in any of their versions; all versions have one form (conversion None)."""

    status_writes_metadata = False
    needs_version_on_update = True

    def __init__(self, schemas: dict[str, JsonObject]) -> None:
        self._schemas = schemas

    def _schema(self, obj: JsonObject) -> JsonObject:
        return self._schemas.get(obj["apiVersion"].rpartition("/")[2], {})

    def default(self, obj: JsonObject) -> None:
        """Fill in the schema's defaults."""
        apply_defaults(obj, self._schema(obj))

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Default again what admission may have changed."""
        self.default(obj)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Default again what admission may have changed."""
        self.default(obj)

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Check schema and rules."""
        schema = self._schema(obj)
        found = validate_schema(_plain(obj), schema)
        return found + (_unchecked(schema) if _blocks(found) else validate_rules(obj, schema))

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check what changed; a problem that the stored object already has does not block other changes."""
        schema = self._schema(obj)
        found = validate_schema(_plain(obj), schema)
        if found:
            known = {str(problem) for problem in validate_schema(_plain(old), schema)}
            found = [problem for problem in found if str(problem) not in known]
        return found + (_unchecked(schema) if _blocks(found) else validate_rules(obj, schema, old))

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check a status like the rest."""
        return self.validate_update(obj, old)


def _blocks(found: list[FieldError]) -> bool:
    """Tell whether the object is too wrong for its rules to be evaluated."""
    return any(problem.type in BLOCKING for problem in found)


def _unchecked(schema: JsonObject) -> list[FieldError]:
    """Say that rules were skipped, if there are any."""
    return [FieldError(ErrorType.INVALID, "<nil>", None, SKIPPED)] if has_rules(schema) else []


def _plain(obj: JsonObject) -> JsonObject:
    """Leave out metadata, which has rules of its own."""
    return {name: value for name, value in obj.items() if name != "metadata"}
