"""A control plane with one simulated node, metrics-server and the HPA controller under test, all on loopback."""

import json
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.peers.beside import Beside, egress_to
from tools.peers.cluster import RealCluster

TRIMTAB, KUBERNETES = "trimtab", "kube-controller-manager"
CONTROLLERS = (TRIMTAB, KUBERNETES)
"""The HPA controllers that can be tested."""

VALUES = ("horizontal.nativeHpas=true",)
"""The values with which Trimtab is installed in place of the cluster's controller."""

_NODE = "node-1"


class TestCluster:
    """Everything that the tests need, started by entering the context and stopped by leaving it."""

    __test__ = False

    def __init__(self, directory: Path, node_program: Path, hpa_controller: str) -> None:
        self._node_program = node_program
        self._hpa_controller = hpa_controller
        self._socket = directory / "egress.sock"
        selection = directory / "egress.json"
        selection.write_text(json.dumps(egress_to(self._socket)))
        self._control_plane = RealCluster(
            directory / "control-plane",
            apiserver_args=(
                f"--egress-selector-config-file={selection}",
                "--kubelet-preferred-address-types=InternalIP",
            ),
        )
        self._beside = Beside(self._control_plane, directory)

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig, with which the tests run."""
        return self._control_plane.kubeconfig

    def __enter__(self) -> Self:
        self._control_plane.__enter__()
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop what was started, the last first."""
        self._beside.stop()
        self._control_plane.stop()

    def _start_all(self) -> None:
        cluster, beside = self._control_plane, self._beside
        controllers = ["*", "-node-ipam-controller"]
        if self._hpa_controller == TRIMTAB:
            controllers.append("-horizontal-pod-autoscaler-controller")
        cluster.start_controllers(controllers)
        beside.start(
            "node", str(self._node_program), f"--kubeconfig={self.kubeconfig}", f"--socket={self._socket}", f"--name={_NODE}"
        )  # fmt: skip
        beside.start_scheduler()
        beside.start_metrics_server("InternalIP")
        if self._hpa_controller == TRIMTAB:
            beside.start_trimtab(VALUES, programs=("horizontal",))
        beside.wait_until("the node is there", lambda: _NODE in cluster.kubectl("get", "nodes", "-o", "name"))
        cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        beside.wait_for_metrics()
