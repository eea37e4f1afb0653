"""Two ways to install Trimtab as pods: the flat manifests of `trimtab install`, and the Helm chart."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Protocol

from tools.chart import CHART
from tools.node.cluster import NodeCluster
from tools.peers import build
from trimtab.install import manifests, set_values

NAMESPACE = "trimtab"


class Installation(Protocol):
    """A way to install and to uninstall."""

    def install(self, cluster: NodeCluster, values: Mapping[str, Any]) -> None:
        """Install Trimtab, with two replicas of everything."""

    def uninstall(self, cluster: NodeCluster) -> None:
        """Do what the documentation says to remove everything, definitions and namespace included."""


class FlatManifests:
    """`trimtab install | kubectl apply --server-side -f -`."""

    def __init__(self) -> None:
        self._objects = ""

    def install(self, cluster: NodeCluster, values: Mapping[str, Any]) -> None:
        """Apply all objects."""
        objects = manifests(set_values([], files=[values]))
        self._objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        cluster.control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=self._objects)

    def uninstall(self, cluster: NodeCluster) -> None:
        """Delete all objects."""
        cluster.control_plane.kubectl(
            "delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=self._objects
        )


class HelmChart:
    """`helm install trimtab charts/trimtab`."""

    def install(self, cluster: NodeCluster, values: Mapping[str, Any]) -> None:
        """Install the chart."""
        release = ("install", "trimtab", str(CHART), "--create-namespace", "-f", "-")
        self._helm(cluster, *release, stdin=json.dumps(values))

    def uninstall(self, cluster: NodeCluster) -> None:
        """Uninstall the release, then delete what Helm leaves: the definitions and the namespace."""
        self._helm(cluster, "uninstall", "trimtab")
        kept = [
            f"crd/{each['metadata']['name']}"
            for each in manifests(set_values([]))
            if each["kind"] == "CustomResourceDefinition"
        ]
        cluster.control_plane.kubectl("delete", "--wait=false", *kept, f"namespace/{NAMESPACE}")

    def _helm(self, cluster: NodeCluster, *arguments: str, stdin: str = "") -> None:
        where = (f"--kubeconfig={cluster.control_plane.kubeconfig}", "-n", NAMESPACE)
        run = subprocess.run(
            [str(build.place_of("helm")), *arguments, *where],
            input=stdin, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
