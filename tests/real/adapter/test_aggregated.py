"""Our adapter behind the real aggregator: kubectl reads it, kube-controller-manager's HPA controller scales on it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.adapter.registered import RegisteredAdapter, apply, until, write
from tests.real.adapter.workloads import deployment, hpa, queue_metric, report, settles
from tools.peers.cluster import HPA_CONTROLLER, RealCluster

Json = dict[str, Any]

pytestmark = pytest.mark.real

NS = "adapter-queues"
OBJECT = f"namespaces/{NS}/statefulsets.apps/foo/queue_length"


def values(some_jobs: int, other_jobs: int, *, rps: int = 10, sqs: tuple[int, int] = (4, 5)) -> Json:
    queues = {"some-jobs": some_jobs, "other-jobs": other_jobs}
    return {
        "custom": [
            *(
                {"metric": "queue_length", "resource": "statefulsets.apps", "namespace": NS, "name": "foo",
                 "labels": {"queue": queue}, "value": value}
                for queue, value in queues.items()
            ),
            *(
                {"metric": "rps", "namespace": NS, "name": f"workers-{n}", "labels": {"verb": verb}, "value": value}
                for n in range(2) for verb, value in (("GET", rps), ("POST", 1000))
            ),
        ],
        "external": [
            {"metric": "sqs", "namespace": NS, "labels": {"shop": "a", "queue": str(n)}, "value": value}
            for n, value in enumerate(sqs)
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def adapter(real_cluster: RealCluster, tmp_path_factory):
    directory = Path(tmp_path_factory.mktemp("adapter"))
    write(directory / "values.yaml", "MetricValues", values(3, 70))
    apply(real_cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    source = {"name": "by-hand", "testing": {"file": "values.yaml"}}
    with RegisteredAdapter(real_cluster, directory, source) as running:
        yield running
    real_cluster.kubectl("delete", "namespace", NS, "--wait=false")


@pytest.fixture(scope="module")
def hpa_controller(real_cluster: RealCluster, adapter):
    real_cluster.stop("kube-controller-manager")
    real_cluster.start_controllers(HPA_CONTROLLER, "--horizontal-pod-autoscaler-sync-period=1s")
    yield
    real_cluster.stop("kube-controller-manager")


def test_kubectl_reads_both_versions_through_the_aggregator(adapter):
    new = adapter.raw(f"/apis/custom.metrics.k8s.io/v1beta2/{OBJECT}?metricLabelSelector=queue%3Dsome-jobs")
    old = adapter.raw(f"/apis/custom.metrics.k8s.io/v1beta1/{OBJECT}?metricLabelSelector=queue%3Dother-jobs")
    assert new["items"][0]["metric"]["selector"] == {"matchLabels": {"queue": "some-jobs"}}
    assert (new["items"][0]["value"], old["items"][0]["value"]) == ("3", "70")
    assert old["items"][0]["metricName"] == "queue_length"


def test_SPEC_D1_the_aggregator_prefers_the_newer_version(adapter):
    group = adapter.raw("/apis/custom.metrics.k8s.io")
    assert [one["version"] for one in group["versions"]] == ["v1beta2", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1beta2"


def test_kubectl_lists_the_metrics_as_resources(adapter):
    listed = adapter.raw("/apis/custom.metrics.k8s.io/v1beta2")["resources"]
    assert {"statefulsets.apps/queue_length", "pods/rps"} <= {one["name"] for one in listed}
    # The aggregator collects discovery documents in its own time.
    ask = ("api-resources", "--api-group=external.metrics.k8s.io")
    until(
        "kubectl knows external metrics", lambda: "ExternalMetricValueList" in adapter.cluster.kubectl(*ask)
    )


def test_a_user_without_the_right_is_refused_and_one_with_it_is_not(adapter):
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/sqs"
    as_ann = ("get", "--raw", path, "--as=ann")
    assert "Forbidden" in adapter.cluster.kubectl(*as_ann, check=False)
    apply(
        adapter.cluster,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "sqs", "namespace": NS},
            "rules": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["sqs"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "sqs", "namespace": NS},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sqs"},
            "subjects": [{"kind": "User", "name": "ann"}],
        },
    )  # fmt: skip
    until("ann may read", lambda: "Forbidden" not in adapter.cluster.kubectl(*as_ann, check=False), 30)
    assert len(json.loads(adapter.cluster.kubectl(*as_ann))["items"]) == 2
    other = ("get", "--raw", path.replace(NS, "default"), "--as=ann")
    assert "Forbidden" in adapter.cluster.kubectl(*other, check=False)


def test_SPEC_A1_the_real_hpa_controller_scales_each_queue_by_its_own_selector(adapter, hpa_controller):
    cluster = adapter.cluster
    target = {"type": "AverageValue", "averageValue": "1"}
    for name, queue in (("some", "some-jobs"), ("other", "other-jobs")):
        apply(cluster, deployment(NS, name, 1), hpa(NS, name, queue_metric(queue, target)))
        report(cluster, NS, name, 1)
    assert settles(cluster, NS, "some", 3)
    assert settles(cluster, NS, "other", 20)
    write(adapter.directory / "values.yaml", "MetricValues", values(6, 2))
    assert settles(cluster, NS, "some", 6)
    assert settles(cluster, NS, "other", 2)
    status = json.loads(cluster.kubectl("get", "hpa/some", "-n", NS, "-o", "json"))["status"]
    assert status["currentMetrics"][0]["object"]["metric"]["selector"] == {
        "matchLabels": {"queue": "some-jobs"}
    }


def test_SPEC_A3_external_series_are_summed_by_the_real_hpa_controller(adapter, hpa_controller):
    metric = {"name": "sqs", "selector": {"matchLabels": {"shop": "a"}}}
    external = {
        "type": "External",
        "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "3"}},
    }
    apply(adapter.cluster, deployment(NS, "buyers", 1), hpa(NS, "buyers", external))
    report(adapter.cluster, NS, "buyers", 1)
    assert settles(adapter.cluster, NS, "buyers", 3)


def test_a_pods_metric_with_a_selector_counts_only_its_series(adapter, hpa_controller):
    cluster = adapter.cluster
    for n in range(2):
        pod = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"workers-{n}", "namespace": NS, "labels": {"app": "workers"}},
            "spec": {"containers": [{"name": "c", "image": "none"}]},
        }  # fmt: skip
        apply(cluster, pod)
        ready = [{"type": "Ready", "status": "True"}]
        status = json.dumps(
            {"status": {"phase": "Running", "conditions": ready, "startTime": "2026-01-01T00:00:00Z"}}
        )
        cluster.kubectl(
            "patch", f"pod/workers-{n}", "-n", NS, "--subresource=status", "--type=merge", "-p", status
        )
    metric = {
        "name": "rps",
        "selector": {"matchExpressions": [{"key": "verb", "operator": "NotIn", "values": ["POST"]}]},
    }
    pods = {
        "type": "Pods",
        "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "5"}},
    }
    apply(cluster, deployment(NS, "workers", 2), hpa(NS, "workers", pods))
    report(cluster, NS, "workers", 2)
    assert settles(cluster, NS, "workers", 4)
