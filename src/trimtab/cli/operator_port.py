"""Asks a running operator, and reads the token that protects its port.

No message contains the token, or a password in the address.
"""

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import msgspec

from trimtab.cli.errors import FOUND, CommandError

LONGEST: Final = timedelta(seconds=10)
"""How long an answer may take, unless --request-timeout says."""
TOKEN_VARIABLE: Final = "TRIMTAB_TOKEN"  # noqa: S105 - the name of a variable
_ANOTHER_ADDRESS: Final = "name the operator's own address with --operator, as http://127.0.0.1:8080"


class NothingKnownError(Exception):
    """The operator has no answer about the object."""


class _Explained(msgspec.Struct):
    """The fields of an explanation that are always there."""

    about: str
    text: str


class _Overview(msgspec.Struct):
    """The rows of all HPAs."""

    autoscalers: list[dict[str, Any]]


class _Recorded(msgspec.Struct):
    """The field of a record that every format has."""

    observation: dict[str, msgspec.Raw]


class _Estimated(msgspec.Struct):
    """The field of a record of an estimator that every format has."""

    estimator: str


def operator_token() -> str:
    """Return the operator's token without surrounding white space, which files and secrets often end with."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not (token.isascii() and token.isprintable()) and token:
        raise CommandError(
            f"{TOKEN_VARIABLE} holds a character that no HTTP header can hold",
            "use printable ASCII characters, as of: openssl rand -hex 32",
        )
    return token


def ask_explanation(operator: str, name: str, timeout: timedelta | None = None) -> dict[str, Any]:
    """Return the operator's explanation. Raise NothingKnownError if it has none."""
    body = _ask(operator, "explain", name, timeout)
    try:
        msgspec.json.decode(body, type=_Explained)
        found: dict[str, Any] = msgspec.json.decode(body)
    except ValueError as error:
        raise _not_an_operator(operator) from error
    return found


def ask_overview(operator: str, timeout: timedelta | None = None) -> list[dict[str, Any]]:
    """Return the operator's row of each HPA."""
    try:
        return msgspec.json.decode(_ask(operator, "autoscalers", "", timeout), type=_Overview).autoscalers
    except (ValueError, NothingKnownError) as error:
        raise _not_an_operator(operator) from error


def ask_estimates(operator: str, name: str, timeout: timedelta | None = None) -> str:
    """Return the last calls of the estimators of a VPA, one JSON object in each line, as `ask_records`."""
    return _ask_lines(operator, "estimates", name, _Estimated, timeout)


def ask_records(operator: str, name: str, timeout: timedelta | None = None) -> str:
    """Return the operator's records, one JSON object in each line. Raise NothingKnownError as `ask_explanation`."""
    return _ask_lines(operator, "records", name, _Recorded, timeout)


def _ask_lines(operator: str, page: str, name: str, line_type: type, timeout: timedelta | None) -> str:
    """Return a page whose lines are JSON objects of a type."""
    body = _ask(operator, page, name, timeout)
    try:
        for line in body.splitlines():
            msgspec.json.decode(line, type=line_type)
        return body.decode()
    except ValueError as error:
        raise _not_an_operator(operator) from error


def _ask(operator: str, page: str, name: str, timeout: timedelta | None) -> bytes:
    refuse_unusable_address(operator)
    token = operator_token()
    url = f"{operator.rstrip('/')}/{page}?" + urllib.parse.urlencode({"name": name})
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked above
        with _OPENER.open(asked, timeout=(timeout or LONGEST).total_seconds()) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection until it is closed
            if error.code == HTTPStatus.NOT_FOUND:
                raise NothingKnownError(name) from error
            raise _refused(operator, error, has_token=bool(token)) from error
    except http.client.HTTPException as error:
        raise _not_an_operator(operator) from error
    except OSError as error:
        why = getattr(error, "reason", error)
        raise CommandError(
            f"the operator at {operator} does not answer: {getattr(why, 'strerror', None) or why}",
            "start it, correct --operator, or leave it out to compute the answer from the cluster",
        ) from error


def refuse_unusable_address(operator: str) -> None:
    """Raise CommandError for an address that is more or less than scheme, host, port and path."""
    problem = _address_problem(operator)
    if problem:
        raise CommandError(f"--operator {problem}", _ANOTHER_ADDRESS)


def _address_problem(operator: str) -> str:
    try:
        parts = urllib.parse.urlsplit(operator)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "has an invalid host or port"
    if parts.scheme not in {"http", "https"} or not has_host:
        # The text stays out of the message: without a scheme a password is not told from a path.
        return "is not an http address"
    if "@" in parts.netloc:
        return "holds a user or password, which an operator does not take: set TRIMTAB_TOKEN instead"
    if "?" in operator or "#" in operator:
        return "holds a query or a fragment"
    if not (operator.isascii() and operator.isprintable()) or " " in operator:
        return "holds a blank, or a character that is not ASCII"
    return ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token belongs to the operator, which never redirects."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, so that the redirect is raised as an HTTPError."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def _not_an_operator(operator: str) -> CommandError:
    return CommandError(
        f"{operator} is not a Trimtab operator: another program answers", _ANOTHER_ADDRESS, FOUND
    )


def _refused(operator: str, error: urllib.error.HTTPError, *, has_token: bool) -> CommandError:
    if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
        elsewhere = error.headers.get("Location", "another address")
        return CommandError(
            f"{operator} redirects to {elsewhere}, which an operator never does",
            "name the operator's own address with --operator",
            FOUND,
        )
    if error.code == HTTPStatus.UNAUTHORIZED and has_token:
        return CommandError(
            f"{operator}: the token in {TOKEN_VARIABLE} is not accepted",
            "set it to the token of this operator's tokenSecret",
            FOUND,
        )
    hint = f"set {TOKEN_VARIABLE} to the operator's token" if error.code == HTTPStatus.UNAUTHORIZED else ""
    return CommandError(f"{operator}: {error.read().decode(errors='replace').strip()}", hint, FOUND)
