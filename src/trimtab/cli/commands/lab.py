"""`trimtab lab` runs an embedded cluster on loopback, until Ctrl-C."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from trimtab.cli.limits import require_descriptors
from trimtab.cli.output import claim_kubeconfig, kubeconfig_option

if TYPE_CHECKING:
    from trimtab_lab.kubeconfig_file import KubeconfigFile
    from trimtab_lab.serve import ServedLab

_KUBECONFIG = Path(".trimtab/lab.kubeconfig")
OpenLab: TypeAlias = "Callable[[], AbstractAsyncContextManager[ServedLab]]"


@click.command("lab")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--bind",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Anything but loopback exposes the lab to others.",
)
@kubeconfig_option(_KUBECONFIG)
@click.option("--print-kubeconfig", is_flag=True, help="Also print the kubeconfig to standard output.")
@click.option(
    "--with-workloads",
    is_flag=True,
    help="Also run controllers and nodes, so that Deployments become pods that are ready.",
)
@click.option(
    "--load",
    "plan",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A load plan for the pods (docs/load-models.md); implies --with-workloads.",
)
def lab(
    port: int,
    bind: str,
    kubeconfig: Path | None,
    print_kubeconfig: bool,
    with_workloads: bool,
    plan: Path | None,
) -> None:
    """Run an embedded Kubernetes API server that kubectl can use, until Ctrl-C."""
    from trimtab.serving.server import ListenError  # noqa: PLC0415 - the server's imports cost time that --help should not take

    require_descriptors()
    try:
        open_lab = partial(_open, bind, port, has_workloads=with_workloads or plan is not None, plan=plan)
        with claim_kubeconfig(kubeconfig, _KUBECONFIG) as file:
            _run(asyncio.Runner, open_lab, file, prints=print_kubeconfig)
    except ListenError as problem:
        where = f"{bind}:{port}"
        raise click.ClickException(
            f"the lab cannot listen on {where}: {problem.strerror or problem}; try --port 0"
        ) from problem


def _run(
    runner: type[asyncio.Runner], open_lab: "OpenLab", kubeconfig: "KubeconfigFile", *, prints: bool
) -> None:
    try:
        import uvloop  # noqa: PLC0415 - optional, and slow to import for --help

        factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    except ImportError:
        factory = asyncio.new_event_loop
    with runner(loop_factory=factory) as loop:
        loop.run(_serve(open_lab, kubeconfig, prints=prints))


@asynccontextmanager
async def _open(
    bind: str, port: int, *, has_workloads: bool, plan: Path | None
) -> "AsyncIterator[ServedLab]":
    from trimtab.clock import SystemClock  # noqa: PLC0415 - the server's imports cost time that --help should not take
    from trimtab_lab.apiserver.server import Server  # noqa: PLC0415
    from trimtab_lab.serve import ListenAddress, ServedLab  # noqa: PLC0415

    address = ListenAddress(bind, port)
    if not has_workloads:
        async with ServedLab(Server(SystemClock()), address) as served:
            yield served
        return
    from trimtab_lab.data_plane import DataPlaneConfig  # noqa: PLC0415
    from trimtab_lab.embedded import EmbeddedCluster  # noqa: PLC0415
    from trimtab_lab.load.plan import NO_LOAD, PlanError, read_plan  # noqa: PLC0415

    try:
        setting = DataPlaneConfig(plan=read_plan(plan) if plan is not None else NO_LOAD)
    except PlanError as problem:
        raise click.ClickException(str(problem)) from problem
    async with EmbeddedCluster(SystemClock(), setting=setting, address=address) as cluster:
        assert cluster.served is not None
        yield cluster.served


async def _serve(open_lab: "OpenLab", kubeconfig: "KubeconfigFile", *, prints: bool) -> None:
    import yaml  # noqa: PLC0415 - the server's imports cost time that --help should not take

    from trimtab.operator import log_format  # noqa: PLC0415

    async with open_lab() as running:
        log_format.set_up("text", verbosity=0)
        kubeconfig.write(running.kubeconfig())
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        click.echo(f"The lab serves {running.url}; its admin kubeconfig is {kubeconfig.path}", err=True)
        click.echo(f"Try: kubectl --kubeconfig {kubeconfig.path} get namespaces", err=True)
        click.echo("Ctrl-C stops it; everything in it is in memory and will be gone.", err=True)
        if prints:
            click.echo(yaml.safe_dump(running.kubeconfig(), sort_keys=False))
            sys.stdout.flush()
        await stop.wait()
