"""What a request may end in besides an answer; each error is a Kubernetes Status.

AdapterError
├── BadRequest        400   the query cannot be read: a selector, a parameter
├── Unauthorized      401   nobody vouches for who asks
├── Forbidden         403   the cluster says that this user may not
├── NotFound          404   no such path, metric or value
├── NotAllowed        405   only reading is served
├── TooLarge          413   the body is too large
├── Invalid           422   a name in the path can be no name
└── Unavailable       503   a source, a rule or the review API gives no usable answer now: try again

ConfigurationError is the administrator's: a file that cannot be used.
"""

from typing import Any, ClassVar

from trimtab.model.json import wire

# ruff: noqa: N818 - the names are the API's own reasons


class ConfigurationError(ValueError):
    """A configuration, rules or values file cannot be used; the message says which, where and why."""


class AdapterError(Exception):
    """A request that is answered with a Status."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def status(self) -> bytes:
        """Return the Status as JSON."""
        return status_body(self.code, self.reason, str(self))


class BadRequest(AdapterError):
    """The query cannot be read."""

    code = 400
    reason = "BadRequest"


class Unauthorized(AdapterError):
    """Nobody vouches for who asks."""

    code = 401
    reason = "Unauthorized"


class Forbidden(AdapterError):
    """The cluster says that this user may not."""

    code = 403
    reason = "Forbidden"


class NotFound(AdapterError):
    """There is no such path, metric or value."""

    code = 404
    reason = "NotFound"


class NotAllowed(AdapterError):
    """Only reading is served."""

    code = 405
    reason = "MethodNotAllowed"


class TooLarge(AdapterError):
    """The body is too large."""

    code = 413
    reason = "RequestEntityTooLarge"


class Invalid(AdapterError):
    """A part of the path can be no name."""

    code = 422
    reason = "Invalid"


class Unavailable(AdapterError):
    """No usable answer can be had now."""

    code = 503
    reason = "ServiceUnavailable"


def status_body(code: int, reason: str, message: str) -> bytes:
    """Return a failure Status as JSON."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return wire.encode(body)
