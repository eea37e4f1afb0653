"""Recognizes answers that no API server sends: those of a proxy, a load balancer or a login page."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from trimtab.cluster.errors import read_failure
from trimtab.cluster.transport import Request, Response

_GATEWAY_FAILURES: Final = (
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_ADDRESS: Final = "correct the server's address in the kubeconfig"
_API_SERVER_DOWN: Final = (
    "a proxy or load balancer probably answers in place of the API server, which may be down; "
    f"try again later, or {_ADDRESS}"
)
_LOGIN_PAGE: Final = f"probably a login page or a proxy in front of the cluster; log in again, or {_ADDRESS}"
_OTHER_PROGRAM: Final = f"probably another program or a proxy; {_ADDRESS}"


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """An answer that another program sent in place of the API server."""

    text: str
    """What the server does, as `answers 502 with an HTML page`."""
    advice: str
    """What probably answers, and what to do."""


def foreign_answer(request: Request, response: Response) -> ForeignAnswer | None:
    """Return what a server does that is no API server, or None if it may be one."""
    status = response.status
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        elsewhere = response.headers.get("location", "another address")
        return ForeignAnswer(f"redirects to {elsewhere}, which an API server never does", _LOGIN_PAGE)
    content = _foreign_content(request, response)
    return ForeignAnswer(f"answers {status} with {content}", _advice(status)) if content else None


def _foreign_content(request: Request, response: Response) -> str:
    """Return what a body is that no API server sends with its status, or an empty text."""
    start = response.body.lstrip()[:1]
    if response.headers.get("content-type", "").startswith("text/html") or start == b"<":
        return "an HTML page"
    if response.status in _GATEWAY_FAILURES and read_failure(response.body) is None:
        return "no Kubernetes Status"
    # The body of a list that is decoded while it arrives is not kept.
    if response.status == HTTPStatus.OK and request.into is None and start != b"{":
        return "something else than JSON"
    return ""


def _advice(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _API_SERVER_DOWN
    is_refused = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return _LOGIN_PAGE if status == HTTPStatus.OK or is_refused else _OTHER_PROGRAM
