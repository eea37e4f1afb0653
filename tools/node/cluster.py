"""A control plane with real nodes, metrics-server, and Trimtab as its own manifests install it."""

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.node import disk, egress, machine
from tools.node.machine import MachineError
from tools.node.node import Node, user_of
from tools.node.packages import NoPackageError
from tools.peers import build
from tools.peers.beside import Beside, egress_to
from tools.peers.cluster import ALL_BUT_HPA, RealCluster

PEERS = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "metrics-server", "helm",
)  # fmt: skip
NEIGHBOURS = ("keda", "keda-adapter", "argo-rollouts")
"""Programs of other projects, which run in pods beside Trimtab."""

VALUES = (
    "settings.min-replicas=1",
    "settings.feature-gates=CPUStartupBoost=true",
    # The API server passes over a webhook that takes longer. On a busy machine it may, so tests do not rely on a single call.
    "settings.webhook-timeout-seconds=3",
)
FLAGS: Mapping[str, Sequence[str]] = {
    "recommender": ("--recommender-interval=10s",),
    "updater": ("--updater-interval=10s",),
}
"""Loops of ten seconds instead of a minute, because the tests wait for them."""


class NodeCluster:
    """Everything that the tests on real nodes need; leaving the context stops it.

    With an archive of images its only node imports them, pods can be reached by the API server and by Services, and nothing of
    Trimtab is installed. `later` are the names of nodes that may join. A node shows so many `cpus`, for the requests of pods.
    """

    def __init__(
        self,
        directory: Path,
        nodes: Mapping[str, str],
        image: Path | None = None,
        *,
        later: Sequence[str] = (),
        cpus: int = 2,
        controllers: Sequence[str] = ALL_BUT_HPA,
    ) -> None:
        self._directory = directory
        self._nodes = nodes
        self._image = image
        self._cpus = cpus
        self._controllers = controllers
        self._socket = directory / "egress.sock"
        self._stack = ExitStack()
        self.control_plane = RealCluster(
            directory / "control-plane",
            users=[user_of(name) for name in (*nodes, *later)],
            has_service_accounts=True,
            apiserver_args=(
                # Repeated, the modes add up.
                "--authorization-mode=Node",
                "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=ExternalIP,InternalIP",
                "--kubelet-client-certificate=front-proxy.crt",
                "--kubelet-client-key=front-proxy.key",
                *((egress_to(self._socket),) if image else ()),
            ),
        )
        self.beside = Beside(self.control_plane, directory)
        self.nodes: dict[str, Node] = {}
        self.urls: dict[str, str] = {}

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
        cluster.start_controllers(self._controllers)
        binding = ("clusterrolebinding", "apiserver-to-kubelet")
        cluster.kubectl(
            "create", *binding, "--clusterrole=system:kubelet-api-admin", "--user=front-proxy-client"
        )
        beside = self._stack.enter_context(self.beside)
        beside.start_scheduler()
        for name, memory in self._nodes.items():
            self._stack.enter_context(self._started(name, memory))
        for node in self.nodes.values():
            node.wait()
        if self._image is not None:
            (node,) = self.nodes.values()
            way = (str(self._socket), str(cluster.kubeconfig), str(node.proxy_port), str(node.egress_port))
            beside.start("egress", sys.executable, str(Path(egress.__file__).resolve()), *way)
            beside.wait_until("the egress proxy listens", self._socket.exists)
        beside.start_metrics_server("ExternalIP")
        beside.wait_for_metrics()
        if self._image is None:
            self.urls = beside.start_trimtab(VALUES, flags=FLAGS)

    @contextmanager
    def joined(self, name: str, memory: str) -> Iterator[Node]:
        """Start a node and wait until it is Ready; leaving the context switches it off."""
        with self._started(name, memory) as node:
            node.wait()
            yield node

    @contextmanager
    def _started(self, name: str, memory: str) -> Iterator[Node]:
        boot, directory = disk.ensure(), self._directory / name
        node = Node(
            self.control_plane, directory, boot, name, memory=memory, cpus=self._cpus, image=self._image
        )
        with node:
            self.nodes[name] = node
            try:
                yield node
            finally:
                del self.nodes[name]

    def keep_evidence(self, namespace: str) -> Path:
        """Write what a namespace holds and what the nodes logged into a folder, for a test that failed."""
        folder = self._directory / "failed" / namespace
        folder.mkdir(parents=True, exist_ok=True)
        wanted = ("get", "pods,events,vpa,thpa,deployments,statefulsets", "-n", namespace, "-o", "yaml")
        (folder / "objects.yaml").write_text(self.control_plane.kubectl(*wanted, check=False))
        nodes = self.control_plane.kubectl("get", "nodes", "-o", "yaml", check=False)
        (folder / "nodes.yaml").write_text(nodes)
        for name, node in self.nodes.items():
            with suppress(OSError, MachineError):
                logs = node.machine.run(
                    "dmesg; free; tail -n 1000 /var/log/kubelet.log /var/log/containerd.log"
                )
                (folder / f"{name}.log").write_text(logs)
        return folder


def why_not(programs: Sequence[str]) -> str | None:
    """Build or download what real nodes and their tests need, once; return why this machine runs no node, or None if it does."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return (
            f"user-mode Linux needs Linux on x86_64, and this is {platform.system()} on {platform.machine()}"
        )
    if missing := machine.missing_programs():
        return f"{', '.join(missing)} not found; on Debian: apt-get install qemu-system-x86 e2fsprogs gcc"
    try:
        build.ensure(programs)
        boot = disk.ensure()
    except build.BuildFailedError:
        raise
    except (build.CannotBuildError, NoPackageError) as error:
        return str(error)
    return machine.why_it_does_not_boot(boot)
