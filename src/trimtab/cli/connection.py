"""Connects commands to a cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Final, TypeVar

import click
import msgspec

from trimtab.cli.errors import CommandError
from trimtab.cli.names import complete_namespace
from trimtab.cli.parameters import Timeout
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_connection
from trimtab.cluster.errors import (
    ApiError,
    ClusterError,
    Forbidden,
    TransportError,
    Unreachable,
    error_from_answer,
)
from trimtab.cluster.foreign_answers import foreign_answer
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Deadlines, Request, Response, ResponseStream, Transport

T = TypeVar("T")

kubeconfig_option = click.option("--kubeconfig", default="", help="Path of a kubeconfig; as kubectl's.")
context_option = click.option("--context", default="", help="Context of the kubeconfig.")
namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    shell_complete=complete_namespace,
    help="Namespace; the context's if absent.",
)
request_timeout_option = click.option(
    "--request-timeout",
    type=Timeout(),
    default=None,
    help="How long to wait for an answer to one request, as 3s; 5 s to connect and 10 s to answer if absent.",
)

_UNREACHABLE: Final = "is the cluster up, and is this the right context?"
_FORBIDDEN: Final = "get that right, or name a namespace that you may read with -n"
_UNAUTHORIZED: Final = "the server does not accept these credentials; log in again, or choose another context"


class CommandTransport:
    """Ends a command at once if the server cannot be reached, is no API server or does not accept its credentials.

    The operator tries again. A command does so only after the server has answered once.
    """

    def __init__(self, transport: Transport, server: str, timeout: timedelta | None = None) -> None:
        self._transport = transport
        self._server = server
        self._timeout = timeout.total_seconds() if timeout else 0.0
        self._has_answered = False

    async def request(self, request: Request) -> Response:
        """Send a request within the timeout. Raise CommandError if the first one fails."""
        try:
            response = await self._transport.request(self._limited(request))
        except TransportError as error:
            if self._has_answered:
                raise
            # Which of our requests came first says nothing about a server that does not answer.
            raise CommandError(str(error).removeprefix(f"{request}: "), _hint(error)) from error
        if not self._has_answered:
            self._check_first(request, response)
            self._has_answered = True
        return response

    def _check_first(self, request: Request, response: Response) -> None:
        if (foreign := foreign_answer(request, response)) is not None:
            raise CommandError(f"{self._server} {foreign.text}", foreign.advice)
        if response.status == HTTPStatus.UNAUTHORIZED:
            refused = error_from_answer(str(request), response.status, response.headers, response.body)
            raise CommandError(str(refused), _UNAUTHORIZED)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """Open a watch."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def _limited(self, request: Request) -> Request:
        if not self._timeout:
            return request
        deadlines = Deadlines(self._timeout, self._timeout, self._timeout)
        return msgspec.structs.replace(request, deadlines=deadlines)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep the warnings of caches that try again off the terminal: the command itself says what failed."""
    logger = logging.getLogger("trimtab")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def with_client(
    kubeconfig: str,
    context: str,
    act: Callable[[Client, str], Awaitable[T]],
    *,
    timeout: timedelta | None = None,
    forbidden_hint: str = _FORBIDDEN,
) -> T:
    """Connect, call `act` with the client and the context's namespace, and disconnect."""

    async def main() -> T:
        clock = SystemClock()
        connection = load_connection(clock, kubeconfig or None, context or None)
        client = Client(clock, CommandTransport(HttpTransport(clock, connection), connection.server, timeout))
        try:
            return await act(client, connection.namespace or "default")
        finally:
            await client.close()

    try:
        with _without_warnings():
            return asyncio.run(main())
    except ApiError as error:
        raise CommandError(str(error), forbidden_hint if isinstance(error, Forbidden) else "", 2) from error
    except ClusterError as error:
        raise CommandError(str(error), _hint(error), 2) from error


def _hint(error: ClusterError) -> str:
    """Return the question whether the cluster is up, for an error that another state of the cluster would avoid."""
    return _UNREACHABLE if isinstance(error, Unreachable) else ""
