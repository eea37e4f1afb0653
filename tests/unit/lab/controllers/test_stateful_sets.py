"""StatefulSets keep names and order."""

import pytest

from tests.unit.lab.controllers.builders import (
    condition,
    images,
    names,
    pods,
    virtual,
    watch_pods,
    workload,
)


def added(cluster):
    made = []
    watch_pods(cluster, lambda change, pod: made.append(pod.metadata.name) if change == "added" else None)
    return made


@virtual()
async def test_pods_are_made_in_order_each_after_the_one_before_is_ready(cluster):
    ready_when_made = []

    def note(change, pod):
        if change == "added":
            others = cluster.side.caches.pods.all()
            ready_when_made.append(
                (
                    pod.metadata.name,
                    sum(
                        p.status.condition("Ready") is not None and condition(p, "Ready").status == "True"
                        for p in others
                    ),
                )
            )

    watch_pods(cluster, note)
    await cluster.apply(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    await cluster.settle()
    assert ready_when_made == [("db-0", 0), ("db-1", 1), ("db-2", 2)]
    found = await pods(cluster)
    assert [pod.metadata.labels["apps.kubernetes.io/pod-index"] for pod in found] == ["0", "1", "2"]
    assert (await cluster.get("StatefulSet", "db"))["status"]["readyReplicas"] == 3


@virtual()
async def test_parallel_makes_all_pods_at_once(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"))
    await cluster.clock.sleep(0.1)
    assert await names(cluster) == ["db-0", "db-1", "db-2"]


@virtual()
async def test_scaling_down_takes_the_highest_ordinal_first_and_waits_for_it(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    gone = []
    watch_pods(cluster, lambda change, pod: gone.append(pod.metadata.name) if change == "deleted" else None)
    await cluster.apply(workload("StatefulSet", "db", replicas=1))
    await cluster.settle()
    assert gone == ["db-2", "db-1"]


@virtual()
async def test_a_rolling_update_goes_from_the_highest_ordinal_down(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    made = added(cluster)
    made.clear()
    await cluster.apply(workload("StatefulSet", "db", image="web:2", replicas=3))
    await cluster.settle()
    status = (await cluster.get("StatefulSet", "db"))["status"]
    assert made == ["db-2", "db-1", "db-0"]
    assert images(await pods(cluster)) == ["web:2"] * 3
    assert status["currentRevision"] == status["updateRevision"]
    assert status["updatedReplicas"] == 3


@virtual()
async def test_pods_below_the_partition_keep_the_old_template_even_when_replaced(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await cluster.apply(workload("StatefulSet", "db", image="web:2", replicas=3, updateStrategy=strategy))
    await cluster.settle()
    await cluster.delete("Pod", "db-0")
    await cluster.settle()
    assert images(await pods(cluster)) == ["web:1", "web:1", "web:2"]


@virtual()
async def test_on_delete_leaves_old_pods_alone_until_somebody_deletes_them(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=2))
    await cluster.settle()
    await cluster.apply(
        workload("StatefulSet", "db", image="web:2", replicas=2, updateStrategy={"type": "OnDelete"})
    )
    await cluster.settle()
    await cluster.delete("Pod", "db-1")
    await cluster.settle()
    assert images(await pods(cluster)) == ["web:1", "web:2"]


@virtual()
async def test_ordinals_may_start_later(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=2, ordinals={"start": 5}))
    await cluster.settle()
    assert await names(cluster) == ["db-5", "db-6"]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_deleted_pod_comes_back_under_its_name(policy):
    @virtual()
    async def scene(cluster):
        await cluster.apply(workload("StatefulSet", "db", replicas=2, podManagementPolicy=policy))
        await cluster.settle()
        before = {pod.metadata.name: pod.metadata.uid for pod in await pods(cluster)}
        await cluster.delete("Pod", "db-0")
        await cluster.settle()
        after = {pod.metadata.name: pod.metadata.uid for pod in await pods(cluster)}
        assert list(before) == list(after)
        assert before["db-0"] != after["db-0"]
        assert before["db-1"] == after["db-1"]

    scene()
