"""The lab in memory, for tests that need an API server and no sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from trimtab.cluster.in_process import InProcessTransport
from trimtab_lab.apiserver.server import Server


def as_admin(server: Server) -> InProcessTransport:
    """Return the way to a lab for a client with all rights."""
    return InProcessTransport(server, headers={"authorization": f"Bearer {server.tokens.admin}"})


class Openable(Protocol):
    """A stage: it makes a place for a test on an API server, and leaves nothing behind."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


S = TypeVar("S", bound=Openable)


@asynccontextmanager
async def opened(stage: S) -> AsyncIterator[S]:
    """Open a stage, and close it whatever happens on it."""
    await stage.open()
    try:
        yield stage
    finally:
        await stage.close()
