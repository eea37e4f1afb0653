"""Errors of a request, each of them a Kubernetes Status.

AdapterError
├── BadRequest             400   the query is invalid: a selector, a parameter
├── Unauthorized           401   the request has no valid credentials
├── Forbidden              403   the cluster does not allow it to this user
├── NotFound               404   no such path, metric or value
├── MethodNotAllowed       405   only reads are served
├── RequestEntityTooLarge  413   the body is too large
├── Invalid                422   a part of the path is not a valid name
├── InternalError          500   a bug of the adapter
└── ServiceUnavailable     503   a source, a rule or the review API failed; try again

ConfigurationError is the administrator's: a file is invalid.
"""

from typing import Any, ClassVar

from trimtab.model.json import wire

# ruff: noqa: N818 - the names are the API's own reasons


class ConfigurationError(ValueError):
    """A configuration, rules or values file is invalid. The message contains file, field and reason."""


class AdapterError(Exception):
    """An error whose response is a Status. The class is named after its reason."""

    code: ClassVar[int]

    def status(self) -> bytes:
        """Return the Status as JSON."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": type(self).__name__,
            "code": self.code,
        }
        return wire.encode(body)


class BadRequest(AdapterError):
    """The query is invalid."""

    code = 400


class Unauthorized(AdapterError):
    """The request has no valid credentials."""

    code = 401


class Forbidden(AdapterError):
    """The cluster does not allow the request to this user."""

    code = 403


class NotFound(AdapterError):
    """There is no such path, metric or value."""

    code = 404


class MethodNotAllowed(AdapterError):
    """Only reads are served."""

    code = 405


class RequestEntityTooLarge(AdapterError):
    """The body is too large."""

    code = 413


class Invalid(AdapterError):
    """A part of the path is not a valid name."""

    code = 422


class InternalError(AdapterError):
    """A bug of the adapter."""

    code = 500


class ServiceUnavailable(AdapterError):
    """A source, a rule or the review API failed, and a retry may succeed."""

    code = 503
