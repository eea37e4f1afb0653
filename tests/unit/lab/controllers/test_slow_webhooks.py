"""A webhook takes its time over each pod that a controller creates, and the world changes meanwhile."""

import json
from typing import Any

import pytest

from tests.unit.lab.admission.test_admission import configuration
from tests.unit.lab.controllers.builders import names, play, workload
from trimtab.clock import VirtualClock
from trimtab.cluster.client import DeleteOptions
from trimtab.cluster.resource import Resource
from trimtab_lab.apiserver.request import ApiResponse
from trimtab_lab.apiserver.server import Server
from trimtab_lab.controllers.kinds import DEPLOYMENTS, JOBS

HOOKS: Resource[Any] = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", dict,
    namespaced=False,
)  # fmt: skip
SECONDS = 4


async def slow_down_pods(cluster):
    """Make each creation of a pod take some seconds, and count them."""
    reviews = []

    async def backend(_method, _path, _headers, body):
        review = json.loads(body)["request"]
        reviews.append(review["name"])
        await cluster.clock.sleep(SECONDS)
        return ApiResponse.of({"response": {"uid": review["uid"], "allowed": True}})

    cluster.server.outbound.register("default", "hook", backend)
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    await cluster.client.create(HOOKS, configuration(rules=[rule]))
    return reviews


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicationController"])
def test_a_scale_down_meanwhile_leaves_no_pod_too_many(kind):
    async def scene(cluster):
        reviews = await slow_down_pods(cluster)
        parallel = {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
        await cluster.apply(workload(kind, "web", replicas=6, **parallel))
        await cluster.clock.sleep(2.5 * SECONDS)
        await cluster.apply(workload(kind, "web", replicas=3, **parallel))
        await cluster.settle()
        assert len(await names(cluster)) == 3
        assert len(reviews) == 3, "the number was read again before each pod"

    play(scene)


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_a_workload_that_is_deleted_meanwhile_leaves_no_pod(kind):
    async def scene(cluster):
        await slow_down_pods(cluster)
        spec = {"completions": 4, "parallelism": 4, "pod": {"restartPolicy": "Never"}}
        await cluster.apply(workload(kind, "web", **(spec if kind == "Job" else {"replicas": 4})))
        await cluster.clock.sleep(1.5 * SECONDS)
        resource = JOBS if kind == "Job" else DEPLOYMENTS
        await cluster.client.delete(
            resource, "web", "default", options=DeleteOptions(propagation="Background")
        )
        await cluster.settle()
        await cluster.clock.sleep(60)
        assert await names(cluster) == []

    play(scene)


def test_a_bare_server_runs_no_controllers_of_workloads():
    queues = Server(VirtualClock()).queues
    assert [queue.name for queue in queues] == ["garbage collection", "disruption budgets"]
