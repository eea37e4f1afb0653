"""`make up ARGS=--real`: the stories of `trimtab up` on the real kube-apiserver, etcd and kube-controller-manager.

Only the nodes, their load and the metrics are the lab's. The programs are those of `make test-real`; they are built once
with Go, and `K8S=1.36` chooses another release.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import yaml

from tools.peers import build, releases
from tools.peers.cluster import WORKLOAD_CONTROLLERS, PeerError, RealCluster
from trimtab.cli.commands.up import KUBECONFIG, chosen_examples, scenario_option
from trimtab.cli.errors import CommandError, one_line
from trimtab.cli.output import claim_kubeconfig, kubeconfig_option
from trimtab.cli.parameters import plugins_option
from trimtab.cli.stories.session import OpenCluster, Session
from trimtab.clock import FastClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.metrics.server import MetricsServer

SAMPLE_SECONDS: Final = 5.0
"""Time cannot be played in advance here, so pods are measured more often than by metrics-server."""
DEFINITION: Final = "CustomResourceDefinition"


@dataclass(frozen=True)
class RealStage:
    """The real API server, with the lab's nodes."""

    real: RealCluster
    client: Client
    side: DataPlane

    async def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Apply objects with the real kubectl. Missing namespaces are created."""
        await asyncio.to_thread(self._apply, manifests)

    def _apply(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        names = {obj["metadata"].get("namespace", "") for obj in manifests} - {""}
        spaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(names)
        ]
        for items in (spaces, list(manifests)):
            if items:
                text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
                self.real.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        kinds = [f"crd/{obj['metadata']['name']}" for obj in manifests if obj["kind"] == DEFINITION]
        if kinds:
            self.real.kubectl("wait", "--for=condition=Established", "--timeout=60s", *kinds)


@asynccontextmanager
async def real_cluster(clock: FastClock, real: RealCluster) -> AsyncIterator[OpenCluster]:
    """Run the lab's nodes on a real API server, and its metrics behind the real aggregator."""
    config = DataPlaneConfig(sample_seconds=SAMPLE_SECONDS)
    client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(real.kubeconfig), environ={})))
    try:
        async with DataPlane(client, config) as side, MetricsServer(side) as metrics:
            await metrics.register()
            kubeconfig = yaml.safe_load(real.kubeconfig.read_text(encoding="utf-8"))
            about = f"kube-apiserver {releases.chosen()}"
            yield OpenCluster(RealStage(real, client, side), real.url, kubeconfig, about)
    finally:
        await client.close()


@click.command()
@click.option("--real", is_flag=True, required=True, help="Use the real kube-apiserver.")
@scenario_option
@click.option(
    "-f", "--filename", "files", multiple=True, type=click.Path(path_type=Path), help="Your own manifests."
)
@click.option(
    "--for", "seconds", type=float, default=0.0, help="Stop by itself so many seconds after Trimtab is up."
)
@kubeconfig_option(KUBECONFIG)
@plugins_option
def up(
    *,
    real: bool,
    scenarios: tuple[str, ...],
    files: tuple[Path, ...],
    seconds: float,
    kubeconfig: Path | None,
    plugins: tuple[str, ...],
) -> None:
    """Try Trimtab on the real kube-apiserver."""
    assert real
    examples = chosen_examples(scenarios, files, None)
    try:
        release = releases.chosen()
        build.ensure(("etcd", "kube-apiserver", "kubectl", "kube-controller-manager"))
        with claim_kubeconfig(kubeconfig, KUBECONFIG) as file, tempfile.TemporaryDirectory() as place:
            click.echo(f"starting etcd, kube-apiserver and kube-controller-manager {release} ...")
            with RealCluster(Path(place) / "real") as cluster:
                cluster.start_controllers(
                    WORKLOAD_CONTROLLERS, "--kube-api-qps=1000", "--kube-api-burst=2000"
                )
                clock = FastClock(1)
                opened = real_cluster(clock, cluster)
                clock.run(Session(clock, opened, examples, file, plugins).run(seconds))
    except (build.CannotBuildError, releases.UnknownReleaseError, PeerError) as error:
        raise CommandError(str(error), "without Go: make up") from error


def main() -> int:
    """Run the command. An error is one line."""
    try:
        up.main(standalone_mode=False, prog_name="make up ARGS=--real")
    except click.ClickException as error:
        click.echo(one_line(error.format_message(), getattr(error, "hint", "")), err=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
