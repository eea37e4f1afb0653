"""Our programs in the place of upstream's, by upstream's command lines, on the real API server."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage
from tools.peers.cluster import RealCluster, free_port
from tools.peers.processes import start
from trimtab.cluster import errors
from trimtab.cluster.resource import LEASES
from trimtab.operator.vertical.admission.registration import MUTATING
from trimtab.serving import certificates

pytestmark = pytest.mark.real
LOGS = ["--v=4", "--stderrthreshold=info", "--logtostderr=true"]


@contextmanager
def program(name: str, folder: Path, port: int, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of our programs, as a manifest for upstream's would start it."""
    command = [
        sys.executable,
        "-c",
        "from trimtab.cli import main; main()",
        name,
        f"--address=127.0.0.1:{port}",
    ]
    process = start([*command, *LOGS, *flags], folder, folder / f"{name}.log")
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def ask(port: int, page: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def tls_files(folder: Path, stage: Stage) -> list[str]:
    now = stage.clock.now()
    authority = certificates.make_authority("vpa-ca", now, timedelta(days=1))
    pair = certificates.issue(authority, "vpa", ("127.0.0.1",), now, timedelta(days=1))
    files = {
        "tls-cert-file": pair.certificate_pem,
        "tls-private-key": pair.key_pem,
        "client-ca-file": authority.certificate_pem,
    }
    for name, text in files.items():
        (folder / name).write_bytes(text)
    return [f"--{name}={folder / name}" for name in files]


def test_upstreams_command_lines_start_and_act(real_cluster: RealCluster, tmp_path: Path) -> None:
    """They ended with "No such option" (52 flags)."""

    async def scenario(stage: Stage) -> None:
        webhook, *ports = (free_port() for _ in range(4))
        usual = [f"--kubeconfig={real_cluster.kubeconfig}", f"--vpa-object-namespace={stage.namespace}"]
        registered = [
            "--register-by-url=true",
            "--webhook-address=https://127.0.0.1",
            f"--webhook-port={webhook}",
        ]
        served = [
            f"--port={webhook}",
            "--reload-cert=true",
            "--webhook-timeout-seconds=30",
            "--webhook-labels=a:b",
        ]
        flags = {
            "vpa-recommender": [
                "--recommender-interval=1s",
                "--memory-saver=true",
                "--target-cpu-percentile=0.95",
            ],
            "vpa-updater": [
                "--updater-interval=1s",
                "--min-replicas=1",
                "--use-admission-controller-status=true",
            ],
            "vpa-admission-controller": [*registered, *served, *tls_files(tmp_path, stage)],
        }
        with ExitStack() as running:
            for (name, own), port in zip(flags.items(), ports, strict=True):
                running.enter_context(program(name, tmp_path, port, *usual, *own))

            async def is_up() -> bool:
                return all("ok" in ask(port, "/health-check") for port in ports) and await _is_registered(
                    stage
                )

            await stage.wait_for(is_up, 60)
            found = await stage.client.get(MUTATING, "vpa-webhook-config")
            assert found["webhooks"][0]["name"] == "vpa.k8s.io"
            assert found["metadata"]["labels"] == {"a": "b"}
            lease = await stage.client.get(LEASES, "vpa-admission-controller", "kube-system")
            assert lease.spec.renew_time is not None
            with pytest.raises(errors.ApiError, match=r'admission webhook "vpa\.k8s\.io" denied the request'):
                await stage.vpa("wrong", "db", min_replicas=0)

            async def has_looped() -> bool:
                told = ask(ports[1], "/metrics")
                steps = ("ListVPAs", "ListPods", "FilterPods", "AdmissionInit", "EvictPods", "total")
                return all(f'execution_latency_seconds_count{{step="{step}"}}' in told for step in steps)

            await stage.wait_for(has_looped, 30)

    play_on_real(real_cluster, scenario)


async def _is_registered(stage: Stage) -> bool:
    try:
        await stage.client.get(MUTATING, "vpa-webhook-config")
    except errors.NotFound:
        return False
    return True
