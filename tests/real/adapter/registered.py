"""`trimtab adapter` as a process of its own, registered with a real API server on loopback."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tools.peers.cluster import RealCluster

API_VERSION = "adapter.trimtab.dev/v1alpha1"
VERSIONS = (
    ("custom.metrics.k8s.io", "v1beta2", 200),
    ("custom.metrics.k8s.io", "v1beta1", 100),
    ("external.metrics.k8s.io", "v1beta1", 100),
)
# kube-aggregator reaches an ExternalName service by its own name and checks the certificate for SERVICE.NAMESPACE.svc.
SERVICE, NAMESPACE = "trimtab-adapter", "kube-system"
ROLE = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
]


class RegisteredAdapter:
    """A running adapter whose groups the API server serves; leaving stops it and takes them away."""

    def __init__(
        self,
        cluster: RealCluster,
        directory: Path,
        *sources: Any,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        self._flags = flags
        self._environment = {**os.environ, **(environment or {})}
        self.directory = directory
        self._served = 0
        """How often the log names a port."""
        directory.mkdir(parents=True, exist_ok=True)
        configuration = {
            "listen": {"port": 0},
            "tls": {"names": [f"{SERVICE}.{NAMESPACE}.svc", "localhost"]},
            "sources": list(sources),
        }
        write(directory / "config.yaml", "AdapterConfiguration", configuration)

    def __enter__(self) -> Self:
        self._log = (self.directory / "adapter.log").open("ab")
        self._process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("trimtab")), "adapter",
                f"--config={self.directory / 'config.yaml'}", f"--kubeconfig={self._kubeconfig()}",
                *self._flags,
            ],
            env=self._environment, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        try:
            self._register(self._port())
        except BaseException:
            self._leave()
            raise
        return self

    def _port(self) -> int:
        """Wait for the line of the log that names the port."""
        while True:
            told = (self.directory / "adapter.log").read_text()
            if found := re.findall(r"INFO serving metrics address=\S+ port=(\d+)\n", told)[self._served :]:
                self._served += 1
                return int(found[0])
            assert self._process.poll() is None, told
            time.sleep(0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        assert self._process.returncode == 0, "the adapter ends by itself on SIGTERM"

    def _leave(self) -> None:
        """Take the groups away, and stop the process."""
        names = [f"{version}.{group}" for group, version, _ in VERSIONS]
        try:
            self.cluster.kubectl("delete", "apiservices", *names, "--ignore-not-found")
            self.cluster.kubectl("delete", "service", SERVICE, "-n", NAMESPACE, "--ignore-not-found")
        finally:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=20)
            self._log.close()

    def raw(self, path: str) -> Any:
        """Return what kubectl gets from a path, as data."""
        return json.loads(self.cluster.kubectl("get", "--raw", path))

    def _register(self, port: int) -> None:
        bundle = base64.b64encode((self.directory / "adapter-ca.crt").read_bytes()).decode()
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        }
        apply(self.cluster, service, *(_api_service(*one, port, bundle) for one in VERSIONS))
        names = [f"apiservices/{version}.{group}" for group, version, _ in VERSIONS]
        self.cluster.kubectl("wait", *names, "--for=condition=Available", "--timeout=90s")

    def _kubeconfig(self) -> Path:
        """Return the kubeconfig of a service account that has the documented rights and no others."""
        account = {"kind": "ServiceAccount", "name": SERVICE, "namespace": NAMESPACE}
        subject = [account]
        rbac = "rbac.authorization.k8s.io"
        apply(
            self.cluster,
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE, "namespace": NAMESPACE}},
            {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": SERVICE}, "rules": ROLE},
            {
                "apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": SERVICE},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": SERVICE}, "subjects": subject,
            },
            {
                "apiVersion": f"{rbac}/v1", "kind": "RoleBinding",
                "metadata": {"name": SERVICE, "namespace": "kube-system"},
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
                "subjects": subject,
            },
        )  # fmt: skip
        token = self.cluster.kubectl("create", "token", SERVICE, "-n", NAMESPACE).strip()
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.directory / "adapter.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path


def write(path: Path, kind: str, data: Any) -> None:
    """Write one of the adapter's files, at once."""
    partial = path.with_suffix(".partial")
    partial.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": kind, **data}))
    partial.replace(path)


def apply(cluster: RealCluster, *objects: Any) -> None:
    cluster.kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    )


def until(what: str, check: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the first true answer of `check`; fail if none comes."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.2)


def _api_service(group: str, version: str, priority: int, port: int, bundle: str) -> Any:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": priority,
            "caBundle": bundle,
            "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
        },
    }
