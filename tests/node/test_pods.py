"""Trimtab in pods of a real node: image, accounts, Services, webhook, probes, leader election, rollout, uninstallation."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.node.installations import NAMESPACE, FlatManifests, HelmChart, Installation
from tests.node.stage import MIB, Stage, first_status, memory_of, template, vpa, workload
from tools.node.cluster import NodeCluster
from tools.peers.cluster import PeerError
from tools.release.image import write_image
from tools.release.version import ROOT, ReleaseError

pytestmark = pytest.mark.node
VALUES = {
    "settings": {
        "min-replicas": 1,
        "updater-interval": "10s",
        "recommender-interval": "10s",
        "webhook-timeout-seconds": 3,
    }
}
TRIES = 5
PROGRAMS = ("horizontal", "recommender", "updater", "admission")
CLUSTER_WIDE = (
    "clusterroles,clusterrolebindings,customresourcedefinitions,namespaces,apiservices,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
)
NAMESPACED = (
    "all,leases,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
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


class Installed:
    """An installation in pods, what was there before it, and a namespace with a workload."""

    def __init__(self, cluster: NodeCluster, installation: Installation) -> None:
        self.cluster = cluster
        self.installation = installation
        self.before = everything(cluster)
        installation.install(cluster, VALUES)
        self.is_there = True
        self.ours = Stage(cluster, NAMESPACE, exists=True)
        self.shop = Stage(cluster, f"shop-of-{type(installation).__name__.lower()}")
        self.ours.until("every Deployment is available", lambda: is_available(self.ours))

    def have_sized_pod(self) -> None:
        """Have a workload whose pod has the size that the webhook gives it."""
        self.shop.apply(vpa("web", "Deployment", "Recreate", minAllowed={"memory": "250Mi"}))
        self.shop.apply(workload("Deployment", "web", requests={"cpu": "10m", "memory": "32Mi"}))
        self.shop.until("there is a recommendation", lambda: self.shop.target_memory("web"))
        self.shop.until("a pod has the recommended size", lambda: has_size(self.shop, 250 * MIB))

    def uninstall(self) -> None:
        """Remove the workload, then Trimtab."""
        if self.is_there:
            self.cluster.control_plane.kubectl("delete", "namespace", self.shop.namespace, "--wait=false")
            self.installation.uninstall(self.cluster)
            self.is_there = False


@pytest.fixture(scope="module", params=[FlatManifests, HelmChart])
def installed(pod_cluster: NodeCluster, request: pytest.FixtureRequest) -> Iterator[Installed]:
    """Trimtab in pods, two replicas of each program, installed in one of two ways."""
    installation = Installed(pod_cluster, request.param())
    yield installation
    installation.uninstall()


def test_every_program_answers_by_its_service(installed: Installed):
    """Two replicas are ready behind each Service, and the API server reaches them."""
    ours = installed.ours
    services = [f"trimtab-{program}-metrics" for program in PROGRAMS]
    ours.until(
        "two pods are behind each Service",
        lambda: all(len(endpoints(ours, name)) == 2 for name in (*services, "trimtab-webhook")),
    )
    for service in services:
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{service}:metrics/proxy"
        assert json.loads(ours.kubectl("get", "--raw", f"{path}/readyz"))["ready"] is True
        assert "trimtab_api_requests_total" in ours.kubectl("get", "--raw", f"{path}/metrics")
    print("\n" + ours.kubectl("get", "all", "-A"))  # noqa: T201 - shown by -s


def test_a_pod_gets_its_size_from_the_webhook_behind_its_service(installed: Installed):
    """The recommender measures the pod, and the next pod starts with the recommended size."""
    installed.have_sized_pod()
    (pod,) = installed.shop.ready_pods("app=web", 1)
    assert installed.shop.allocated_memory(pod["metadata"]["name"]) == 250 * MIB


@pytest.mark.parametrize("installed", [HelmChart], indirect=True)
def test_a_replica_that_hangs_loses_its_lease_and_is_restarted(installed: Installed):
    """Its liveness probe fails, the kubelet kills it, and the other replica leads."""
    ours = installed.ours
    lease = "trimtab-recommender-0"
    hanging = ours.pod(leader(ours, lease))
    name, container = hanging["metadata"]["name"], first_status(hanging)["containerID"].partition("://")[2]
    before = first_status(hanging)["restartCount"]
    ours.in_guest(hanging, f"kill -STOP $(ctr -n k8s.io task ls | awk '$1 == \"{container}\" {{print $2}}')")
    ours.until("the other replica leads", lambda: leader(ours, lease) not in ("", name))
    ours.until("the kubelet restarts it", lambda: first_status(ours.pod(name))["restartCount"] > before)
    ours.until("every Deployment is available", lambda: is_available(ours))


def test_a_rollout_moves_the_lease_and_the_webhook_answers_all_the_time(installed: Installed):
    """New pods take over one by one; a pod that is created meanwhile gets its size."""
    ours, shop = installed.ours, installed.shop
    installed.have_sized_pod()
    # Dry runs go through the webhook, too.
    owner = shop.get("replicaset", shop.pods("app=web")[0]["metadata"]["ownerReferences"][0]["name"])
    selector = "app.kubernetes.io/component in (admission, recommender)"
    pods = {pod["metadata"]["name"] for pod in ours.pods(selector)}
    ours.kubectl("rollout", "restart", "deployment/trimtab-admission", "deployment/trimtab-recommender")

    def is_rolled_out() -> bool:
        # A busy machine may pass over a call. If no replica answers, all are passed over.
        assert any(admitted_memory(shop, owner) == 250 * MIB for _ in range(TRIES))
        return not {pod["metadata"]["name"] for pod in ours.pods(selector)} & pods and is_available(ours)

    ours.until("all pods are new", is_rolled_out)
    ours.until("a new pod holds the Lease", lambda: leader(ours, "trimtab-recommender-0") not in ("", *pods))


def test_uninstalling_leaves_nothing(installed: Installed):
    """All objects of the cluster are those from before, and so are those of all namespaces."""
    installed.uninstall()
    seen: list[set[str]] = [set()]

    def is_as_before() -> bool:
        # kubectl knows our kinds for a moment after their definitions are gone.
        with suppress(PeerError):
            seen[0] = everything(installed.cluster)
        return seen[0] == installed.before

    try:
        installed.ours.until("nothing is left", is_as_before)
    except AssertionError:
        pytest.fail(f"left: {seen[0] - installed.before}, missing: {installed.before - seen[0]}")
    print("\n" + installed.cluster.control_plane.kubectl("get", "all", "-A"))  # noqa: T201 - shown by -s


def everything(cluster: NodeCluster) -> set[str]:
    """Return the names of all objects that an installation may have, of the cluster and of all namespaces."""
    kubectl = cluster.control_plane.kubectl
    found = set(kubectl("get", CLUSTER_WIDE, "-o", "name").split())
    for item in json.loads(kubectl("get", NAMESPACED, "-A", "-o", "json"))["items"]:
        meta = item["metadata"]
        found.add(f"{item['kind']}/{meta['namespace']}/{meta['name']}")
    return {name for name in found if "node-1" not in name}


def is_available(stage: Stage) -> bool:
    """Return whether all replicas of all Deployments are up to date and available, and no others are left."""
    items = json.loads(stage.kubectl("get", "deployments", "-o", "json"))["items"]
    return len(items) > 0 and all(_is_rolled_out(item) for item in items)


def _is_rolled_out(deployment: dict[str, Any]) -> bool:
    status, wanted = deployment["status"], deployment["spec"]["replicas"]
    counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status.get("observedGeneration") == deployment["metadata"]["generation"]


def has_size(stage: Stage, memory: int) -> bool:
    """Return whether the ready pod requests so much memory, and delete it if not."""
    (pod,) = stage.ready_pods("app=web", 1)
    if stage.requested_memory(pod["metadata"]["name"]) == memory:
        return True
    stage.kubectl("delete", "pod", pod["metadata"]["name"], "--ignore-not-found")
    return False


def endpoints(stage: Stage, service: str) -> list[str]:
    """Return the addresses of the ready pods behind a Service."""
    listed = stage.kubectl(
        "get", "endpointslices", "-l", f"kubernetes.io/service-name={service}", "-o", "json"
    )
    return [
        address
        for item in json.loads(listed)["items"]
        for endpoint in item["endpoints"] or []
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    ]


def holders(stage: Stage) -> dict[str, str]:
    """Return the pod that holds each Lease of the installation."""
    items = json.loads(stage.kubectl("get", "leases", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: item["spec"]["holderIdentity"].partition("_")[0]
        for item in items
        if item["spec"].get("holderIdentity")
    }


def leader(stage: Stage, lease: str) -> str:
    """Return the pod that holds a Lease, or nothing."""
    return holders(stage).get(lease, "")


def admitted_memory(stage: Stage, owner: dict[str, Any]) -> int:
    """Return the memory that a new pod of a ReplicaSet would request, by a dry run."""
    meta = owner["metadata"]
    reference = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": meta["name"], "uid": meta["uid"], "controller": True,
    }  # fmt: skip
    pod = template("web", requests={"cpu": "10m", "memory": "32Mi"})
    pod["metadata"] |= {"generateName": f"{meta['name']}-", "ownerReferences": [reference]}
    body = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})
    made = json.loads(stage.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=body))
    return memory_of(made["spec"]["containers"][0]["resources"]["requests"]["memory"])
