"""Connects commands to a cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from trimtab.cli.errors import CommandError
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_connection
from trimtab.cluster.errors import ApiError, ClusterError
from trimtab.cluster.http import HttpTransport

T = TypeVar("T")

kubeconfig_option = click.option("--kubeconfig", default="", help="Path of a kubeconfig; as kubectl's.")
context_option = click.option("--context", default="", help="Context of the kubeconfig.")
namespace_option = click.option("-n", "--namespace", default="", help="Namespace; the context's if absent.")


def with_client(kubeconfig: str, context: str, act: Callable[[Client, str], Awaitable[T]]) -> T:
    """Connect, call `act` with the client and the context's namespace, and disconnect."""

    async def main() -> T:
        clock = SystemClock()
        connection = load_connection(clock, kubeconfig or None, context or None)
        client = Client(clock, HttpTransport(clock, connection))
        try:
            return await act(client, connection.namespace or "default")
        finally:
            await client.close()

    try:
        return asyncio.run(main())
    except ApiError as error:
        raise CommandError(str(error), exit_code=2) from error
    except ClusterError as error:
        raise CommandError(str(error), "is the cluster up, and is this the right context?", 2) from error
