"""The embedded cluster on a socket, in real time, and the options of `trimtab lab` that lead to it."""

import pytest
from click.testing import CliRunner

from tests.unit.lab.controllers.builders import workload
from trimtab.cli.commands.lab import lab
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab_lab.controllers.kinds import DEPLOYMENTS, PODS
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster
from trimtab_lab.nodes.pod_lifecycle import Timing
from trimtab_lab.serve import ListenAddress, write_kubeconfig

AT_ONCE = DataPlaneConfig(timing=Timing(start_seconds=0, stop_seconds=0))


async def test_what_a_client_applies_over_tls_becomes_running_pods(tmp_path):
    clock, path = SystemClock(), tmp_path / "kubeconfig"
    async with EmbeddedCluster(clock, setting=AT_ONCE, address=ListenAddress()) as cluster:
        assert cluster.served is not None
        write_kubeconfig(path, cluster.served.kubeconfig())
        client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(path))))
        await client.create(DEPLOYMENTS, workload("Deployment", "web", replicas=2), "default")
        await cluster.settle(30)
        phases = [pod.status.phase for pod in (await client.list(PODS)).items]
        await client.close()
    assert phases == ["Running"] * 2


def test_a_plan_that_cannot_be_read_is_an_error_of_one_line(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("kind: Pod")
    result = CliRunner().invoke(
        lab, ["--load", str(path), "--write-kubeconfig", str(tmp_path / "kubeconfig")]
    )
    assert result.exit_code == 1
    assert result.output == (
        f"Error: {path}: a load plan starts with apiVersion: lab.trimtab.dev/v1 and kind: LoadPlan\n"
    )


def test_a_kubeconfig_below_a_file_is_an_error_that_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "kubeconfig", tmp_path / "file" / "folder" / "kubeconfig"):
        with pytest.raises(NotADirectoryError):
            write_kubeconfig(path, {})
