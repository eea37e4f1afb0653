"""A lab on a socket, for clients that need one."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.clock import SystemClock
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab, write_kubeconfig


class RunningLab:
    """A lab in a thread of its own, so that blocking clients can call it."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.url = ""
        self.token = ""
        self.server: Server
        self._started = threading.Event()
        self._stop: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.server = Server(SystemClock())
        async with ServedLab(self.server) as lab:
            self.url, self.token = lab.url, self.server.tokens.admin
            self.ca_pem = lab.ca_pem
            write_kubeconfig(self.kubeconfig, lab.kubeconfig())
            self._started.set()
            await self._stop.wait()

    def __enter__(self) -> "RunningLab":
        self._thread.start()
        assert self._started.wait(30), "the lab did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("lab")) as running:
        yield running
