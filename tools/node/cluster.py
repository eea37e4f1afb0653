"""A control plane with real nodes, metrics-server, and Trimtab as its own manifests install it."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.node import disk, egress
from tools.node.node import Node, user_of
from tools.peers import build
from tools.peers.beside import Beside, egress_to
from tools.peers.cluster import RealCluster

PEERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "metrics-server")
CONTROLLERS = ("*", "-node-ipam-controller", "-horizontal-pod-autoscaler-controller")

VALUES = ("vertical.updater.minReplicas=1",)
FLAGS: Mapping[str, Sequence[str]] = {
    "recommender": ("--recommender-interval=10s",),
    "updater": ("--updater-interval=10s",),
}
"""Loops of ten seconds instead of a minute, because the tests wait for them."""


class NodeCluster:
    """Everything that the tests on real nodes need; leaving the context stops it.

    With an image of Trimtab the nodes import it, the API server can reach pods, and nothing of Trimtab is installed.
    """

    def __init__(self, directory: Path, nodes: Mapping[str, str], image: Path | None = None) -> None:
        self._directory = directory
        self._nodes = nodes
        self._image = image
        self._socket = directory / "egress.sock"
        self._stack = ExitStack()
        self.control_plane = RealCluster(
            directory / "control-plane",
            users=[user_of(name) for name in nodes],
            has_service_accounts=True,
            apiserver_args=(
                # Repeated, the modes add up.
                "--authorization-mode=Node",
                "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=ExternalIP,InternalIP",
                "--kubelet-client-certificate=front-proxy.crt",
                "--kubelet-client-key=front-proxy.key",
                *((f"--egress-selector-config-file={self._egress()}",) if image else ()),
            ),
        )
        self.beside = Beside(self.control_plane, directory)
        self.nodes: dict[str, Node] = {}
        self.urls: dict[str, str] = {}

    def _egress(self) -> Path:
        path = self._directory / "egress.json"
        path.write_text(json.dumps(egress_to(self._socket)))
        return path

    def __enter__(self) -> Self:
        try:
            self._start_all()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start_all(self) -> None:
        cluster = self._stack.enter_context(self.control_plane)
        cluster.start_controllers(CONTROLLERS)
        binding = ("clusterrolebinding", "apiserver-to-kubelet")
        cluster.kubectl(
            "create", *binding, "--clusterrole=system:kubelet-api-admin", "--user=front-proxy-client"
        )
        beside = self._stack.enter_context(self.beside)
        beside.start_scheduler()
        boot = disk.ensure()
        for name, memory in self._nodes.items():
            self.nodes[name] = self._stack.enter_context(
                Node(cluster, self._directory / name, boot, name, memory=memory, image=self._image)
            )
        if self._image is not None:
            (node,) = self.nodes.values()
            way = (str(self._socket), str(cluster.kubeconfig), str(node.proxy_port))
            beside.start("egress", sys.executable, str(Path(egress.__file__).resolve()), *way)
            beside.wait_until("the egress proxy listens", self._socket.exists)
        beside.start_metrics_server("ExternalIP")
        beside.wait_for_metrics()
        if self._image is None:
            self.urls = beside.start_trimtab(VALUES, flags=FLAGS)


def ensure_programs() -> None:
    """Build or download everything that real nodes need, once."""
    build.ensure(PEERS)
    disk.ensure()
