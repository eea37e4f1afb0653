"""The real metrics-server on loopback, behind the real aggregator, with one simulated kubelet to scrape."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench._kubelet import Kubelet, Usage
from bench.picture.api import Api, Json
from tools.peers import build, processes
from tools.peers.cluster import HOST, RealCluster, free_port

RESOLUTION = 15
"""Seconds between two scrapes: metrics-server's own default."""

_NAME, _SPACE, _NODE = "metrics-server", "kube-system", "bench-node"
_PATIENCE = 120


@contextmanager
def serving(cluster: RealCluster, api: Api, usage: Usage) -> Iterator[None]:
    """Start kubelet and metrics-server, and stop both at the end."""
    build.ensure([_NAME])
    directory = cluster.directory
    with Kubelet(usage, directory / "apiserver.crt", directory / "apiserver.key") as kubelet:
        _create_node(api, kubelet.port)
        port = free_port()
        process = _start(directory, cluster.kubeconfig, port)
        try:
            _register(api, port)
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


def wait_until_measured(api: Api, namespaces: int) -> None:
    """Wait until metrics-server has scraped twice and reports pods of all namespaces."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            items = api.get("/apis/metrics.k8s.io/v1beta1/pods")["items"]
        except (OSError, RuntimeError, ValueError):
            items = []
        if len({item["metadata"]["namespace"] for item in items}) >= namespaces:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"metrics-server reports {len(items)} pods after {_PATIENCE} s")
        time.sleep(0.5)


def _create_node(api: Api, port: int) -> None:
    node = {"metadata": {"name": _NODE}}
    api.create("/api/v1/nodes", node, "bench")
    status = {
        "addresses": [{"type": "InternalIP", "address": HOST}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated"}],
    }
    api.merge(f"/api/v1/nodes/{_NODE}/status", {"status": status}, "bench")


def _start(directory: Path, kubeconfig: Path, port: int) -> subprocess.Popen[bytes]:
    program = build.find(_NAME)
    assert program is not None
    command = [
        str(program), f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}", f"--bind-address={HOST}", f"--secure-port={port}",
        f"--cert-dir={directory / 'metrics-server-certs'}", "--kubelet-insecure-tls", "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=InternalIP", f"--metric-resolution={RESOLUTION}s",
    ]  # fmt: skip
    return processes.start(command, directory, directory / f"{_NAME}.log")


def _register(api: Api, port: int) -> None:
    service: Json = {
        "metadata": {"name": _NAME},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    api.create(f"/api/v1/namespaces/{_SPACE}/services", service, "bench")
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": _NAME, "namespace": _SPACE, "port": port},
    }
    body = {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec}
    api.create("/apis/apiregistration.k8s.io/v1/apiservices", body, "bench")
