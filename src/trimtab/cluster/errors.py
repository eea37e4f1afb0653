"""Errors of the client, by what the caller can do.

ClusterError
├── ConfigError            no usable kubeconfig or in-cluster configuration: the user has to act
├── Fenced                 the lease may be lost: the write was not sent
├── DryRunRefused          this process is a dry run: the write was not sent
├── TransportError         no complete Kubernetes response: read again, then decide
│   └── Unreachable        no connection, or none that lasted until the first byte of a response
└── ApiError               the server answered with a Status
    ├── BadRequest         400     Unauthorized  401     Forbidden  403     NotFound  404
    ├── Conflict           409     AlreadyExists 409, reason AlreadyExists: read again, decide again
    ├── Gone               410     list again
    ├── Invalid            422     the object is invalid; a retry does not help
    ├── TooManyRequests    429     wait `retry_after`; on an eviction: the disruption budget forbids it
    └── ServerError        5xx     Unavailable 503, ServerTimeout 504: retry a read later, read before a write
"""

from collections.abc import Mapping
from typing import Self

import msgspec

from trimtab.model.json import wire
from trimtab.model.status import Status

# ruff: noqa: N818 - the names are the API's own reasons


class ClusterError(Exception):
    """The base class of all errors of this package."""


class ConfigError(ClusterError):
    """The connection to a cluster is not configured, or wrongly. The message is one line for the user."""


class Fenced(ClusterError):
    """A write was not sent because the lease that allows writing may be lost."""


class DryRunRefused(ClusterError):
    """A write was not sent because this process is a dry run."""


class TransportError(ClusterError):
    """No complete, valid response arrived. A write may or may not have happened."""


class Unreachable(TransportError):
    """The server could not be reached, or ended the connection before it answered."""


class ApiError(ClusterError):
    """The API server rejected a request or failed. `act` names the request."""

    def __init__(self, act: str, status: Status, retry_after: float | None = None) -> None:
        super().__init__(f"{act}: {status.message or status.reason or 'no message'} ({status.code})")
        self.act = act
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.details = status.details
        self.retry_after = retry_after
        self._status = status

    @property
    def has_status(self) -> bool:
        """Return whether the server sent a Status, and not the text of an HTTP server or a proxy."""
        return self._status.kind == "Status"

    @classmethod
    def like(cls, other: "ApiError") -> Self:
        """Return an error of this class with the content of another."""
        return cls(other.act, other._status, other.retry_after)


class BadRequest(ApiError):
    """The server could not understand the request (400)."""


class Unauthorized(ApiError):
    """The server could not authenticate the client (401)."""


class Forbidden(ApiError):
    """The client lacks a right (403)."""


class NotFound(ApiError):
    """The object or resource does not exist (404)."""

    def lacks_object(self, plural: str, name: str) -> bool:
        """Return whether the server serves the resource and has no object of that name.

        A resource that is not served gets 404 too, as while its CRD is replaced. That response names no object.
        """
        return (self.reason, self.details.kind, self.details.name) == ("NotFound", plural, name)


class Conflict(ApiError):
    """The object changed since it was read, or is being deleted (409)."""


class AlreadyExists(Conflict):
    """An object of that name exists (409)."""


class Gone(ApiError):
    """The resourceVersion or continue token is too old (410)."""


class Invalid(ApiError):
    """The object violates a rule of its kind (422)."""


class TooManyRequests(ApiError):
    """The server is overloaded, or a disruption budget forbids an eviction (429)."""


class ServerError(ApiError):
    """The server failed (5xx)."""


class Unavailable(ServerError):
    """The server, or the server behind it, is unavailable (503)."""


class ServerTimeout(ServerError):
    """The server timed out (504)."""

    @property
    def is_too_large_version(self) -> bool:
        """Return whether the server waited in vain for a resourceVersion that it has not reached."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.details.causes)


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
    504: ServerTimeout,
}
_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
    "Gone": Gone,
    "Timeout": ServerTimeout,
    "ServerTimeout": ServerTimeout,
}


def error_from_status(act: str, status: Status, retry_after: float | None = None) -> ApiError:
    """Return the error of a Status."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if kind is None:
        kind = ServerError if status.code >= 500 else ApiError
    if retry_after is None and status.details.retry_after_seconds > 0:
        retry_after = float(status.details.retry_after_seconds)
    return kind(act, status, retry_after)


def error_from_answer(act: str, code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the error of a response with status `code` and any body: a Status, HTML, nothing."""
    status = read_failure(body)
    if status is None:
        # Keep the beginning of a proxy's own message.
        text = body[:200].decode("utf-8", "replace").strip()
        status = Status(message=" ".join(text.split()) or "no Kubernetes Status in the answer")
    if status.code != code:
        status = msgspec.structs.replace(status, code=code)
    return error_from_status(act, status, parse_retry_after(headers.get("retry-after")))


def read_failure(body: bytes) -> Status | None:
    """Return the failure Status in `body`, or None."""
    # The kind is among an object's first members, so that successful responses are not decoded twice.
    if body.find(b'"Status"', 0, 256) < 0:
        return None
    try:
        status = wire.decode(body, Status)
    except wire.WireError:
        return None
    return status if status.kind == "Status" and status.status != "Success" else None


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header. Dates and invalid values count as absent."""
    if value is None or not value.isascii() or not value.strip().isdigit():
        return None
    return float(min(int(value.strip()[:9]), 3600))
