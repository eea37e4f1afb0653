"""The rules of custom objects: defaults, schema and rules of their definition."""

from datetime import datetime
from typing import Any

from trimtab.model.field_errors import ErrorType, FieldError
from trimtab_lab.crd.rules import MISSING, has_rules, violations
from trimtab_lab.crd.schema import apply_defaults
from trimtab_lab.crd.schema import validate as validate_schema
from trimtab_lab.resources.strategy import Strategy
from trimtab_lab.storage.codec import JsonObject

#: Errors of size and shape, after which rules are not evaluated: they could fail or take very long.
BLOCKING = (
    ErrorType.REQUIRED,
    ErrorType.TOO_LONG,
    ErrorType.TOO_MANY,
    ErrorType.TYPE_INVALID,
    ErrorType.NOT_SUPPORTED,
)
SKIPPED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class CustomStrategy(Strategy):
    """Custom objects. All versions have one form (conversion None)."""

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
        """Fill in defaults again after admission."""
        self.default(obj)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Fill in defaults again after admission."""
        self.default(obj)

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Check schema and rules."""
        schema = self._schema(obj)
        errors = validate_schema(_without_metadata(obj), schema)
        return errors + _validate_rules(errors, obj, schema)

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check schema and rules. Errors that the stored object has too are ignored."""
        schema = self._schema(obj)
        errors = validate_schema(_without_metadata(obj), schema)
        if errors:
            known = {str(error) for error in validate_schema(_without_metadata(old), schema)}
            errors = [error for error in errors if str(error) not in known]
        return errors + _validate_rules(errors, obj, schema, old)

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check schema and rules."""
        return self.validate_update(obj, old)


def _validate_rules(
    errors: list[FieldError], obj: JsonObject, schema: JsonObject, old: Any = MISSING
) -> list[FieldError]:
    if not any(error.type in BLOCKING for error in errors):
        return list(violations(obj, schema, old))
    return [FieldError(ErrorType.INVALID, "<nil>", None, SKIPPED)] if has_rules(schema) else []


def _without_metadata(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name != "metadata"}
