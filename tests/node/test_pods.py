"""Trimtab in pods of a real node: image, service accounts, Services, webhook, probes, leader election, uninstallation."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab
from tests.node.stage import MIB, Stage, vpa, workload
from tools.node.cluster import NodeCluster
from tools.release.image import write_image
from tools.release.version import ROOT, ReleaseError
from trimtab.install import manifests, set_values

pytestmark = pytest.mark.node
VALUES = (
    "vertical.updater.minReplicas=1",
    "vertical.recommender.extraArgs=[--recommender-interval=10s]", "vertical.updater.extraArgs=[--updater-interval=10s]",
)  # fmt: skip
CLUSTER_WIDE = (
    "clusterroles,clusterrolebindings,customresourcedefinitions,namespaces,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
)


@pytest.fixture(scope="module")
def pod_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    """A control plane and one node that has Trimtab's image."""
    directory = Path(tmp_path_factory.mktemp("pods"))
    archive = directory / "trimtab.tar"
    uv = ROOT / ".tools" / "bin" / "uv"
    subprocess.run(
        [uv, "build", "-q", "--wheel", "--out-dir", directory, "--python", sys.executable, ROOT], check=True
    )
    (wheel,) = directory.glob("*.whl")
    try:
        write_image(archive, wheel, trimtab.__version__, 0)
    except ReleaseError as error:
        pytest.skip(str(error))
    with NodeCluster(directory, {"node-1": "4G"}, archive) as cluster:
        yield cluster


def test_trimtab_runs_in_pods_and_leaves_nothing_behind(pod_cluster: NodeCluster):
    """It is installed with two replicas of everything, decides, loses its leaders, and is uninstalled."""
    kubectl = pod_cluster.control_plane.kubectl
    before = everything(pod_cluster)
    installation = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests(set_values(VALUES))})
    kubectl("apply", "--server-side", "-f", "-", stdin=installation)
    ours, shop = Stage(pod_cluster, "trimtab", exists=True), Stage(pod_cluster, "shop")
    ours.until("every Deployment is available", lambda: is_available(ours))
    print("\n" + kubectl("get", "all", "-A"))  # noqa: T201 - shown by -s

    # A pod gets its size from the webhook, which the API server reaches by its Service.
    shop.apply(vpa("web", "Deployment", "Recreate", minAllowed={"memory": "250Mi"}))
    shop.apply(workload("Deployment", "web", requests={"cpu": "10m", "memory": "32Mi"}))
    shop.ready_pods("app=web", 1)
    shop.until("there is a recommendation", lambda: shop.target_memory("web"))
    shop.kubectl("delete", "pods", "-l", "app=web", "--wait=false")
    shop.until("the next pod has it", lambda: all_request(shop, 250 * MIB))

    # Leaders go away; others take their Leases.
    leases = holders(ours)
    ours.kubectl("delete", "pods", "--all", "--wait=false")
    ours.until(
        "every Lease has another holder", lambda: not set(holders(ours).values()) & set(leases.values())
    )
    ours.until("every Deployment is available", lambda: is_available(ours))

    kubectl("delete", "namespace", "shop", "--wait=false")
    kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=installation)
    ours.until("nothing is left", lambda: everything(pod_cluster) == before)
    # kubectl still knows our kinds, which have the category `all`, for a moment.
    print(kubectl("get", "all", "-A", check=False))  # noqa: T201 - shown by -s


def everything(cluster: NodeCluster) -> set[str]:
    """Return the names of all cluster-wide objects that an installation has, and of all Leases."""
    leases = cluster.control_plane.kubectl("get", "leases", "-A", "-o", "name")
    found = cluster.control_plane.kubectl("get", CLUSTER_WIDE, "-o", "name") + leases
    return {name for name in found.split() if "node-" not in name}


def is_available(stage: Stage) -> bool:
    """Return whether all replicas of all Deployments are available."""
    items = json.loads(stage.kubectl("get", "deployments", "-o", "json"))["items"]
    return len(items) > 0 and all(
        item["status"].get("availableReplicas") == item["spec"]["replicas"] for item in items
    )


def holders(stage: Stage) -> dict[str, str]:
    """Return who holds each Lease of the installation."""
    items = json.loads(stage.kubectl("get", "leases", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: item["spec"]["holderIdentity"]
        for item in items
        if item["spec"].get("holderIdentity")
    }


def all_request(stage: Stage, memory: int) -> bool:
    """Return whether all pods of the shop request so much memory."""
    names = [pod["metadata"]["name"] for pod in stage.pods("app=web")]
    return len(names) > 0 and all(stage.requested_memory(name) == memory for name in names)
