"""`trimtab up` runs an embedded cluster with example stories, and Trimtab in it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trimtab.cli.errors import CommandError
from trimtab.cli.limits import require_descriptors
from trimtab.cli.output import claim_kubeconfig, kubeconfig_option
from trimtab.cli.parameters import ListOption, Names, plugins_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trimtab.cli.stories.stage import Example

_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?)x?\Z", re.ASCII)
KUBECONFIG = Path(".trimtab/kubeconfig")
MOST = 5000
PODS_PER_WORKLOAD = 3
PODS_PER_NODE = 100

scenario_option = click.option(
    "--scenario",
    "scenarios",
    cls=ListOption,
    type=Names(),
    default="",
    help="Only this story; may be given several times.",
)


@click.command("up")
@scenario_option
@click.option(
    "-f", "--filename", "files", multiple=True, type=click.Path(path_type=Path),
    help="Your own manifests in place of the stories, with a load plan if you like; may be given several times.",
)  # fmt: skip
@click.option(
    "--many",
    type=click.IntRange(1, MOST),
    help="So many small workloads in place of the stories, as a big cluster has.",
)
@click.option("--speed", default="1x", show_default=True, help="How fast time runs, as 60x.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; 0 picks a free one."
)
@click.option(
    "--for",
    "seconds",
    type=float,
    default=0.0,
    help="Stop by itself so many real seconds after Trimtab is up.",
)
@kubeconfig_option(KUBECONFIG)
@plugins_option
def up(  # noqa: PLR0913 - one parameter per option
    *,
    scenarios: tuple[str, ...],
    files: tuple[Path, ...],
    many: int | None,
    speed: str,
    port: int,
    seconds: float,
    kubeconfig: Path | None,
    plugins: tuple[str, ...],
) -> None:
    """Try Trimtab: an embedded cluster in this process, with five small stories for kubectl and the dashboard."""
    match = _SPEED.match(speed)
    if not match or not 0 < float(match[1]) <= 1000:
        raise CommandError(f"--speed: {speed!r} is not a speed such as 1x or 60x (1000x at most)")
    examples = chosen_examples(scenarios, files, many)
    click.echo("loading the embedded cluster ...")
    from trimtab.cli.stories.session import Session, embedded_cluster  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cli.stories.stage import PAST_SECONDS, PAST_SECONDS_PER_WORKLOAD  # noqa: PLC0415
    from trimtab.clock import FastClock  # noqa: PLC0415
    from trimtab.serving.server import ListenError  # noqa: PLC0415
    from trimtab_lab.data_plane import DataPlaneConfig  # noqa: PLC0415
    from trimtab_lab.nodes.node_pool import NodePool  # noqa: PLC0415

    click.echo(
        "starting its API server, nodes and load ..."
    )  # the imports alone take two seconds the first time
    require_descriptors()
    past = PAST_SECONDS + PAST_SECONDS_PER_WORKLOAD * (many or 0)
    clock = FastClock(float(match[1]), past=past)
    pool = NodePool(count=3 + (many or 0) * PODS_PER_WORKLOAD // PODS_PER_NODE)
    try:
        with claim_kubeconfig(kubeconfig, KUBECONFIG) as file:
            cluster = embedded_cluster(clock, port, DataPlaneConfig(pools=(pool,)))
            clock.run(Session(clock, cluster, examples, file, plugins).run(seconds))
    except ListenError as error:
        raise CommandError(
            f"cannot listen on port {port}: {error.strerror or error}", "try --port 0"
        ) from error


def chosen_examples(
    scenarios: tuple[str, ...], files: tuple[Path, ...], many: int | None
) -> "Sequence[Example]":
    """Return what the options ask for: stories, files or many workloads. Raise CommandError for more than one."""
    from trimtab.cli.stories import chosen  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cli.stories.examples import ManyWorkloads, UserFiles  # noqa: PLC0415
    from trimtab.library.yaml_nodes import DocumentError  # noqa: PLC0415

    if sum(map(bool, (scenarios, files, many))) > 1:
        raise CommandError("--scenario, --filename and --many cannot be combined", "use one of them")
    try:
        if many:
            return (ManyWorkloads(many),)
        if not files:
            return chosen(scenarios)
        own = UserFiles(files)
    except (ValueError, DocumentError) as error:
        raise CommandError(str(error)) from error
    for load in own.defaults:
        click.echo(f"{load.name} has no load plan: its pods get half of the CPU that they request")
    return (own,)
