"""A running `trimtab up`, from its start until Ctrl-C, on whatever cluster."""

import asyncio
import shutil
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from trimtab.cli.progress import reporting
from trimtab.cli.stories import Story
from trimtab.cli.stories.changes import ReplicaChanges
from trimtab.cli.stories.stage import Cluster, Example, Programs, Stage
from trimtab.clock import FastClock
from trimtab.dashboard import serving
from trimtab.operator import log_format
from trimtab.serving.server import served
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster
from trimtab_lab.kubeconfig_file import KubeconfigFile
from trimtab_lab.serve import ListenAddress
from trimtab_lab.storage.codec import JsonObject

LOOPBACK = "127.0.0.1"
_SHOW_SECONDS = 5.0
_TEXT_WIDTH = 100


@dataclass(frozen=True)
class OpenCluster:
    """A cluster that runs, and how to reach it."""

    cluster: Cluster
    url: str
    kubeconfig: JsonObject
    about: str = ""
    """What the first line says about it."""


@asynccontextmanager
async def embedded_cluster(
    clock: FastClock, port: int, config: DataPlaneConfig
) -> AsyncIterator[OpenCluster]:
    """Run the embedded cluster on loopback."""
    address = ListenAddress(LOOPBACK, port)
    async with EmbeddedCluster(clock, setting=config, address=address) as cluster:
        assert cluster.served is not None
        yield OpenCluster(cluster, cluster.served.url, cluster.served.kubeconfig())


class Session:
    """The examples on a cluster, with everything printed that a user needs."""

    def __init__(
        self,
        clock: FastClock,
        cluster: AbstractAsyncContextManager[OpenCluster],
        examples: Sequence[Example],
        kubeconfig: KubeconfigFile,
        plugins: tuple[str, ...] = (),
    ) -> None:
        self._plugins = plugins
        self._clock = clock
        self._cluster = cluster
        self._examples = examples
        self._kubeconfig = kubeconfig

    async def run(self, seconds: float) -> None:
        """Start everything, print the stories, and wait for the end."""
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        log_format.set_up("text", verbosity=0)
        async with AsyncExitStack() as stack:
            opening = asyncio.ensure_future(self._open(stack))
            ended = asyncio.ensure_future(stop.wait())
            await asyncio.wait({opening, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)
                say("\nstopping")
                return
            show = asyncio.ensure_future(self._show(opening.result()))
            stack.callback(show.cancel)
            await asyncio.wait({ended}, timeout=seconds * self._clock.speed or None)
            ended.cancel()
            say("\nstopping; everything was in memory and is gone now")

    async def _open(self, stack: AsyncExitStack) -> Stage:
        opened = await stack.enter_async_context(self._cluster)
        stage = Stage(self._clock, opened.cluster, say, self._plugins, speed=self._clock.speed)
        programs = await stage.open(self._examples, stack)
        with reporting(self._show_past):
            await self._clock.catch_up()
        self._kubeconfig.write(opened.kubeconfig)
        await self._serve(opened, programs, stack)
        return stage

    def _show_past(self) -> None:
        say(f"  {self._clock.behind:.0f} s until the cluster has caught up with the time of day")

    async def _serve(self, opened: OpenCluster, programs: Programs, stack: AsyncExitStack) -> None:
        """Serve the operator's port and the dashboard, and print where everything is."""
        operator = await stack.enter_async_context(served(programs.health, LOOPBACK, 0))
        dashboard = programs.dashboard.url(await stack.enter_async_context(serving(programs.dashboard)))
        about = f"{opened.about}, " if opened.about else ""
        say(
            f"\nTrimtab is up: {opened.url}, {about}every alpha feature gate on, "
            f"time runs {self._clock.speed:g}x.\n"
        )
        say(f"  dashboard: {dashboard}\n")
        say(f"  export KUBECONFIG={self._kubeconfig.path.resolve()}")
        say(f"  export TRIMTAB_OPERATOR=http://{LOOPBACK}:{operator}")
        folder = Path(sys.executable).parent
        if (folder / "trimtab").exists() and shutil.which("trimtab") is None:
            say(f'  export PATH="{folder}:$PATH"')
        self._propose()
        say("\nTurn the load of any workload up and down under Load in the dashboard, and watch it follow.")
        say("\nCtrl-C ends it. Changes of replicas are printed here, with the cluster's time in UTC:\n")

    def _propose(self) -> None:
        stories = [example for example in self._examples if isinstance(example, Story)]
        say("\nWhat to look at, and what to try next (in another terminal, after the lines above):")
        for story in stories:
            say(
                f"\n  {story.title} (namespace {story.name})\n"
                f"{_wrapped('see: ', story.see(self._clock.speed))}\n    try: {story.try_this}"
            )
        if not stories:
            say("\n  trimtab top                       # every autoscaler, and what holds it")
            say("  kubectl get thpa,hpa,tvpa -A")

    async def _show(self, stage: Stage) -> None:
        """Print a line whenever a workload changes size, or is held."""
        changes = ReplicaChanges()
        while True:
            for line in changes.lines(await stage.rows()):
                say(f"{self._clock.now():%H:%M:%S}  {line}")
            await self._clock.sleep(_SHOW_SECONDS)


def _wrapped(label: str, text: str) -> str:
    """Return a text of several lines, indented below its label."""
    indent = " " * 4
    return textwrap.fill(
        text,
        _TEXT_WIDTH,
        initial_indent=indent + label,
        subsequent_indent=indent + " " * len(label),
        break_on_hyphens=False,
    )


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    click.echo(text)
    sys.stdout.flush()
