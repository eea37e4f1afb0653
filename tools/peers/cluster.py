"""A real Kubernetes API server on loopback: etcd, kube-apiserver and, if asked, kube-controller-manager.

    with RealCluster(directory) as cluster:
        cluster.start_controllers(WORKLOAD_CONTROLLERS)
        cluster.kubectl("get", "namespaces")

Everything started is stopped on exit, by pid. Logs and credentials stay in the directory.
"""

import base64
import json
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tools.peers import build, pki, processes

HOST = "127.0.0.1"
HPA_CONTROLLER = ("horizontal-pod-autoscaler-controller",)
ALL_CONTROLLERS = ("*", "-node-ipam-controller")
"""Every controller of a cluster with nodes; a node gives its pods their addresses itself."""
ALL_BUT_HPA = (*ALL_CONTROLLERS, *(f"-{name}" for name in HPA_CONTROLLER))
WORKLOAD_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)
GATES = "HPAScaleToZero=true,HPAConfigurableTolerance=true"
_ETCD_QUOTA = 8 * 1024**3
"""Bytes. etcd's default of 2 GiB is full when 200,000 pods have changed once."""


class User(NamedTuple):
    """An account of the API server that has a token."""

    name: str
    identity: str
    group: str = ""


ADMIN = User("admin", "admin", "system:masters")
CONTROLLER_MANAGER = User("controller-manager", "system:kube-controller-manager")


class PeerError(Exception):
    """A peer program did not start; the message names its log."""


class RealCluster:
    """etcd and kube-apiserver, started by entering the context."""

    def __init__(
        self,
        directory: Path,
        *,
        gates: str = GATES,
        apiserver_args: Sequence[str] = (),
        users: Sequence[User] = (),
        has_service_accounts: bool = False,
    ) -> None:
        self.directory = directory
        self.gates = gates
        self._users = (ADMIN, CONTROLLER_MANAGER, *users)
        self._has_service_accounts = has_service_accounts
        self._apiserver_args = tuple(apiserver_args)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        build.ensure(["etcd", "kube-apiserver", "kubectl"])
        self._controllers: frozenset[str] = frozenset()
        self.tokens: dict[str, str] = {}
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"

    @property
    def etcd(self) -> str:
        """Return the address of etcd, for those who write there directly."""
        return self._etcd

    @property
    def has_controllers(self) -> bool:
        """Return whether kube-controller-manager is built; the small tier of a release goes without."""
        return build.find("kube-controller-manager") is not None

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids by program, for measuring."""
        return {name: process.pid for name, process in self._processes.items()}

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pki.make(self.directory)
        self._write_tokens()
        try:
            self._start_etcd()
            self._start_apiserver()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run the real kubectl as administrator and return what it printed."""
        program = build.find("kubectl")
        if program is None:
            raise PeerError("kubectl is neither built nor on the path")
        run = subprocess.run(
            [str(program), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if check and run.returncode:
            raise PeerError(f"kubectl {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout + (run.stderr if not check else "")

    def start_controllers(self, controllers: Sequence[str], *arguments: str) -> str:
        """Start kube-controller-manager with these controllers, in place of one that runs; return its url."""
        build.ensure(["kube-controller-manager"])
        self.stop("kube-controller-manager")
        self._controllers = frozenset(controllers)
        port = free_port()
        config = self.directory / "controller-manager.kubeconfig"
        flags = [
            f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            f"--bind-address={HOST}", f"--secure-port={port}", f"--cert-dir={self.directory / 'kcm-certs'}",
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics", "--leader-elect=false",
            f"--feature-gates={self.gates}", f"--controllers={','.join(controllers)}",
            "--use-service-account-credentials=true", "--service-account-private-key-file=sa.key",
            "--root-ca-file=ca.crt", *arguments,
        ]  # fmt: skip
        url = f"https://{HOST}:{port}"
        self._start("kube-controller-manager", flags, lambda: self._answers(f"{url}/healthz"))
        return url

    def pid_of(self, name: str) -> int:
        """Return the process id of a program that this cluster started."""
        return self._processes[name].pid

    def need_controllers(self, controllers: Sequence[str]) -> None:
        """Have these controllers running: a test that came before may have left others."""
        if "kube-controller-manager" not in self._processes or not self._controllers >= set(controllers):
            # Tests wait for these, so nothing but the machine holds them up.
            self.start_controllers(controllers, "--kube-api-qps=1000", "--kube-api-burst=2000")

    def stop(self, *names: str) -> None:
        """Stop the named programs, or all, the last started first."""
        for name in [name for name in reversed(self._processes) if not names or name in names]:
            processes.stop(self._processes.pop(name))

    def restart_apiserver(self, *, gates: str | None = None) -> None:
        """Kill kube-apiserver and start it again on the same port, as an outage would; with other gates if told."""
        process = self._processes.pop("kube-apiserver")
        process.kill()
        process.wait()
        self._start_apiserver(int(self.url.rsplit(":", 1)[1]), gates)

    def _write_tokens(self) -> None:
        self.tokens = {user.name: secrets.token_hex(16) for user in self._users}
        lines = "".join(
            f'{self.tokens[user.name]},{user.identity},{user.name},"{user.group}"\n' for user in self._users
        )
        (self.directory / "tokens.csv").write_text(lines)

    def _write_kubeconfigs(self) -> None:
        authority = base64.b64encode((self.directory / "ca.crt").read_bytes()).decode()
        for name, token in self.tokens.items():
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "real",
                "clusters": [
                    {"name": "real", "cluster": {"server": self.url, "certificate-authority-data": authority}}
                ],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
            }
            path = self.directory / f"{name}.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(json.dumps(config))

    def _start_etcd(self) -> None:
        client, peer = f"http://{HOST}:{free_port()}", f"http://{HOST}:{free_port()}"
        self._etcd = client
        flags = [
            f"--quota-backend-bytes={_ETCD_QUOTA}", f"--data-dir={self.directory / 'etcd'}", f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync", "--log-level=warn",
        ]  # fmt: skip
        self._start("etcd", flags, lambda: self._answers(f"{client}/health"))

    def _start_apiserver(self, port: int | None = None, gates: str | None = None) -> None:
        port = port or free_port()
        self.url = f"https://{HOST}:{port}"
        self._write_kubeconfigs()
        flags = [
            f"--etcd-servers={self._etcd}", f"--bind-address={HOST}", f"--advertise-address={HOST}",
            f"--secure-port={port}", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
            "--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt",
            "--token-auth-file=tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.key",
            "--service-account-signing-key-file=sa.key", "--requestheader-client-ca-file=front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--proxy-client-cert-file=front-proxy.crt", "--proxy-client-key-file=front-proxy.key",
            "--runtime-config=api/all=true", f"--feature-gates={gates or self.gates}", *self._apiserver_args,
        ]  # fmt: skip
        if not self._has_service_accounts:
            # No service-account controller runs by default, so pods must be creatable without an account.
            flags.append("--disable-admission-plugins=ServiceAccount")
        self._start("kube-apiserver", flags, lambda: self._answers(f"{self.url}/readyz"))

    def _start(
        self, name: str, flags: Sequence[str], is_ready: Callable[[], bool], timeout: float = 90
    ) -> None:
        log = self.directory / f"{name}.log"
        process = processes.start([str(build.place_of(name)), *flags], self.directory, log)
        self._processes[name] = process
        deadline = time.monotonic() + timeout
        while not is_ready():
            if process.poll() is not None:
                raise PeerError(f"{name} ended with {process.returncode}; see {log}:\n{_tail(log)}")
            if time.monotonic() > deadline:
                raise PeerError(f"{name} was not ready within {timeout:.0f} s; see {log}:\n{_tail(log)}")
            time.sleep(0.1)

    def _answers(self, url: str) -> bool:
        # Health of a process we started ourselves a moment ago, on loopback: kube-controller-manager's
        # certificate is self-signed and is not worth verifying here.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.tokens['admin']}"})
        try:
            with urllib.request.urlopen(
                request, timeout=5, context=context if url[4] == "s" else None
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def available() -> str | None:
    """Return why a real API server cannot be had here, or None if it can."""
    missing = [name for name in ("etcd", "kube-apiserver", "kubectl") if not build.find(name)]
    return f"{', '.join(missing)} not built; run `make test-real`" if missing else None


def free_port() -> int:
    """Return a loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _tail(log: Path) -> str:
    return os.linesep.join(log.read_text(errors="replace").splitlines()[-5:])
