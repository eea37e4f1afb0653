"""DaemonSets follow nodes; Jobs run to their end."""

from tests.unit.lab.controllers.builders import (
    condition,
    images,
    names,
    pods,
    virtual,
    workload,
)
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.nodes.node_pool import NodePool

TWO_POOLS = DataPlaneConfig(
    pools=(NodePool(name="plain", count=2), NodePool(name="gpu", count=1, labels={"gpu": "yes"}))
)


@virtual(TWO_POOLS)
async def test_a_daemon_runs_on_every_node_that_matches(cluster):
    await cluster.apply(
        workload("DaemonSet", "all"), workload("DaemonSet", "some", pod={"nodeSelector": {"gpu": "yes"}})
    )
    await cluster.settle()
    assert sorted(pod.spec.node_name for pod in await pods(cluster, "all")) == ["gpu-1", "plain-1", "plain-2"]
    assert [pod.spec.node_name for pod in await pods(cluster, "some")] == ["gpu-1"]
    status = (await cluster.get("DaemonSet", "all"))["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (3, 3, 3)


@virtual(TWO_POOLS)
async def test_a_daemon_asks_for_its_node_by_name(cluster):
    await cluster.apply(workload("DaemonSet", "some", pod={"nodeSelector": {"gpu": "yes"}}))
    await cluster.settle()
    pod = (await pods(cluster))[0]
    assert pod.spec.affinity is not None
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [(field.key, field.values) for field in terms[0].match_fields] == [("metadata.name", ("gpu-1",))]


@virtual()
async def test_a_new_node_gets_its_daemon(cluster):
    await cluster.apply(workload("DaemonSet", "all"))
    await cluster.settle()
    await cluster.side.kubelet.add_pool(NodePool(name="late", count=1))
    await cluster.settle()
    assert len(await names(cluster)) == 4


@virtual()
async def test_daemons_are_renewed_one_by_one(cluster):
    await cluster.apply(workload("DaemonSet", "all"))
    await cluster.settle()
    await cluster.apply(workload("DaemonSet", "all", image="web:2"))
    await cluster.settle()
    assert images(await pods(cluster)) == ["web:2"] * 3
    assert (await cluster.get("DaemonSet", "all"))["status"]["updatedNumberScheduled"] == 3


@virtual()
async def test_a_cordoned_node_keeps_daemons_and_refuses_others(cluster):
    await cluster.settle()
    for name in ("node-1", "node-2", "node-3"):
        await cluster.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": True}}
        )
    await cluster.apply(workload("DaemonSet", "all"), workload("Deployment", "web", replicas=1))
    await cluster.settle()
    assert [pod.status.phase for pod in await pods(cluster, "all")] == ["Running"] * 3
    waiting = (await pods(cluster, "web"))[0]
    assert waiting.status.phase == "Pending"
    assert "untolerated taint" in condition(waiting, "PodScheduled").message


JOB_POD = {"restartPolicy": "Never"}


@virtual()
async def test_a_job_runs_so_many_pods_so_many_at_once(cluster):
    await cluster.apply(workload("Job", "batch", completions=5, parallelism=2, pod=JOB_POD))
    await cluster.clock.sleep(10)
    running = (await cluster.get("Job", "batch"))["status"]
    await cluster.clock.sleep(300)
    status = (await cluster.get("Job", "batch"))["status"]
    assert running["active"] == 2
    assert status["succeeded"] == 5
    assert "active" not in status
    assert [condition["type"] for condition in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["completionTime"] > status["startTime"]
    assert [pod.status.phase for pod in await pods(cluster)] == ["Succeeded"] * 5
    assert all(not pod.metadata.finalizers for pod in await pods(cluster))


@virtual()
async def test_a_job_whose_pods_fail_gives_up_after_the_backoff_limit(cluster):
    await cluster.apply(
        workload("Job", "batch", backoffLimit=2, pod=JOB_POD, annotations={"lab.trimtab.dev/exit-code": "1"})
    )
    await cluster.clock.sleep(600)
    status = (await cluster.get("Job", "batch"))["status"]
    assert status["failed"] == 3
    assert [condition["type"] for condition in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["conditions"][-1]["reason"] == "BackoffLimitExceeded"


@virtual()
async def test_a_finished_pod_that_is_deleted_stays_counted(cluster):
    await cluster.apply(workload("Job", "batch", completions=2, parallelism=1, pod=JOB_POD))
    await cluster.clock.sleep(40)
    done = [pod.metadata.name for pod in await pods(cluster) if pod.status.phase == "Succeeded"]
    await cluster.delete("Pod", done[0])
    await cluster.clock.sleep(60)
    assert (await cluster.get("Job", "batch"))["status"]["succeeded"] == 2
    assert len(await names(cluster)) == 1


@virtual()
async def test_an_indexed_job_runs_each_index_once(cluster):
    await cluster.apply(
        workload("Job", "batch", completions=3, parallelism=3, completionMode="Indexed", pod=JOB_POD)
    )
    await cluster.clock.sleep(120)
    found = await pods(cluster)
    indexes = [pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] for pod in found]
    assert sorted(indexes) == ["0", "1", "2"]


@virtual()
async def test_a_suspended_job_runs_nothing_until_it_is_resumed(cluster):
    await cluster.apply(workload("Job", "batch", suspend=True, pod=JOB_POD))
    await cluster.clock.sleep(60)
    asleep = await names(cluster)
    await cluster.apply(workload("Job", "batch", suspend=False, pod=JOB_POD))
    await cluster.clock.sleep(60)
    assert asleep == []
    assert (await cluster.get("Job", "batch"))["status"]["succeeded"] == 1


@virtual()
async def test_deleting_a_job_lets_its_pods_go(cluster):
    await cluster.apply(
        workload("Job", "batch", pod=JOB_POD, annotations={"lab.trimtab.dev/run-seconds": "9999"})
    )
    await cluster.settle()
    await cluster.server.request(
        "DELETE",
        "/apis/batch/v1/namespaces/default/jobs/batch",
        "propagationPolicy=Background",
        {"authorization": f"Bearer {cluster.server.tokens.admin}"},
    )
    await cluster.clock.sleep(60)
    assert await names(cluster) == []
