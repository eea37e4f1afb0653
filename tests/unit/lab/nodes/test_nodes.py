"""Pods on nodes without machines: placed, started, resized, killed, stopped."""

from datetime import UTC, datetime

import pytest

from tests.unit.lab.controllers.builders import (
    condition,
    names,
    pods,
    resources,
    virtual,
    workload,
)
from trimtab.cluster import errors
from trimtab.model.json import wire
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.nodes.node_pool import NodePool
from trimtab_lab.nodes.pod_lifecycle import Timing, backoff
from trimtab_lab.nodes.resize import ResizeInputs, resize_step
from trimtab_lab.nodes.scheduler import Resources

SMALL = DataPlaneConfig(pools=(NodePool(name="small", count=1, cpu="1", memory="1Gi"),))
SLOW = DataPlaneConfig(timing=Timing(start_seconds=5, ready_seconds=20))


def app(name="web", cpu="400m", **spec):
    return resources(workload("Deployment", name, **spec), {"cpu": cpu, "memory": "64Mi"})


@virtual(SMALL)
async def test_pods_without_room_wait_and_say_why(cluster):
    await cluster.apply(app(replicas=3))
    await cluster.settle()
    waiting = [pod for pod in await pods(cluster) if not pod.spec.node_name]
    assert len(waiting) == 1
    assert condition(waiting[0], "PodScheduled").reason == "Unschedulable"
    assert condition(waiting[0], "PodScheduled").message == "0/1 nodes are available: 1 Insufficient cpu."


@virtual()
async def test_pods_are_spread_over_the_nodes(cluster):
    """users.md, A-7: each pod goes to the emptiest node."""
    await cluster.apply(app("large", cpu="2", replicas=1), app(replicas=5))
    await cluster.settle()
    assert [pod.spec.node_name for pod in await pods(cluster, "large")] == ["node-1"]
    placed = sorted(pod.spec.node_name for pod in await pods(cluster, "web"))
    assert placed == ["node-2", "node-2", "node-2", "node-3", "node-3"]


@virtual(SMALL)
async def test_a_waiting_pod_is_placed_when_room_appears(cluster):
    await cluster.apply(app(replicas=2), app("late", replicas=1))
    await cluster.settle()
    await cluster.apply(app(replicas=1))
    await cluster.settle()
    assert [pod.status.phase for pod in await pods(cluster, "late")] == ["Running"]


@virtual(SLOW)
async def test_a_pod_starts_after_a_delay_and_is_ready_after_another(cluster):
    await cluster.apply(app(replicas=1))
    seen = []
    for _ in range(4):
        await cluster.clock.sleep(7.5)
        pod = (await pods(cluster))[0]
        seen.append((pod.status.phase, condition(pod, "Ready").status))
    assert seen == [("Running", "False"), ("Running", "False"), ("Running", "False"), ("Running", "True")]


@virtual()
async def test_annotations_of_a_pod_set_its_own_times(cluster):
    await cluster.apply(app(replicas=1, annotations={"lab.trimtab.dev/start-seconds": "100"}))
    await cluster.clock.sleep(90)
    before = (await pods(cluster))[0].status.phase
    await cluster.clock.sleep(20)
    assert (before, (await pods(cluster))[0].status.phase) == ("Pending", "Running")


@virtual(DataPlaneConfig(timing=Timing(stop_seconds=20)))
async def test_a_pod_that_is_deleted_gets_time_to_stop(cluster):
    await cluster.apply(app(replicas=1, pod={"terminationGracePeriodSeconds": 60}))
    await cluster.settle()
    old = (await names(cluster))[0]
    await cluster.delete("Pod", old)
    await cluster.clock.sleep(15)
    during = await names(cluster)
    await cluster.clock.sleep(10)
    assert old in during
    assert old not in await names(cluster)


@virtual(DataPlaneConfig(timing=Timing(stop_seconds=500)))
async def test_no_pod_outlives_its_grace(cluster):
    await cluster.apply(app(replicas=1, pod={"terminationGracePeriodSeconds": 10}))
    await cluster.settle()
    old = (await names(cluster))[0]
    await cluster.delete("Pod", old)
    await cluster.clock.sleep(12)
    assert old not in await names(cluster)


def running_with(pod):
    """Return what the container of a pod runs with now."""
    return pod.status.container_statuses[0].resources


async def resize(cluster, pod, **changes):
    spec = {"containers": [{"name": "app", "resources": changes}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.settle()
    return (await pods(cluster, pod.metadata.labels["app"]))[0]


@virtual(SMALL)
async def test_a_resize_that_fits_is_carried_out_in_place(cluster):
    await cluster.apply(app(replicas=1))
    await cluster.settle()
    pod = await resize(cluster, (await pods(cluster))[0], requests={"cpu": "600m"})
    status = pod.status.container_statuses[0]
    assert str(running_with(pod).requests["cpu"]) == "600m"
    assert str(status.allocated_resources["cpu"]) == "600m"
    assert status.restart_count == 0
    assert not [condition for condition in pod.status.conditions if condition.type.startswith("PodResize")]


@virtual(SMALL)
async def test_a_resize_says_that_it_is_under_way(cluster):
    await cluster.apply(app(replicas=1, annotations={"lab.trimtab.dev/resize-seconds": "60"}))
    await cluster.settle()
    pod = (await pods(cluster))[0]
    spec = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "600m"}}}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.clock.sleep(30)
    pod = (await pods(cluster))[0]
    assert condition(pod, "PodResizeInProgress").status == "True"
    assert str(pod.status.container_statuses[0].allocated_resources["cpu"]) == "600m"
    assert str(running_with(pod).requests["cpu"]) == "400m"


@virtual(SMALL)
async def test_the_server_refuses_a_resize_beyond_the_node(cluster):
    await cluster.apply(app(replicas=1))
    await cluster.settle()
    with pytest.raises(errors.Forbidden, match="cpu, requested: 2000, allocatable: 1000") as refusal:
        await resize(cluster, (await pods(cluster))[0], requests={"cpu": "2"})
    assert [cause.reason for cause in refusal.value.details.causes] == ["NodeCapacity"]


def test_a_resize_that_only_the_node_knows_to_be_too_large_is_infeasible():
    resources = {"requests": {"cpu": "2"}}
    data = {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "app", "resources": {}, "allocatedResources": {}}],
        },
    }
    inputs = ResizeInputs(
        allocatable=Resources(cpu=1000, memory=2**30, pods=9), others=Resources(), memory={}
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)
    step = resize_step(wire.convert(data, LabPod), inputs, Timing(), now)
    assert step.status is not None
    (pending,) = [
        condition for condition in step.status["conditions"] if condition["type"] == "PodResizePending"
    ]
    assert pending["reason"] == "Infeasible"
    assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000"


@virtual(SMALL)
async def test_a_resize_without_room_is_deferred_until_there_is_some(cluster):
    await cluster.apply(app(replicas=1), app("other", replicas=1))
    await cluster.settle()
    pod = await resize(cluster, (await pods(cluster, "web"))[0], requests={"cpu": "800m"})
    assert condition(pod, "PodResizePending").reason == "Deferred"
    await cluster.delete("Deployment", "other")
    await cluster.clock.sleep(60)
    pod = (await pods(cluster, "web"))[0]
    assert pod.status.condition("PodResizePending") is None
    assert str(running_with(pod).requests["cpu"]) == "800m"


@virtual()
async def test_a_resize_policy_may_ask_for_a_restart(cluster):
    manifest = app(replicas=1)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    await cluster.apply(manifest)
    await cluster.settle()
    pod = await resize(cluster, (await pods(cluster))[0], requests={"cpu": "500m"})
    assert pod.status.container_statuses[0].restart_count == 0
    pod = await resize(cluster, pod, requests={"memory": "128Mi"})
    assert pod.status.container_statuses[0].restart_count == 1


def limited(memory="100Mi", **spec):
    amounts = {"cpu": "100m", "memory": memory}
    return resources(workload("Deployment", "web", replicas=1, **spec), amounts, {"memory": memory})


@virtual()
async def test_a_memory_limit_is_not_lowered_below_what_is_used(cluster):
    await cluster.apply(limited())
    cluster.use_memory(web="80Mi")
    await cluster.settle()
    pod = (await pods(cluster))[0]
    amounts = {"requests": {"memory": "50Mi"}, "limits": {"memory": "50Mi"}}
    spec = {"containers": [{"name": "app", "resources": amounts}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.clock.sleep(20)
    stuck = (await pods(cluster))[0]
    assert condition(stuck, "PodResizeInProgress").reason == "Error"
    cluster.use_memory(web="40Mi")
    await cluster.clock.sleep(30)
    done = (await pods(cluster))[0]
    assert str(running_with(done).limits["memory"]) == "50Mi"


@virtual()
async def test_page_cache_counts_against_a_lower_memory_limit_and_in_no_metric(cluster):
    """As a kubelet has it: UsageBytes includes page cache, the working set does not."""
    await cluster.apply(limited(annotations={"lab.trimtab.dev/page-cache": "60Mi"}))
    cluster.use_memory(web="10Mi")
    await cluster.settle()
    pod = (await pods(cluster))[0]
    amounts = {"requests": {"memory": "50Mi"}, "limits": {"memory": "50Mi"}}
    spec = {"containers": [{"name": "app", "resources": amounts}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.clock.sleep(20)
    stuck = (await pods(cluster))[0]
    said = condition(stuck, "PodResizeInProgress")
    assert said.reason == "Error"
    assert said.message == (
        "cannot decrease memory limits: [attempting to set pod memory limit (52428800) below current usage (73400320), "
        'attempting to set container "app" memory limit (52428800) below current usage (73400320)]'
    )
    assert said.observed_generation == stuck.metadata.generation
    assert stuck.status.container_statuses[0].restart_count == 0
    await cluster.client.resize(
        pod.metadata.name,
        "default",
        {
            "containers": [
                {"name": "app", "resources": {"requests": {"memory": "100Mi"}, "limits": {"memory": "100Mi"}}}
            ]
        },
    )
    await cluster.clock.sleep(20)
    back = (await pods(cluster))[0]
    assert back.status.condition("PodResizeInProgress") is None, "what is taken back waits no longer"


@virtual()
async def test_a_refused_limit_of_a_container_names_the_usage_of_the_pod(cluster):
    """As the kubelet of 1.37 prints it, seen on a real node."""
    manifest = limited(annotations={"lab.trimtab.dev/page-cache": "60Mi"})
    manifest["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side"})
    await cluster.apply(manifest)
    await cluster.settle()
    pod = (await pods(cluster))[0]
    amounts = {"requests": {"memory": "50Mi"}, "limits": {"memory": "50Mi"}}
    spec = {"containers": [{"name": "app", "resources": amounts}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.clock.sleep(20)
    said = condition((await pods(cluster))[0], "PodResizeInProgress")
    # The first container holds its limit of 100Mi, the second 64Mi and page cache.
    used = (100 + 64 + 60) * 1024 * 1024
    assert said.message == (
        'cannot decrease memory limits: attempting to set container "app" memory limit (52428800) '
        f"below current usage ({used})"
    )


@virtual()
async def test_a_resize_that_restarts_makes_the_pod_unready_until_it_has_started(cluster):
    manifest = app(replicas=1, annotations={"lab.trimtab.dev/ready-seconds": "60"})
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    await cluster.apply(manifest)
    await cluster.settle()
    pod = (await pods(cluster))[0]
    spec = {"containers": [{"name": "app", "resources": {"requests": {"memory": "128Mi"}}}]}
    await cluster.client.resize(pod.metadata.name, "default", spec)
    await cluster.clock.sleep(30)
    assert condition((await pods(cluster))[0], "Ready").status == "False"
    await cluster.clock.sleep(60)
    assert condition((await pods(cluster))[0], "Ready").status == "True"


@virtual()
async def test_a_container_over_its_memory_limit_is_killed_and_started_again(cluster):
    await cluster.apply(limited())
    await cluster.settle()
    cluster.use_memory(web="150Mi")
    await cluster.clock.sleep(1)
    cluster.use_memory(web="50Mi")
    await cluster.settle()
    status = (await pods(cluster))[0].status.container_statuses[0]
    assert status.restart_count == 1
    ended = status.last_state.terminated
    assert ended is not None
    assert (ended.reason, ended.exit_code) == ("OOMKilled", 137)
    assert status.state.running is not None


@virtual()
async def test_a_container_that_is_killed_again_and_again_waits_longer_each_time(cluster):
    await cluster.apply(limited())
    cluster.use_memory(web="150Mi")
    await cluster.clock.sleep(300)
    status = (await pods(cluster))[0].status.container_statuses[0]
    assert 3 <= status.restart_count <= 6
    waiting = status.state.waiting
    assert waiting is None or waiting.reason == "CrashLoopBackOff"


def test_the_wait_before_a_restart_doubles_up_to_five_minutes():
    assert [backoff(count) for count in (1, 2, 3, 6, 20)] == [10.0, 20.0, 40.0, 300.0, 300.0]


@pytest.mark.parametrize(
    ("requirement", "count"),
    [
        pytest.param({"key": "disk", "operator": "In", "values": ["fast"]}, 1, id="In"),
        pytest.param({"key": "disk", "operator": "NotIn", "values": ["fast"]}, 1, id="NotIn"),
        pytest.param({"key": "disk", "operator": "Exists"}, 1, id="Exists"),
        pytest.param({"key": "size", "operator": "Gt", "values": ["3"]}, 1, id="Gt"),
        pytest.param({"key": "size", "operator": "Lt", "values": ["3"]}, 0, id="Lt"),
    ],
)
def test_affinity_to_node_labels_is_honoured(requirement, count):
    pools = (
        NodePool(name="plain", count=1),
        NodePool(name="fast", count=1, labels={"disk": "fast", "size": "8"}),
    )
    term = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}

    @virtual(DataPlaneConfig(pools=pools))
    async def scene(cluster):
        await cluster.apply(app(replicas=1, pod={"affinity": affinity}))
        await cluster.settle()
        placed = [pod.spec.node_name for pod in await pods(cluster)]
        want = "plain-1" if requirement["operator"] == "NotIn" else "fast-1"
        assert placed == ([want] if count else [""])

    scene()
