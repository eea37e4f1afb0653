"""`trimtab up` runs an embedded cluster with example stories, and Trimtab in it."""

import asyncio
import re
import shutil
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trimtab.cli.errors import CommandError
from trimtab.cli.limits import require_descriptors

if TYPE_CHECKING:
    from trimtab.cli.stories import Story
    from trimtab.clock import FastClock
    from trimtab.cluster.client import Client
    from trimtab.lab.embedded import EmbeddedCluster
    from trimtab.operator.process import Component

_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?)x?\Z", re.ASCII)
_GATES = "AllAlpha=true"
_KUBECONFIG = Path(".trimtab/kubeconfig")


@click.command("up")
@click.option("--scenario", "scenarios", multiple=True, help="Only this story; may be given several times.")
@click.option("--speed", default="1x", show_default=True, help="How fast time runs, as 60x.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; 0 picks a free one."
)
@click.option("--for", "seconds", type=float, default=0.0, help="Stop by itself after so many real seconds.")
@click.option(
    "--write-kubeconfig", "kubeconfig", type=click.Path(dir_okay=False, path_type=Path), default=_KUBECONFIG, show_default=True,
    help="Where to write the kubeconfig (mode 0600).",
)  # fmt: skip
def up(scenarios: tuple[str, ...], speed: str, port: int, seconds: float, kubeconfig: Path) -> None:
    """Try Trimtab: an embedded cluster in this process, with five small stories for kubectl and the dashboard."""
    match = _SPEED.match(speed)
    if not match or not 0 < float(match[1]) <= 1000:
        raise CommandError(f"--speed: {speed!r} is not a speed such as 1x or 60x (1000x at most)")
    from trimtab.cli.stories import chosen  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.clock import FastClock  # noqa: PLC0415

    try:
        stories = chosen(scenarios)
    except ValueError as error:
        raise CommandError(str(error)) from error
    from trimtab.serving.server import ListenError  # noqa: PLC0415

    require_descriptors()
    clock = FastClock(float(match[1]))
    try:
        clock.run(_Stage(clock, stories, port, kubeconfig).run(seconds))
    except ListenError as error:
        raise CommandError(
            f"cannot listen on port {port}: {error.strerror or error}", "try --port 0"
        ) from error


class _Stage:
    """The running cluster and its operator."""

    def __init__(self, clock: "FastClock", stories: "tuple[Story, ...]", port: int, kubeconfig: Path) -> None:
        self._clock = clock
        self._stories = stories
        self._port = port
        self._kubeconfig = kubeconfig
        self._operator = 0
        self._dashboard = ""

    async def run(self, seconds: float) -> None:
        """Start everything, print the stories, and wait for the end."""
        from trimtab.lab.embedded import EmbeddedCluster  # noqa: PLC0415
        from trimtab.lab.serve import ListenAddress, write_kubeconfig  # noqa: PLC0415
        from trimtab.model.crds import all_crds  # noqa: PLC0415

        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with AsyncExitStack() as stack:
            _say("starting the embedded cluster ...")
            cluster = await stack.enter_async_context(
                EmbeddedCluster(self._clock, address=ListenAddress("127.0.0.1", self._port))
            )
            assert cluster.served is not None
            write_kubeconfig(self._kubeconfig, cluster.served.kubeconfig())
            await cluster.apply(*all_crds())
            for story in self._stories:
                _say(f"putting up: {story.title}")
                plan = story.load()
                for load in plan.workloads:
                    cluster.load.set(load)
                for series in plan.series:
                    cluster.load.set(series)
                await cluster.apply(*story.objects())
            cluster.measure()  # so that the first decisions find values, and a newcomer something that scales
            await self._start_operator(cluster, stack)
            self._tell(cluster.served.url)
            show = asyncio.ensure_future(self._show(cluster.client))
            stack.callback(show.cancel)
            try:
                async with asyncio.timeout(seconds * self._clock.speed or None):
                    await stop.wait()
            except TimeoutError:
                pass
            _say("\nstopping; everything was in memory and is gone now")

    async def _start_operator(self, cluster: "EmbeddedCluster", stack: AsyncExitStack) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415

        from trimtab.dashboard import LabLoads, OperatorVertical, RemoteState, dashboard_for, serving  # noqa: PLC0415
        from trimtab.operator import log_format  # noqa: PLC0415
        from trimtab.operator.health import HealthApp  # noqa: PLC0415
        from trimtab.operator.horizontal.config import decision_config  # noqa: PLC0415
        from trimtab.operator.horizontal.controller import HpaController  # noqa: PLC0415
        from trimtab.operator.horizontal.records import record_pages  # noqa: PLC0415
        from trimtab.operator.runtime import Runtime  # noqa: PLC0415
        from trimtab.operator.settings.published import own_settings  # noqa: PLC0415
        from trimtab.operator.settings.publisher import SettingsPublisher  # noqa: PLC0415
        from trimtab.operator.settings.settings import Settings  # noqa: PLC0415
        from trimtab.operator.vertical.wiring import VerticalRuntime, make_recommender, make_updater  # noqa: PLC0415
        from trimtab.serving.server import served  # noqa: PLC0415

        log_format.set_up("text", verbosity=0)
        settings = Settings.of(
            components=("horizontal", "recommender", "updater"),
            feature_gates=_GATES,
            leader_elect=False,
        )
        registry = CollectorRegistry()
        runtime = Runtime(self._clock, cluster.client, settings, registry=registry)
        stack.push_async_callback(runtime.close)
        horizontal = HpaController(runtime, config=decision_config(settings))
        site = VerticalRuntime(runtime)
        recommender, updater = make_recommender(site), make_updater(site)
        components: list[Component] = [horizontal, recommender, updater]
        namespace = {"metadata": {"name": settings.leases.leader_elect_resource_namespace}}
        await cluster.apply({"apiVersion": "v1", "kind": "Namespace", **namespace})
        publisher = SettingsPublisher(cluster.client, settings, "trimtab-up")
        for run in (*(component.run for component in components), publisher.run):
            task = asyncio.ensure_future(run())
            stack.push_async_callback(_stop, task)
        app = HealthApp(components, registry, pages=record_pages(horizontal.hpas))
        self._operator = await stack.enter_async_context(served(app, "127.0.0.1", 0))
        page = dashboard_for(
            self._clock,
            horizontal.hpas,
            vertical=OperatorVertical(
                site.view,
                recommender,
                updater,
                RemoteState(self._clock, cluster.client, site.view, lambda: own_settings(settings)),
            ),
            controls=LabLoads(cluster.load),
            owners=horizontal.find_owners,
        )
        self._dashboard = page.url(await stack.enter_async_context(serving(page)))

    def _tell(self, url: str) -> None:
        _say(f"\nTrimtab is up: {url}, every alpha feature gate on, time runs {self._clock.speed:g}x.\n")
        _say(f"  dashboard: {self._dashboard}\n")
        _say(f"  export KUBECONFIG={self._kubeconfig.resolve()}")
        _say(f"  export TRIMTAB_OPERATOR=http://127.0.0.1:{self._operator}")
        folder = Path(sys.executable).parent
        if (folder / "trimtab").exists() and shutil.which("trimtab") is None:
            _say(f'  export PATH="{folder}:$PATH"')
        _say("\nWhat to look at, and what to try next (in another terminal, after the lines above):")
        for story in self._stories:
            _say(
                f"\n  {story.title} (namespace {story.name})\n    see: {story.look}\n    try: {story.try_this}"
            )
        _say("\nTurn the load of any workload up and down under Load in the dashboard, and watch it follow.")
        _say("\nCtrl-C ends it. Changes of replicas are printed here:\n")

    async def _show(self, client: "Client") -> None:
        """Print a line whenever a workload changes size."""
        from trimtab.cli.top_rows import rows_of  # noqa: PLC0415
        from trimtab.operator.settings.settings import Settings  # noqa: PLC0415

        known: dict[tuple[str, str], int] = {}
        while True:
            for row in await rows_of(client, "", Settings.of(feature_gates=_GATES)):
                if row.get("active") != "True":
                    continue  # a VPA, or no number is decided yet, so none changed
                key, now = (row["namespace"], row["name"]), row["desired"]
                before = known.get(key, row["current"])
                if before != now:
                    _say(f"{self._clock.now():%H:%M:%S}  {key[0]}/{key[1]}: {before} -> {now}")
                known[key] = now
            await self._clock.sleep(5)


async def _stop(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()
