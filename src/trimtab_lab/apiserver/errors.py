"""The errors of the lab's API server: `StatusError`, which becomes a `Status` body.

It is the only exception that a handler raises on purpose. Wrong fields are the model's `FieldError`s. Reasons, codes and
wording are part of the Kubernetes API contract.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.model import field_errors
from trimtab.model.field_errors import ErrorType, FieldError, FieldPath

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


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


class StatusError(Exception):
    """A failure that the client gets as a `Status` object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.retry_after is not None:
            body["details"] = {**(self.details or {}), "retryAfterSeconds": self.retry_after}
        elif self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def qualified(resource: str, group: str) -> str:
    """Return a resource with its group, as in messages: `deployments.apps`."""
    return f"{resource}.{group}" if group else resource


def _details(kind: str, group: str, name: str = "") -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    return details


def not_found(resource: str, group: str, name: str) -> StatusError:
    """Return the error for an object that does not exist."""
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(resource, group, name))


def no_such_resource() -> StatusError:
    """Return the error for a path at which nothing is served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, group, name))


def conflict(resource: str, group: str, name: str, reason: str = MODIFIED) -> StatusError:
    """Reject a write to an object that changed since the client read it."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {reason}'
    return StatusError(409, "Conflict", message, _details(resource, group, name))


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> StatusError:
    """Return the error for an object with wrong fields."""
    message = f'{qualified(kind, group)} "{name}" is invalid: {field_errors.aggregate(causes)}'
    details = _details(kind, group, name)
    details["causes"] = [{"reason": c.type.value, "message": c.body, "field": c.field} for c in causes]
    return StatusError(422, "Invalid", message, details)


def bad_request(message: str) -> StatusError:
    """Return the error for a request that cannot be parsed."""
    return StatusError(400, "BadRequest", message)


def forbidden(
    resource: str, group: str, name: str, reason: str, cause: dict[str, str] | None = None
) -> StatusError:
    """Reject a request that is valid and not allowed."""
    quoted = f' "{name}"' if name else ""
    message = f"{qualified(resource, group)}{quoted} is forbidden: {reason}"
    details = {**_details(resource, group, name), **({"causes": [cause]} if cause else {})}
    return StatusError(403, "Forbidden", message, details)


def unauthorized() -> StatusError:
    """Return the error for missing or wrong credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """Return the error for a verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(known: Iterable[str]) -> StatusError:
    """Return the error for a body of another media type."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def unsupported_patch_type() -> StatusError:
    """Return the error for an unknown patch type, in the words of upstream's router."""
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def not_acceptable(known: Iterable[str]) -> StatusError:
    """Return the error for an Accept header that cannot be satisfied."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(known)}"
    return StatusError(406, "NotAcceptable", message, {})


def expired(message: str) -> StatusError:
    """Return the error for a version that is no longer cached."""
    return StatusError(410, "Expired", message)


def too_large_version(requested: int, current: int) -> StatusError:
    """Return the error for a version that is not reached yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    }
    message = f"Too large resource version: {requested}, current: {current}"
    return StatusError(504, "Timeout", message, details, retry_after=1)


def too_large_body(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_requests(
    message: str, retry_after: int | None = None, cause: tuple[str, str] | None = None
) -> StatusError:
    """Return the error that makes the client retry later."""
    details: dict[str, Any] = {}
    if cause:
        details["causes"] = [{"reason": cause[0], "message": cause[1]}]
    return StatusError(429, "TooManyRequests", message, details, retry_after=retry_after)


def internal(message: str) -> StatusError:
    """Return the error for a failure inside or behind the server."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
