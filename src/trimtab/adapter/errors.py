"""Errors of a request, each of them a Kubernetes Status.

AdapterError
├── BadRequest        400   the query is invalid: a selector, a parameter
├── Unauthorized      401   the request has no valid credentials
├── Forbidden         403   the cluster does not allow it to this user
├── NotFound          404   no such path, metric or value
├── NotAllowed        405   only reads are served
├── TooLarge          413   the body is too large
├── Invalid           422   a part of the path is not a valid name
└── Unavailable       503   a source, a rule or the review API failed; try again

ConfigurationError is the administrator's: a file is invalid.
"""

from typing import Any, ClassVar

from trimtab.model.json import wire

# ruff: noqa: N818 - the names are the API's own reasons


class ConfigurationError(ValueError):
    """A configuration, rules or values file is invalid. The message contains file, field and reason."""


class AdapterError(Exception):
    """An error whose response is a Status."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def status(self) -> bytes:
        """Return the Status as JSON."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }
        return wire.encode(body)


class BadRequest(AdapterError):
    """The query is invalid."""

    code = 400
    reason = "BadRequest"


class Unauthorized(AdapterError):
    """The request has no valid credentials."""

    code = 401
    reason = "Unauthorized"


class Forbidden(AdapterError):
    """The cluster does not allow the request to this user."""

    code = 403
    reason = "Forbidden"


class NotFound(AdapterError):
    """There is no such path, metric or value."""

    code = 404
    reason = "NotFound"


class NotAllowed(AdapterError):
    """Only reads are served."""

    code = 405
    reason = "MethodNotAllowed"


class TooLarge(AdapterError):
    """The body is too large."""

    code = 413
    reason = "RequestEntityTooLarge"


class Invalid(AdapterError):
    """A part of the path is not a valid name."""

    code = 422
    reason = "Invalid"


class Unavailable(AdapterError):
    """A source, a rule or the review API failed, and a retry may succeed."""

    code = 503
    reason = "ServiceUnavailable"
