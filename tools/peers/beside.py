"""Programs that run beside a real control plane: kube-scheduler, metrics-server, and Trimtab as its manifests install it.

Trimtab's programs get the arguments of their Deployments and the rights of their accounts. Only addresses differ: they listen on
loopback, and the API server finds the webhook by a Service of the type ExternalName.
"""

import functools
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.peers import build, processes
from tools.peers.cluster import HOST, PeerError, RealCluster, free_port
from trimtab.install import manifests, set_values

NAMESPACE = "trimtab"
_NOT_INSTALLED = ("Deployment", "PodDisruptionBudget", "NetworkPolicy")
"""Objects about pods of Trimtab, of which there are none."""
_WEBHOOK_SERVICE = "trimtab-webhook"
_WEBHOOK_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Beside:
    """Programs beside a control plane; leaving the context stops them, the last started first."""

    def __init__(self, cluster: RealCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str, *command: str) -> None:
        """Start a program; its log has its name."""
        self._processes[name] = processes.start(command, self.directory, self.directory / f"{name}.log")

    def stop(self, *names: str) -> None:
        """Stop the named programs, or all, the last started first."""
        for name in [name for name in reversed(self._processes) if not names or name in names]:
            processes.stop(self._processes.pop(name))

    def start_scheduler(self) -> None:
        """Start kube-scheduler."""
        folder = self.directory / "scheduler"
        self.start(
            "kube-scheduler",
            str(build.place_of("kube-scheduler")),
            "--leader-elect=false",
            *self._serving(folder),
        )

    def start_metrics_server(self, address_type: str) -> None:
        """Start metrics-server, which finds kubelets by this type of address, and register its API."""
        port, folder = free_port(), self.directory / "metrics-server"
        self.start(
            "metrics-server", str(build.place_of("metrics-server")), *self._serving(folder, port), "--kubelet-insecure-tls",
            "--kubelet-use-node-status-port", f"--kubelet-preferred-address-types={address_type}", "--metric-resolution=15s",
        )  # fmt: skip
        self.apply(*_metrics_api(port))

    def wait_for_metrics(self) -> None:
        """Wait until metrics-server answers behind the API server."""
        group = ("get", "apiservice", "v1beta1.metrics.k8s.io", "-o")
        path = 'jsonpath={.status.conditions[?(@.type=="Available")].status}'
        self.wait_until("metrics-server answers", lambda: self.cluster.kubectl(*group, path) == "True", 300)

    def start_trimtab(
        self,
        values: Sequence[str] = (),
        *,
        programs: Sequence[str] = (),
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, str]:
        """Install Trimtab and run its programs, or those named, with more flags; return their addresses."""
        webhook_port = free_port()
        installed = self.install(values, webhook_port)
        deployments = [each for each in installed if each["kind"] == "Deployment"]
        urls = {}
        for deployment in deployments:
            pod = deployment["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            program = container["name"]
            if programs and program not in programs:
                continue
            port = free_port()
            arguments = [*_local(container["args"], port, webhook_port), *(flags or {}).get(program, ())]
            config = self.kubeconfig_of(pod["serviceAccountName"])
            self.start(program, sys.executable, "-m", "trimtab", *arguments, f"--kubeconfig={config}")
            urls[program] = f"http://{HOST}:{port}"
        for program, url in urls.items():
            self.wait_until(f"{program} is ready", functools.partial(answers, f"{url}/readyz"))
        return urls

    def install(self, values: Sequence[str], webhook_port: int) -> Sequence[dict[str, Any]]:
        """Apply the objects of an installation but its pods; return all. Programs that run get its rights."""
        installed = manifests(set_values(values))
        others = [
            _on_loopback(each, webhook_port) for each in installed if each["kind"] not in _NOT_INSTALLED
        ]
        self.apply(*(each for each in others if each["kind"] == "Namespace"))
        self.apply(*(each for each in others if each["kind"] != "Namespace"))
        return installed

    def kubeconfig_of(self, account: str) -> Path:
        """Write a kubeconfig with the rights of a service account of Trimtab's namespace."""
        token = self.cluster.kubectl("create", "token", account, "-n", NAMESPACE, "--duration=12h").strip()
        config = json.loads(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.directory / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects as the administrator."""
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=body)

    def wait_until(self, what: str, is_true: Callable[[], bool], seconds: float = 120) -> None:
        """Wait for a condition; raise PeerError after so many seconds, or when a program ended."""
        deadline = time.monotonic() + seconds
        while not is_true():
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise PeerError(
                        f"{name} ended with {process.returncode}; see {self.directory / name}.log"
                    )
            if time.monotonic() > deadline:
                raise PeerError(
                    f"it took more than {seconds:.0f} s until {what}; logs are in {self.directory}"
                )
            time.sleep(0.3)

    def _serving(self, folder: Path, port: int | None = None) -> tuple[str, ...]:
        """Return the flags that all servers of Kubernetes have."""
        config = self.cluster.kubeconfig
        return (
            f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            f"--bind-address={HOST}", f"--secure-port={port or free_port()}", f"--cert-dir={folder}",
        )  # fmt: skip


def answers(url: str) -> bool:
    """Return whether an address answers with success."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def egress_to(socket: Path) -> str:
    """Return the flag that sends what kube-apiserver dials towards the cluster to a socket; its file is beside the socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": os.fspath(socket)}}}
    selection = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    path = socket.with_suffix(".json")
    path.write_text(json.dumps(selection))
    return f"--egress-selector-config-file={path}"


def _local(arguments: Sequence[str], port: int, webhook_port: int) -> list[str]:
    """Return the arguments of a Deployment with addresses of this machine."""
    local = {
        "--bind-address": HOST,
        "--port": str(port),
        "--webhook-address": HOST,
        "--webhook-port": str(webhook_port),
    }
    named = (argument.partition("=") for argument in arguments)
    return [
        f"{name}={local[name]}" if name in local else name + equals + value for name, equals, value in named
    ]


def _on_loopback(manifest: dict[str, Any], webhook_port: int) -> dict[str, Any]:
    """Return an object of the installation so that the API server finds the webhook on this machine."""
    if manifest["kind"] == "Service" and manifest["metadata"]["name"] == _WEBHOOK_SERVICE:
        return {**manifest, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    if manifest["kind"] in _WEBHOOK_KINDS:
        webhooks = [
            {
                **webhook,
                "clientConfig": {"service": {**webhook["clientConfig"]["service"], "port": webhook_port}},
            }
            for webhook in manifest["webhooks"]
        ]
        return {**manifest, "webhooks": webhooks}
    return manifest


def _metrics_api(port: int) -> tuple[dict[str, Any], ...]:
    """Return the Service and the APIService behind which metrics-server answers on loopback."""
    name, namespace = "metrics-server", "kube-system"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": name, "namespace": namespace, "port": port},
        },
    }
    return service, registration
