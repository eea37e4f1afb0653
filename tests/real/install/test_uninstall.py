"""An installation that is removed leaves the cluster as it was, but for what the documentation says."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.real.install.test_helm import helm
from tools.chart import CHART
from tools.peers.cluster import RealCluster, available
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.leases.lease import create_lease
from trimtab.cluster.resource import LEASES

pytestmark = pytest.mark.real

NAMESPACE = "cleared"
LEASES_OF = {
    "horizontal": "trimtab-horizontal",
    "recommender": "trimtab-recommender",
    "updater": "trimtab-updater",
    "admission": "vpa-admission-controller",
}
"""A Lease that each account creates."""
VALUES = ("dashboard.enabled=true", "grafanaDashboard.enabled=true", "kubeStateMetrics.enabled=true")
OWN_CONTROLLERS = ("garbage-collector-controller", "namespace-controller")
COLUMNS = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
DEFINED = (("v2", "autoscaling.trimtab.dev"), ("v1", "autoscaling.trimtab.dev"))
PASSING = ("events", "events.events.k8s.io", "componentstatuses")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    why_not = available()
    if why_not:
        pytest.skip(why_not)
    with RealCluster(tmp_path_factory.mktemp("uninstall")) as real:
        if not real.has_controllers:
            pytest.skip("kube-controller-manager is not built")
        real.kubectl("create", "namespace", "monitoring")
        real.start_controllers(OWN_CONTROLLERS)
        yield real


def everything(cluster):
    """Return kind, namespace and name of every object of every kind."""
    kinds = [
        kind
        for kind in cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        if kind not in PASSING
    ]
    listed = cluster.kubectl(
        "get", ",".join(kinds), "-A", "-o", COLUMNS, "--no-headers", "--ignore-not-found"
    )
    found = {tuple(line.split()) for line in listed.splitlines() if line.strip()}
    # The API server has a Lease of its own.
    return {one for one in found if not (one[0] == "Lease" and one[2].startswith("apiserver-"))}


def create_leases(cluster, tmp_path):
    """Create the Leases as the programs do, each with the token of its account."""

    async def create(account, name):
        config = json.loads(cluster.kubeconfig.read_text())
        token = cluster.kubectl("create", "token", f"trimtab-{account}", "-n", NAMESPACE).strip()
        config["users"][0]["user"] = {"token": token}
        path = tmp_path / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        clock = SystemClock()
        transport = HttpTransport(clock, load_kubeconfig(clock, str(path), environ={}))
        try:
            client = Client(clock, transport, seed=1)
            await create_lease(client, LEASES.untyped(), {"metadata": {"name": name}, "spec": {}}, NAMESPACE)
        finally:
            await transport.close()

    for account, name in LEASES_OF.items():
        asyncio.run(create(account, name))


def assert_that_helm_tests(cluster, where):
    """Run `helm test` where pods must be restricted. No node runs its pod, so the test says that the pod succeeded."""
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    cluster.kubectl("create", "serviceaccount", "default", "-n", NAMESPACE)
    with ThreadPoolExecutor() as executor:
        testing = executor.submit(helm, "test", "trimtab", *where, "--timeout=60s")
        pod = ("pod/trimtab-readiness-test", "-n", NAMESPACE)
        cluster.kubectl("wait", "--for=create", *pod, "--timeout=60s")
        succeeded = json.dumps({"status": {"phase": "Succeeded"}})
        cluster.kubectl("patch", *pod, "--subresource=status", "--type=merge", "-p", succeeded)
        done = testing.result()
    assert done.returncode == 0, done.stderr
    assert "Phase:          Succeeded" in done.stdout
    cluster.kubectl("delete", "serviceaccount", "default", "-n", NAMESPACE)


def test_an_uninstalled_chart_leaves_definitions_only_and_the_documented_commands_leave_nothing(
    cluster, tmp_path
):
    """Leases of the programs stayed behind, in our namespace and in kube-system."""
    before = everything(cluster)
    where = (f"--kubeconfig={cluster.kubeconfig}", "-n", NAMESPACE)
    flags = [flag for value in VALUES for flag in ("--set", value)]
    done = helm("install", "trimtab", str(CHART), *where, "--create-namespace", *flags)
    assert done.returncode == 0, done.stderr
    create_leases(cluster, tmp_path)
    installed = everything(cluster) - before
    assert len(installed) > 60
    assert {one[2] for one in installed if one[0] == "Lease"} == set(LEASES_OF.values())
    assert {one[1] for one in installed if one[0] == "Lease"} == {NAMESPACE}

    assert_that_helm_tests(cluster, where)
    done = helm("upgrade", "trimtab", str(CHART), *where, "--reset-then-reuse-values", "--set", "replicas=3")
    assert done.returncode == 0, done.stderr
    replicas = cluster.kubectl("get", "deploy", "-n", NAMESPACE, "-o", "jsonpath={.items[*].spec.replicas}")
    assert sorted(replicas.split()) == ["1", "3", "3", "3", "3"], "and the dashboard is still installed"

    done = helm("uninstall", "trimtab", *where)
    assert done.returncode == 0, done.stderr
    leases = [f"lease/{name}" for name in LEASES_OF.values()]
    cluster.kubectl("wait", "--for=delete", *leases, "-n", NAMESPACE, "--timeout=60s")
    left = everything(cluster) - before
    definitions = {one for one in left if one[0] == "CustomResourceDefinition"}
    # The API server registers the versions of the definitions by itself.
    versions = {("APIService", "<none>", f"{version}.{group}") for version, group in DEFINED}
    assert left == definitions | versions | {("Namespace", "<none>", NAMESPACE)}
    assert before <= everything(cluster)

    cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")
    cluster.kubectl("delete", "crd", *sorted(one[2] for one in definitions), "--timeout=60s")
    served = [f"apiservice/{one[2]}" for one in versions]
    cluster.kubectl("wait", "--for=delete", *served, "--timeout=60s")
    assert everything(cluster) == before
