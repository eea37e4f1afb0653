"""Sizes that a real kubelet applies: what the cgroups of the guest hold, and what happens when it refuses."""

from typing import Any

import pytest

from tests.node.stage import MIB, Stage, first_status, memory_of, scope, vpa, workload

pytestmark = pytest.mark.node

TINY = {"cpu": "20m", "memory": "64Mi"}
LEADER = {"cpu": "300m", "memory": "400Mi"}
FOLLOWER = {"cpu": "100m", "memory": "160Mi"}
BOTH = ("cpu", "memory")
DATABASE = (
    scope("leader", podSelector={"matchLabels": {"role": "leader"}}),
    workload(
        "StatefulSet", "db", replicas=2, cpu=20,
        requests={"cpu": "50m", "memory": "128Mi"}, limits={"cpu": "100m", "memory": "256Mi"},
    ),
    vpa("db", "StatefulSet", "InPlaceOrRecreate", controls=BOTH, maxAllowed=FOLLOWER),
    vpa(
        "db-leader", "StatefulSet", "InPlaceOrRecreate",
        target="db", scope="leader", controls=BOTH, minAllowed=LEADER, maxAllowed=LEADER,
    ),
)  # fmt: skip


def test_a_role_that_moves_is_resized_in_place(stage: Stage):
    """The kernel enforces the leader's size, in the same container."""
    stage.apply(*DATABASE)
    pod = stage.ready_pods("app=db", 2)[0]
    name, container = pod["metadata"]["name"], first_status(pod)["containerID"]
    before = stage.cgroup(pod, "cpu.max"), stage.cgroup(pod, "memory.max")
    stage.kubectl("label", "pod", name, "role=leader")
    # Limits keep their proportion to requests: twice 300m and 400Mi.
    wanted = "60000 100000", str(800 * MIB)
    stage.until(
        "the leader is resized",
        lambda: (stage.cgroup(pod, "cpu.max"), stage.cgroup(pod, "memory.max")) == wanted,
    )
    pod = stage.until("the kubelet says so", lambda: has_allocated(stage, name, 400 * MIB))
    after = stage.cgroup(pod, "cpu.max"), stage.cgroup(pod, "memory.max")
    assert (first_status(pod)["containerID"], first_status(pod)["restartCount"]) == (container, 0)
    assert stage.requested_memory(name) == 400 * MIB
    print(f"\n{name}: cpu.max and memory.max {before} -> {after}, same container, 0 restarts")  # noqa: T201 - shown by -s


def test_a_container_that_was_out_of_memory_gets_more_in_place(stage: Stage):
    """The kernel kills it at its limit; the recommendation grows and the limit follows."""
    hog = workload(
        "Deployment", "hog", requests={"cpu": "20m", "memory": "100Mi"}, limits={"memory": "100Mi"}
    )
    stage.apply(hog, vpa("hog", "Deployment", "InPlaceOrRecreate"))
    (pod,) = stage.ready_pods("app=hog", 1)
    name = pod["metadata"]["name"]
    # The smallest recommendation of a pod is 250Mi.
    stage.until("it has 250Mi", lambda: memory_limit(stage, name) >= 250 * MIB)
    stage.ask(pod, "/mem?mb=600")
    stage.until("the kernel kills it", lambda: first_status(stage.pod(name))["restartCount"] >= 1)
    assert first_status(stage.pod(name))["lastState"]["terminated"]["reason"] == "OOMKilled"
    stage.until("its limit grows", lambda: memory_limit(stage, name) > 300 * MIB)


def test_a_size_that_no_node_has_leaves_the_only_replica_alone(stage: Stage):
    """The API server refuses it with NodeCapacity; an eviction would leave the workload without a pod."""
    big = workload("Deployment", "big", requests=TINY)
    stage.apply(
        big, vpa("big", "Deployment", "InPlaceOrRecreate", controls=["cpu"], minAllowed={"cpu": "64"})
    )
    (pod,) = stage.ready_pods("app=big", 1)
    stage.until(
        "the VPA says that no node fits", lambda: "NoNodeFits" in str(stage.get("tvpa", "big").get("status"))
    )
    (same,) = stage.ready_pods("app=big", 1)
    assert same["metadata"]["uid"] == pod["metadata"]["uid"]


def test_a_recreated_pod_starts_with_the_size_of_the_webhook(stage: Stage):
    """Recreate evicts; the replacement's cgroup has the recommended size."""
    old = workload(
        "Deployment", "old", replicas=2, requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "64Mi"}
    )
    stage.apply(old, vpa("old", "Deployment", "Recreate", minAllowed={"memory": "250Mi"}))
    first = {pod["metadata"]["uid"] for pod in stage.ready_pods("app=old", 2)}

    def replaced() -> list[dict[str, Any]]:
        pods = [pod for pod in stage.ready_pods("app=old", 2) if pod["metadata"]["uid"] not in first]
        return [pod for pod in pods if stage.requested_memory(pod["metadata"]["name"]) == 250 * MIB]

    (pod, *_) = stage.until("a pod is replaced by one of the recommended size", replaced)
    assert int(stage.cgroup(pod, "memory.max")) == 500 * MIB


def test_a_shrink_below_the_page_cache_waits_and_evicts_nobody(stage: Stage):
    """The kubelet refuses a limit below what the cgroup holds, page cache included."""
    stage.apply(*DATABASE)
    pod = stage.ready_pods("app=db", 2)[0]
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    stage.kubectl("label", "pod", name, "role=leader")
    stage.until("the leader has 800Mi", lambda: memory_limit(stage, name) >= 800 * MIB)
    fill = "exec dd if=/dev/zero of=/var/lib/cache bs=1M count=400"
    stage.in_guest(
        pod,
        f"sh -c 'echo $$ > {stage.cgroup_folder(pod)}/cgroup.procs; {fill}'; sync; cat /var/lib/cache > /dev/null",
    )
    assert int(stage.cgroup(pod, "memory.current")) > 400 * MIB
    stage.kubectl("label", "pod", name, "role-")
    stage.until("a smaller request is asked for", lambda: stage.requested_memory(name) <= 160 * MIB)
    assert memory_limit(stage, name) > 400 * MIB
    stage.in_guest(pod, "rm -f /var/lib/cache; echo 1 > /proc/sys/vm/drop_caches")
    stage.until("the limit follows", lambda: memory_limit(stage, name) <= 320 * MIB)
    assert stage.pod(name)["metadata"]["uid"] == uid
    assert first_status(stage.pod(name))["restartCount"] == 0


def test_a_resize_that_does_not_fit_now_is_done_when_there_is_room(stage: Stage):
    """The kubelet defers it; nobody is evicted, and it is done once another pod has ended."""
    stage.have_for_itself("node-2")
    free = memory_of(stage.get("node", "node-2")["status"]["allocatable"]["memory"]) // MIB
    filler = workload("Deployment", "filler", requests={"memory": f"{free - 300}Mi"}, nodeName="node-2")
    stage.apply(filler, workload("Deployment", "web", requests=TINY, nodeName="node-2"))
    stage.ready_pods("app=filler", 1)
    (pod,) = stage.ready_pods("app=web", 1)
    name = pod["metadata"]["name"]
    stage.apply(vpa("web", "Deployment", "InPlaceOrRecreate", minAllowed={"memory": "500Mi"}))

    def is_deferred() -> bool:
        conditions = stage.pod(name)["status"].get("conditions", [])
        return any(each["type"] == "PodResizePending" and each["reason"] == "Deferred" for each in conditions)

    stage.until("the kubelet defers the resize", is_deferred)
    stage.kubectl("delete", "deployment", "filler")
    stage.until("it is done", lambda: stage.allocated_memory(name) >= 500 * MIB)
    same = stage.pod(name)
    assert (same["metadata"]["uid"], first_status(same)["restartCount"]) == (pod["metadata"]["uid"], 0)


def test_a_daemon_set_has_a_size_for_each_class_of_node(stage: Stage):
    """Two nodes, one DaemonSet, two sizes in the cgroups."""
    stage.kubectl("label", "node", "node-1", "class=large", "--overwrite")
    fixed = {"memory": "100Mi"}
    stage.apply(
        scope("large", nodeSelector={"matchLabels": {"class": "large"}}),
        workload("DaemonSet", "agent", replicas=None, requests=TINY, limits={"memory": "128Mi"}),
        vpa("agent", "DaemonSet", "InPlaceOrRecreate", minAllowed=fixed, maxAllowed=fixed),
        vpa(
            "agent-large",
            "DaemonSet",
            "InPlaceOrRecreate",
            target="agent",
            scope="large",
            minAllowed={"memory": "300Mi"},
        ),
    )

    def has_both_sizes() -> bool:
        pods = stage.ready_pods("app=agent", 2)
        limits = {pod["spec"]["nodeName"]: int(stage.cgroup(pod, "memory.max")) for pod in pods}
        return limits == {"node-1": 600 * MIB, "node-2": 200 * MIB}

    stage.until("each node has its size", has_both_sizes)


def test_a_pod_that_the_kubelet_evicts_for_memory_gets_more(stage: Stage):
    """The kubelet's event about its own eviction raises the recommendation."""
    stage.have_for_itself("node-2")
    eater = workload("Deployment", "eater", requests={"cpu": "20m", "memory": "100Mi"}, nodeName="node-2")
    stage.apply(eater, vpa("eater", "Deployment", "Off"))
    (pod,) = stage.ready_pods("app=eater", 1)
    before = stage.until("there is a recommendation", lambda: stage.target_memory("eater"))
    available = int(stage.in_guest(pod, "grep MemAvailable /proc/meminfo | tr -dc 0-9")) // 1024
    # The kubelet evicts when less than 500Mi are available.
    stage.ask(pod, f"/mem?mb={available - 350}")
    name = pod["metadata"]["name"]
    stage.until("the kubelet evicts it", lambda: stage.pod(name).get("status", {}).get("reason") == "Evicted")
    stage.until("the recommendation grows", lambda: stage.target_memory("eater") > 2 * before)


def has_allocated(stage: Stage, name: str, memory: int) -> dict[str, Any]:
    """Return a pod once the kubelet has allocated so much memory to it."""
    return stage.pod(name) if stage.allocated_memory(name) == memory else {}


def memory_limit(stage: Stage, name: str) -> int:
    """Return the limit that the kernel enforces for a pod's container; without one, a huge number."""
    pod = stage.pod(name)
    if not pod or "running" not in first_status(pod).get("state", {}):
        return 0
    text = stage.cgroup(pod, "memory.max")
    return int(text) if text != "max" else 1 << 62
