"""An HPA on CPU that a real kubelet measures."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.node.stage import Stage, template, workload
from tests.plugin_packages import install_example
from tests.real.adapter.registered import RegisteredAdapter

pytestmark = pytest.mark.node

HPA: dict[str, Any] = {
    "apiVersion": "autoscaling.trimtab.dev/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "selectionStrategy": "OwnerReference",
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 15}},
    },
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "report"},
    "spec": {
        "template": template(
            "web", cpu=60, requests={"cpu": "50m", "memory": "32Mi"}, args="job", restartPolicy="Never"
        )
    },
}


def test_real_cpu_scales_the_pods_that_the_target_owns(stage: Stage):
    """The Job has the labels of the Deployment; its pod is measured and not counted."""
    stage.apply(workload("Deployment", "web", cpu=400, requests={"cpu": "300m", "memory": "64Mi"}), JOB, HPA)
    pods = stage.ready_pods("app=web,!job-name", 3)
    explained = stage.explain("hpa", "web")
    assert "report-" in explained
    assert "Job/report" in explained
    for pod in pods:
        stage.ask(pod, "/cpu?m=1")
    # On a busy machine an idle pod of a guest is measured with some tens of millicores.
    stage.until("it scales down", lambda: len(stage.pods("app=web,!job-name")) < 3)
    assert len(stage.pods("job-name=report")) == 1


QUERY = "SELECT count(*) FROM jobs WHERE queue = :queue"
WORKERS = {
    "apiVersion": "autoscaling.trimtab.dev/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "workers"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "workers"},
        "minReplicas": 0,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "External",
                "external": {
                    "metric": {"name": "jobs_waiting", "selector": {"matchLabels": {"queue": "orders"}}},
                    "target": {"type": "AverageValue", "averageValue": "5"},
                },
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}


def test_an_empty_queue_ends_the_last_container_and_a_job_starts_one(stage: Stage, tmp_path: Path):
    """The queue is a table; the metric is a query over it, served by the adapter."""
    queue = tmp_path / "queue.db"
    with closing(sqlite3.connect(queue)) as database, database:
        database.execute("CREATE TABLE jobs (queue TEXT)")
    install_example(tmp_path, "sql-queue")
    parameters = {"queries": {"jobs_waiting": QUERY}}
    plugin = {"name": "example.com/sql-queue", "metrics": ["jobs_waiting"], "parameters": parameters}
    stage.apply(workload("Deployment", "workers", requests={"cpu": "10m", "memory": "32Mi"}))
    (pod,) = stage.ready_pods("app=workers", 1)
    with RegisteredAdapter(
        stage.cluster.control_plane, tmp_path / "adapter", {"name": "jobs", "plugin": plugin},
        flags=["--plugins=example.com/sql-queue"],
        environment={"PYTHONPATH": str(tmp_path), "SQL_QUEUE_DSN": str(queue)},
    ):  # fmt: skip
        stage.apply(WORKERS)
        stage.until("the last pod is gone", lambda: not stage.pod(pod["metadata"]["name"]))
        stage.until(
            "the condition says so", lambda: "ScaledToZero" in str(stage.get("thpa", "workers").get("status"))
        )
        with closing(sqlite3.connect(queue)) as database, database:
            database.executemany("INSERT INTO jobs VALUES (?)", [("orders",)] * 8)
        assert len(stage.ready_pods("app=workers", 2)) == 2
