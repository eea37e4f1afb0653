"""A kubelet in a guest that joins a control plane on this machine's loopback."""

import base64
import io
import json
import tarfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.node.disk import Boot
from tools.node.machine import GUEST_ADDRESS, HOST_ADDRESS, Machine
from tools.peers.cluster import HOST, RealCluster, User, free_port

_PROXY_PORT = 9100
_NAMES_ADDRESS = "10.96.0.10"
"""Where pods ask for names, in the guest."""
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


def user_of(name: str) -> User:
    """Return the account of a node's kubelet, which the control plane must know from its start."""
    return User(name, f"system:node:{name}", "system:nodes")


class Node:
    """One real node; entering the context starts it, leaving it switches it off."""

    def __init__(
        self,
        cluster: RealCluster,
        directory: Path,
        boot: Boot,
        name: str,
        *,
        memory: str = "3G",
        cpus: int = 2,
        image: Path | None = None,
    ) -> None:
        self.name = name
        self.proxy_port = free_port()
        """The loopback port of the guest's HTTP CONNECT proxy, by which its pods are reached."""
        self.egress_port = free_port()
        """The loopback port at which pods of the guest find Services while `egress` runs."""
        self._image = image
        self._cluster = cluster
        self._directory = directory
        self._cpus = cpus
        self._port = free_port()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.machine = Machine(directory, boot, memory)

    def __enter__(self) -> Self:
        try:
            forwards = {self._port: self._port, self.proxy_port: _PROXY_PORT}
            self.machine.start(self._settings(), forwards, self._image)
        except BaseException:
            self.machine.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.machine.stop()

    def wait(self) -> None:
        """Wait until the node is Ready and takes pods."""
        self.machine.wait_until("the guest has a shell", self.machine.has_shell)
        self.machine.wait_until("the node is registered", lambda: self._object() is not None)
        self._initialize()
        self.machine.wait_until("the node is Ready", self._is_ready)

    def _settings(self) -> Path:
        """Write what is particular to this node, as the archive that the guest unpacks at its start."""
        authorities = [self._cluster.directory / f"{name}.crt" for name in ("ca", "front-proxy-ca")]
        settings = {
            "NODE_NAME": self.name,
            "NODE_CPUS": self._cpus,
            "API_SERVER": self._api_server,
            "EGRESS": f"{HOST_ADDRESS}:{self.egress_port}",
        }
        files = {
            "etc/node.env": "".join(f"{name}={value}\n" for name, value in settings.items()),
            "etc/httpd.conf": self.machine.shell_settings,
            # The API server shows the kubelet its front-proxy certificate.
            "etc/kubernetes/ca.crt": "".join(path.read_text() for path in authorities),
            "etc/kubernetes/kubelet.yaml": json.dumps(_kubelet_configuration(self._port)),
            "etc/kubernetes/kubelet.kubeconfig": json.dumps(self._kubeconfig(authorities[0])),
        }
        archive = self._directory / "settings.tar"
        archive.touch(mode=0o600)
        with tarfile.open(archive, "w") as tar:
            for path, text in files.items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(text.encode()), 0o600
                tar.addfile(entry, io.BytesIO(text.encode()))
        return archive

    def _kubeconfig(self, authority: Path) -> dict[str, Any]:
        server = {
            "server": f"https://{self._api_server}",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": base64.b64encode(authority.read_bytes()).decode(),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "node",
            "clusters": [{"name": "node", "cluster": server}],
            "users": [{"name": "node", "user": {"token": self._cluster.tokens[self.name]}}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": "node"}}],
        }

    @property
    def _api_server(self) -> str:
        """Return the address of the API server as the guest sees it."""
        return f"{HOST_ADDRESS}:{self._cluster.url.rsplit(':', 1)[1]}"

    def _object(self) -> dict[str, Any] | None:
        text = self._cluster.kubectl("get", "node", self.name, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found if found and found["status"].get("addresses") else None

    def _initialize(self) -> None:
        """Say where the node is reached from here and remove its taint, as a cloud provider does."""
        address = {"status": {"addresses": [{"type": "ExternalIP", "address": HOST}]}}
        patch = ("patch", "node", self.name, "-p")
        self._cluster.kubectl(*patch, json.dumps(address), "--subresource=status", "--type=strategic")
        taints = (self._object() or {})["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] != _UNINITIALIZED]
        self._cluster.kubectl(*patch, json.dumps({"spec": {"taints": kept or None}}), "--type=merge")

    def _is_ready(self) -> bool:
        conditions = (self._object() or {"status": {}})["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _kubelet_configuration(port: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": GUEST_ADDRESS,
        "port": port,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [_NAMES_ADDRESS],
        "clusterDomain": "cluster.local",
        "failSwapOn": False,
        "resolvConf": "",
        "imageMinimumGCAge": "24h",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "500Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # A node that had too little memory takes pods again soon, because the next test needs it.
        "evictionPressureTransitionPeriod": "10s",
        "nodeStatusUpdateFrequency": "10s",
        "runtimeRequestTimeout": "10m",
    }
