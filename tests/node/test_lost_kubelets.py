"""Kubelets that restart and nodes that are lost, while a resize is pending."""

from typing import Any

import pytest

from tests.node.conftest import LATER
from tests.node.stage import MIB, Stage, vpa, workload

pytestmark = pytest.mark.node

TINY = {"cpu": "20m", "memory": "64Mi"}
LARGER = {"memory": "300Mi"}


def test_a_kubelet_that_restarts_finishes_a_pending_resize(stage: Stage):
    """The kubelet stands still while the resize is asked for, and is killed; the next one does it."""
    stage.apply(workload("Deployment", "web", requests=TINY, nodeName="node-2"))
    (pod,) = stage.ready_pods("app=web", 1)
    name, machine = pod["metadata"]["name"], stage.cluster.nodes["node-2"].machine
    stage.apply(vpa("web", "Deployment", "Off", minAllowed=LARGER))
    stage.until("there is a recommendation", lambda: stage.target_memory("web"))
    machine.run("killall -STOP kubelet")
    try:
        stage.apply(vpa("web", "Deployment", "InPlaceOrRecreate", minAllowed=LARGER))
        stage.until("the resize is asked for", lambda: stage.requested_memory(name) >= 300 * MIB)
    finally:
        machine.run("killall -KILL kubelet")
    stage.until("it is done", lambda: stage.allocated_memory(name) >= 300 * MIB)
    assert stage.pod(name)["metadata"]["uid"] == pod["metadata"]["uid"]


def test_a_resize_that_a_lost_node_never_did_is_the_size_of_the_replacement(stage: Stage):
    """The node is gone before its kubelet saw the resize; other pods of the workload keep being resized."""
    with stage.cluster.joined(LATER, "1536M") as node:
        stage.apply(workload("Deployment", "web", requests=TINY, **on_later_if_possible()))
        (pod,) = stage.ready_pods("app=web", 1)
        name = pod["metadata"]["name"]
        assert pod["spec"]["nodeName"] == LATER
        stage.apply(vpa("web", "Deployment", "Off", minAllowed=LARGER))
        stage.until("there is a recommendation", lambda: stage.target_memory("web"))
        node.machine.run("killall -STOP kubelet")
        stage.apply(vpa("web", "Deployment", "InPlaceOrRecreate", minAllowed=LARGER))
        stage.until("the resize is asked for", lambda: stage.requested_memory(name) >= 300 * MIB)
        assert stage.allocated_memory(name) == 64 * MIB
    (replacement,) = stage.ready_pods("app=web", 1, where=lambda found: found["metadata"]["name"] != name)
    assert replacement["spec"]["nodeName"] != LATER
    assert stage.allocated_memory(replacement["metadata"]["name"]) == 300 * MIB
    stage.apply(vpa("web", "Deployment", "InPlaceOrRecreate", minAllowed={"memory": "350Mi"}))
    stage.until(
        "the replacement is resized in place",
        lambda: stage.allocated_memory(replacement["metadata"]["name"]) == 350 * MIB,
    )
    stage.kubectl("delete", "node", LATER)
    stage.kubectl("delete", "pod", name, "--force", "--grace-period=0")
    (same,) = stage.ready_pods("app=web", 1)
    assert same["metadata"]["uid"] == replacement["metadata"]["uid"]


def on_later_if_possible() -> dict[str, Any]:
    """Return fields of a pod that runs on the later node if it can, and leaves a lost node at once."""
    key = "kubernetes.io/hostname"
    preferred = {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [LATER]}]},
    }
    lost = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}},
        "tolerations": [{**lost, "tolerationSeconds": 0}],
    }
