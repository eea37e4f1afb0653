"""Start-up boost on a real kubelet: more CPU in the cgroup until the pod is Ready, then less, in the same container."""

from typing import Any

import pytest

from tests.node.stage import Stage, first_status, vpa, workload

pytestmark = pytest.mark.node

SIZE = {"cpu": "100m", "memory": "64Mi"}
PERIOD = 100_000
"""Microseconds of a period in `cpu.max`."""


def test_a_boosted_container_has_more_cpu_until_it_is_ready(stage: Stage):
    """The webhook boosts the pod; when it is Ready, the kubelet lowers the limit without a restart."""
    stage.apply(
        vpa(
            "slow", "Deployment", "InPlaceOrRecreate",
            boost=3, controls=["cpu", "memory"], minAllowed=SIZE, maxAllowed=SIZE,
        )
    )  # fmt: skip
    starting = workload(
        "Deployment", "slow", starts_ready=False, requests=SIZE, limits={"cpu": "200m", "memory": "128Mi"}
    )
    stage.apply(starting)
    pod = stage.until("the webhook boosts a pod", lambda: boosted_pod(stage))
    name, container = pod["metadata"]["name"], first_status(pod)["containerID"]
    # The limit keeps its proportion to the request: twice 300m.
    assert stage.cgroup(pod, "cpu.max") == f"{6 * PERIOD // 10} {PERIOD}"
    stage.until("there is a recommendation", lambda: stage.target_memory("slow"))
    stage.ask(pod, "/ready")
    stage.until("the boost ends", lambda: stage.cgroup(pod, "cpu.max") == f"{2 * PERIOD // 10} {PERIOD}")
    after = stage.until("the kubelet has allocated it", lambda: without_boost(stage, name))
    assert (first_status(after)["containerID"], first_status(after)["restartCount"]) == (container, 0)
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]


def boosted_pod(stage: Stage) -> dict[str, Any]:
    """Return the running pod if it is boosted, and delete it if it was created before the webhook saw the VPA."""
    pod = stage.running_pod("app=slow")
    if pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "300m":
        return pod
    stage.kubectl("delete", "pod", pod["metadata"]["name"])
    return {}


def without_boost(stage: Stage, name: str) -> dict[str, Any]:
    """Return the pod once the kubelet has allocated its CPU without the boost."""
    pod = stage.pod(name)
    return pod if first_status(pod)["allocatedResources"]["cpu"] == SIZE["cpu"] else {}
