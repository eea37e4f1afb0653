"""The real programs start, answer kubectl, and turn a Deployment into pods."""

import json

import pytest

from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster

pytestmark = pytest.mark.real

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "none"}]},
        },
    },
}


def test_the_real_api_server_answers_kubectl(real_cluster: RealCluster):
    assert "kube-system" in real_cluster.kubectl("get", "namespaces", "-o", "name")


def test_the_real_controllers_make_pods_of_a_deployment(real_cluster: RealCluster):
    real_cluster.need_controllers(WORKLOAD_CONTROLLERS)
    real_cluster.kubectl("apply", "-f", "-", stdin=json.dumps(DEPLOYMENT))
    real_cluster.kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=2", "--timeout=60s")
    pods = json.loads(real_cluster.kubectl("get", "pods", "-l", "app=web", "-o", "json"))["items"]
    real_cluster.kubectl("delete", "deployment", "web", "--wait=true")
    assert len(pods) == 2
