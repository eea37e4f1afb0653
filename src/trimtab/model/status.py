"""Status: how an API server reports a failure, as a wire value and as an error that becomes one.

The lab and the adapter raise `StatusError`, and the client decodes `Status`. Reasons, codes and wording are part of the
Kubernetes API contract.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.model.field_errors import FieldError, aggregate
from trimtab.model.json.wire import Json, Wire

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    421: "Misdirected",
    422: "Invalid",
    429: "TooManyRequests",
    431: "RequestEntityTooLarge",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class StatusCause(Wire, frozen=True):
    """A field that the server rejected."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """The object of a Status."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """The API server's report on a request."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = StatusDetails()
    code: int = 0


class StatusError(Exception):
    """A failure that the client gets as a `Status` object. The reason is that of the code, unless it is given."""

    def __init__(
        self,
        code: int,
        message: str,
        details: Json | None = None,
        *,
        reason: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS.get(code, "") if reason is None else reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Json:
        """Return the Status as JSON."""
        body: Json = {
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


def _details(kind: str, group: str, name: str = "", **more: Any) -> Json:
    details = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value or key == "kind"}


def not_found(resource: str, group: str, name: str) -> StatusError:
    """Return the error for an object that does not exist."""
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, message, _details(resource, group, name))


def no_such_resource() -> StatusError:
    """Return the error for a path at which nothing is served."""
    return StatusError(404, "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> StatusError:
    """Return the error for the creation of an object that exists."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, message, _details(resource, group, name), reason="AlreadyExists")


def conflict(resource: str, group: str, name: str, reason: str = MODIFIED) -> StatusError:
    """Return the error for a write to an object that changed since the client read it."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {reason}'
    return StatusError(409, message, _details(resource, group, name))


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> StatusError:
    """Return the error for an object with wrong fields."""
    message = f'{qualified(kind, group)} "{name}" is invalid: {aggregate(causes)}'
    fields = [{"reason": c.type.value, "message": c.body, "field": c.field} for c in causes]
    return StatusError(422, message, {**_details(kind, group, name), "causes": fields})


def bad_request(message: str) -> StatusError:
    """Return the error for a request that cannot be parsed."""
    return StatusError(400, message)


def forbidden(
    resource: str, group: str, name: str, reason: str, cause: dict[str, str] | None = None
) -> StatusError:
    """Return the error for a request that is valid and not allowed."""
    quoted = f' "{name}"' if name else ""
    message = f"{qualified(resource, group)}{quoted} is forbidden: {reason}"
    return StatusError(403, message, _details(resource, group, name, causes=[cause] if cause else None))


def unauthorized() -> StatusError:
    """Return the error for missing or wrong credentials."""
    return StatusError(401, "Unauthorized")


def method_not_allowed() -> StatusError:
    """Return the error for a verb that the resource does not have."""
    return StatusError(405, "the server does not allow this method on the requested resource", {})


def unsupported_media_type(known: Iterable[str]) -> StatusError:
    """Return the error for a body of another media type."""
    types = ", ".join(known)
    return StatusError(
        415, f"the body of the request was in an unknown format - accepted media types include: {types}"
    )


def unsupported_patch_type() -> StatusError:
    """Return the error for an unknown patch type, in the words of upstream's router."""
    return StatusError(415, "415: Unsupported Media Type", {})


def not_acceptable(known: Iterable[str]) -> StatusError:
    """Return the error for an Accept header that cannot be satisfied."""
    return StatusError(406, f"406: Not Acceptable\n\nAvailable representations: {', '.join(known)}", {})


def expired(message: str) -> StatusError:
    """Return the error for a version that is no longer cached."""
    return StatusError(410, message)


def too_large_version(requested: int, current: int) -> StatusError:
    """Return the error for a version that is not reached yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Too large resource version: {requested}, current: {current}"
    return StatusError(504, message, {"causes": [cause]}, retry_after=1)


def too_large_body(message: str) -> StatusError:
    """Return the error for a body that is too large."""
    return StatusError(413, message)


def too_many_requests(
    message: str, retry_after: int | None = None, cause: tuple[str, str] | None = None
) -> StatusError:
    """Return the error that makes the client retry later."""
    details: Json = {"causes": [{"reason": cause[0], "message": cause[1]}]} if cause else {}
    return StatusError(429, message, details, retry_after=retry_after)


def internal(message: str) -> StatusError:
    """Return the error for a failure inside or behind the server."""
    return StatusError(500, f"Internal error occurred: {message}", {"causes": [{"message": message}]})
