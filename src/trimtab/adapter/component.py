"""The adapter as one of the loops of `trimtab run`: the same program as `trimtab adapter`, in the same process."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from trimtab.adapter.config import load_configuration
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.program import Adapter, serve
from trimtab.clock import Clock
from trimtab.cluster.client import Client

log = logging.getLogger(__name__)


class AdapterComponent:
    """Serves custom and external metrics while it runs; every copy serves, whoever leads."""

    name = "adapter"

    def __init__(self, clock: Clock, client: Client, file: str, *, namespaces: Sequence[str] = ()) -> None:
        """Read the configuration, so that a mistake in it ends the program before anything is started."""
        if not file:
            raise ConfigurationError("the component adapter needs --adapter-config, its configuration file")
        path = Path(file)
        if not path.is_file():
            raise ConfigurationError(f"--adapter-config: there is no file {file}")
        self._clock = clock
        self._client = client
        self._namespaces = namespaces
        self._configuration = load_configuration(path)
        self._root = path.absolute().parent
        self._running: Adapter | None = None

    @property
    def running(self) -> Adapter | None:
        """Return the running adapter; None while it does not serve."""
        return self._running

    async def run(self) -> None:
        """Serve until cancelled."""
        async with AsyncExitStack() as stack:
            self._running = running = await self._serve(stack)
            stack.callback(self._stopped)
            log.info("serving metrics", extra={"facts": {"port": running.port}})
            await asyncio.Event().wait()

    async def _serve(self, stack: AsyncExitStack) -> Adapter:
        try:
            return await stack.enter_async_context(
                serve(self._clock, self._client, self._configuration, self._root, self._namespaces)
            )
        except OSError as error:
            where = f"{self._configuration.listen.address}:{self._configuration.listen.port}"
            raise ConfigurationError(
                f"the adapter cannot listen on {where}: {error.strerror or error}; choose another listen.port, or 0 for any"
            ) from error

    def _stopped(self) -> None:
        self._running = None

    def health(self) -> dict[str, str]:
        """Return what keeps it from serving; a source or rule that fails is told on its own port and takes nothing down."""
        if self._running is None:
            return {"start": "not serving yet"}
        problem = self._running.trust.problem
        return {"trust": problem} if problem else {}
