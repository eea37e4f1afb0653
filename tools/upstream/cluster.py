"""A control plane with one node, metrics-server and the HPA controller under test, all on loopback.

The node is simulated, or a real kubelet in user-mode Linux. Both are entered as a context, which stops everything at its end.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.node.cluster import NodeCluster
from tools.peers.beside import Beside, egress_to
from tools.peers.cluster import ALL_BUT_HPA, ALL_CONTROLLERS, RealCluster

TRIMTAB, KUBERNETES = "trimtab", "kube-controller-manager"
CONTROLLERS = (TRIMTAB, KUBERNETES)
"""The HPA controllers that can be tested."""

VALUES = ("settings.native-hpas=true",)
"""The values with which Trimtab is installed in place of the cluster's controller."""

_NODE = "node-1"
_MEMORY = "4G"
_CPUS = 8
"""What a real node shows, for two tests at a time whose pods request 2.5 CPUs each. It has one, and their load fits there."""


@contextmanager
def on_simulated_node(directory: Path, hpa_controller: str, node_program: Path) -> Iterator[Path]:
    """Start everything with a program that stands in for a node; yield the administrator's kubeconfig."""
    socket = directory / "egress.sock"
    control_plane = RealCluster(
        directory / "control-plane",
        apiserver_args=(egress_to(socket), "--kubelet-preferred-address-types=InternalIP"),
    )
    with control_plane as cluster, Beside(cluster, directory) as beside:
        cluster.start_controllers(_controllers(hpa_controller))
        beside.start(
            "node", str(node_program), f"--kubeconfig={cluster.kubeconfig}", f"--socket={socket}", f"--name={_NODE}"
        )  # fmt: skip
        beside.start_scheduler()
        beside.start_metrics_server("InternalIP")
        _start_hpa_controller(beside, hpa_controller)
        beside.wait_until("the node is there", lambda: _NODE in cluster.kubectl("get", "nodes", "-o", "name"))
        cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        beside.wait_for_metrics()
        yield cluster.kubeconfig


@contextmanager
def on_real_node(directory: Path, hpa_controller: str, images: Path) -> Iterator[Path]:
    """Start everything with a kubelet that has an archive of images; yield the administrator's kubeconfig."""
    controllers = _controllers(hpa_controller)
    with NodeCluster(directory, {_NODE: _MEMORY}, images, cpus=_CPUS, controllers=controllers) as cluster:
        _start_hpa_controller(cluster.beside, hpa_controller)
        yield cluster.control_plane.kubeconfig


def _controllers(hpa_controller: str) -> Sequence[str]:
    """Return what kube-controller-manager runs beside the HPA controller under test, or with it."""
    return ALL_CONTROLLERS if hpa_controller == KUBERNETES else ALL_BUT_HPA


def _start_hpa_controller(beside: Beside, hpa_controller: str) -> None:
    if hpa_controller == TRIMTAB:
        beside.start_trimtab(VALUES, programs=("horizontal",))
