"""The example `sql-queue`: kube-controller-manager's own HPA scales by rows of a real PostgreSQL, through the real aggregator."""

import json

import pytest

from tests.plugin_packages import install, install_example
from tests.postgres import execute, postgres
from tests.real.adapter.registered import RegisteredAdapter, apply, until
from tests.real.adapter.workloads import deployment, hpa, report, settles
from tools.peers.cluster import HPA_CONTROLLER, RealCluster

pytestmark = pytest.mark.real

NS = "sql-queue"
PLUGIN = "example.com/sql-queue"
QUERY = "SELECT count(*) FROM jobs WHERE queue = %(queue)s"
EXTERNAL = {
    "type": "External",
    "external": {
        "metric": {"name": "jobs_waiting", "selector": {"matchLabels": {"queue": "orders"}}},
        "target": {"type": "AverageValue", "averageValue": "3"},
    },
}


@pytest.fixture(scope="module")
def database():
    with postgres() as dsn:
        execute(
            dsn,
            "CREATE TABLE jobs (queue text)",
            "INSERT INTO jobs SELECT 'orders' FROM generate_series(1, 12)",
        )
        yield dsn


@pytest.fixture(scope="module")
def adapter(real_cluster: RealCluster, tmp_path_factory, database):
    directory = tmp_path_factory.mktemp("sql-queue")
    install_example(directory, "sql-queue")
    apply(real_cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    source = {
        "name": "jobs",
        "plugin": {
            "name": PLUGIN, "metrics": ["jobs_waiting"], "cacheFor": "500ms",
            "parameters": {"queries": {"jobs_waiting": QUERY}},
        },
    }  # fmt: skip
    environment = {"PYTHONPATH": str(directory), "SQL_QUEUE_DSN": database}
    with RegisteredAdapter(
        real_cluster, directory, source, flags=[f"--plugins={PLUGIN}"], environment=environment
    ) as running:
        yield running
    real_cluster.kubectl("delete", "namespace", NS, "--wait=false")


def test_the_real_hpa_controller_scales_by_the_rows_of_a_table(real_cluster, adapter, database):
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/jobs_waiting?labelSelector=queue%3Dorders"
    (item,) = adapter.raw(path)["items"]
    assert (item["value"], item["metricLabels"]) == ("12", {"queue": "orders"})
    real_cluster.stop("kube-controller-manager")
    real_cluster.start_controllers(HPA_CONTROLLER, "--horizontal-pod-autoscaler-sync-period=1s")
    try:
        apply(real_cluster, deployment(NS, "workers", 1), hpa(NS, "workers", EXTERNAL))
        report(real_cluster, NS, "workers", 1)
        assert settles(real_cluster, NS, "workers", 4)
        execute(database, "INSERT INTO jobs SELECT 'orders' FROM generate_series(1, 9)")
        assert settles(real_cluster, NS, "workers", 7)
        execute(database, "ALTER TABLE jobs RENAME TO gone")
        until(
            "the HPA says that the metric failed",
            lambda: "FailedGetExternalMetric" in conditions(real_cluster),
        )
        execute(database, "ALTER TABLE gone RENAME TO jobs")
        until(
            "the HPA reads the metric again",
            lambda: "FailedGetExternalMetric" not in conditions(real_cluster),
        )
    finally:
        real_cluster.stop("kube-controller-manager")


def test_an_adapter_whose_plugin_blocks_still_ends_on_sigterm(real_cluster, adapter, tmp_path):
    """A plug-in sleeps on its thread for an hour while the adapter is told to end; leaving the context checks the exit."""
    code = "import asyncio, time\nasync def plugin(seen):\n    await asyncio.to_thread(time.sleep, 3600)\n"
    install(tmp_path, "sleepy", code, group="trimtab.metric_sources", name="example.com/sleepy")
    source = {
        "name": "sleepy",
        "plugin": {"name": "example.com/sleepy", "metrics": ["naps"], "timeout": "200ms"},
    }
    with RegisteredAdapter(
        real_cluster, tmp_path, source,
        flags=["--plugins=example.com/sleepy"], environment={"PYTHONPATH": str(tmp_path)},
    ) as running:  # fmt: skip
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/naps"
        answer = running.cluster.kubectl("get", "--raw", path, check=False)
        assert "gives no usable answer" in answer, answer


def conditions(cluster: RealCluster) -> str:
    status = json.loads(cluster.kubectl("get", "hpa/workers", "-n", NS, "-o", "json"))["status"]
    return json.dumps(status.get("conditions", []))
