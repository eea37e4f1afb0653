"""What the lab's API server answers when it refuses: one exception that becomes a `Status` body.

    ApiError            code, reason, message, details; the only exception a handler raises on purpose

Wrong fields are the model's `FieldError`s. The functions below build the answers whose reason, code and wording are part of the Kubernetes API contract.
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
    listed = ", ".join(field_errors.quote(one) for one in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, field, value, f"supported values: {listed}")


def duplicate_value(field: str, value: Any) -> FieldError:
    """Report a list entry that appears twice."""
    return field_errors.duplicate(FieldPath(field), value)


class StatusError(Exception):
    """A refusal that the client sees as a `Status` object."""

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
        """Return the `Status` body."""
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
    """Name a resource with its group, as messages do: `deployments.apps`."""
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
    """Say that a named object does not exist."""
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(resource, group, name))


def no_such_resource() -> StatusError:
    """Say that nothing is served at this path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> StatusError:
    """Say that the name is taken."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, group, name))


def conflict(resource: str, group: str, name: str, why: str = MODIFIED) -> StatusError:
    """Say that the object moved on since the client read it."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(resource, group, name))


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> StatusError:
    """Say which fields are wrong."""
    message = f'{qualified(kind, group)} "{name}" is invalid: {field_errors.aggregate(causes)}'
    details = _details(kind, group, name)
    details["causes"] = [{"reason": c.type.value, "message": c.body, "field": c.field} for c in causes]
    return StatusError(422, "Invalid", message, details)


def bad_request(message: str) -> StatusError:
    """Say that the request itself cannot be understood."""
    return StatusError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str) -> StatusError:
    """Say that the request is understood and refused."""
    quoted = f' "{name}"' if name else ""
    message = f"{qualified(resource, group)}{quoted} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, _details(resource, group, name))


def unauthorized() -> StatusError:
    """Say that the credentials are missing or wrong."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """Say that the resource exists but not this verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(known: Iterable[str]) -> StatusError:
    """Say which content types are understood."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def unsupported_patch_type() -> StatusError:
    """Say that a patch is of no known form; upstream's router answers this, and says no more."""
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def not_acceptable(known: Iterable[str]) -> StatusError:
    """Say which answers can be given."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(known)}"
    return StatusError(406, "NotAcceptable", message, {})


def expired(message: str) -> StatusError:
    """Say that the asked-for version is no longer known."""
    return StatusError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> StatusError:
    """Say that the asked-for version lies in the future."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    }
    message = f"Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details, retry_after=1)


def too_large_body(message: str) -> StatusError:
    """Say that the request is bigger than the server accepts."""
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_requests(
    message: str, retry_after: int | None = None, cause: tuple[str, str] | None = None
) -> StatusError:
    """Ask the client to come back later."""
    details: dict[str, Any] = {}
    if cause:
        details["causes"] = [{"reason": cause[0], "message": cause[1]}]
    return StatusError(429, "TooManyRequests", message, details, retry_after=retry_after)


def internal(message: str) -> StatusError:
    """Say that something behind the server failed."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
