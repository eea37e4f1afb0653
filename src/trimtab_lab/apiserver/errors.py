"""Wrong fields of an object, by the path that a message shows. Other failures are in `trimtab.model.status`."""

from collections.abc import Iterable
from typing import Any

from trimtab.model import field_errors
from trimtab.model.field_errors import ErrorType, FieldError, FieldPath


def required(field: str, detail: str = "") -> FieldError:
    """Report a field that must be set."""
    return field_errors.required(FieldPath(field), detail)


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """Report a field whose value breaks a rule."""
    return field_errors.invalid(FieldPath(field), value, detail)


def forbidden_field(field: str, detail: str) -> FieldError:
    """Report a field that may not be set or changed here."""
    return field_errors.forbidden(FieldPath(field), detail)


def unsupported_value(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Report a value outside an enumeration."""
    # Unlike the model's sets, what the server lists has an order of its own.
    listed = ", ".join(field_errors.quote(word) for word in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, field, value, f"supported values: {listed}")


def duplicate_value(field: str, value: Any) -> FieldError:
    """Report a list entry that appears twice."""
    return field_errors.duplicate(FieldPath(field), value)
