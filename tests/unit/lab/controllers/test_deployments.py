"""Deployments become ReplicaSets become pods, and roll over step by step."""

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
from trimtab.model.json import wire
from trimtab_lab.controllers.deployments import (
    ReplicaSetSize,
    RolloutLimits,
    rollout_limits,
    scale_down_old,
    scale_proportionally,
    scale_up_new,
)
from trimtab_lab.controllers.kinds import REPLICA_SETS, UpdateStrategy
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.nodes.node_pool import NodePool


@virtual()
async def test_a_deployment_becomes_ready_pods_of_one_replica_set(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=3))
    await cluster.settle()
    found = await pods(cluster)
    status = (await cluster.get("Deployment", "web"))["status"]
    sets = (await cluster.client.list(REPLICA_SETS)).items
    assert len(sets) == 1
    assert sets[0].metadata.name == f"web-{found[0].metadata.labels['pod-template-hash']}"
    assert [pod.status.phase for pod in found] == ["Running"] * 3
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert {condition["type"]: condition["reason"] for condition in status["conditions"]} == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "NewReplicaSetAvailable",
    }


@virtual()
async def test_a_rollout_never_leaves_the_surge_and_availability_it_may(cluster):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    await cluster.apply(workload("Deployment", "web", replicas=4, strategy=strategy))
    await cluster.settle()
    alive, ready = [], []

    def note(_change, _pod):
        active = [p for p in cluster.side.caches.pods.all() if p.metadata.deletion_timestamp is None]
        alive.append(len(active))
        ready.append(sum(condition(p, "Ready").status == "True" for p in active if p.status.conditions))

    watch_pods(cluster, note)
    await cluster.apply(workload("Deployment", "web", image="web:2", replicas=4, strategy=strategy))
    await cluster.settle()
    assert images(await pods(cluster)) == ["web:2"] * 4
    assert max(alive) <= 5
    assert min(ready[4:]) >= 2, "three are promised; one more may be on its way out when it is seen"
    revisions = [
        s.metadata.annotations["deployment.kubernetes.io/revision"]
        for s in (await cluster.client.list(REPLICA_SETS)).items
    ]
    assert sorted(revisions) == ["1", "2"]


@virtual()
async def test_recreate_ends_the_old_pods_before_it_starts_new_ones(cluster):
    strategy = {"type": "Recreate"}
    await cluster.apply(workload("Deployment", "web", replicas=2, strategy=strategy))
    await cluster.settle()
    mixes = set()
    watch_pods(cluster, lambda *_: mixes.add(frozenset(images(cluster.side.caches.pods.all()))))
    await cluster.apply(workload("Deployment", "web", image="web:2", replicas=2, strategy=strategy))
    await cluster.settle()
    assert images(await pods(cluster)) == ["web:2"] * 2
    assert frozenset({"web:1", "web:2"}) not in mixes


@virtual()
async def test_going_back_to_an_old_template_reuses_its_replica_set(cluster):
    for image in ("web:1", "web:2", "web:1"):
        await cluster.apply(workload("Deployment", "web", image=image, replicas=1))
        await cluster.settle()
    sets = (await cluster.client.list(REPLICA_SETS)).items
    deployment = await cluster.get("Deployment", "web")
    assert len(sets) == 2
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


@virtual()
async def test_old_replica_sets_are_kept_up_to_the_history_limit(cluster):
    for number in range(5):
        await cluster.apply(
            workload("Deployment", "web", image=f"web:{number}", replicas=1, revisionHistoryLimit=2)
        )
        await cluster.settle()
    assert len((await cluster.client.list(REPLICA_SETS)).items) == 3


@virtual(DataPlaneConfig(pools=(NodePool(count=2),)))
async def test_scaling_down_deletes_the_newest_pods(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=2))
    await cluster.settle()
    first = await names(cluster)
    await cluster.clock.sleep(60)
    await cluster.apply(workload("Deployment", "web", replicas=4))
    await cluster.settle()
    await cluster.apply(workload("Deployment", "web", replicas=2))
    await cluster.settle()
    assert await names(cluster) == first


@virtual()
async def test_min_ready_seconds_delay_availability(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=1, minReadySeconds=30))
    await cluster.clock.sleep(10)
    early = (await cluster.get("Deployment", "web"))["status"]
    await cluster.clock.sleep(30)
    late = (await cluster.get("Deployment", "web"))["status"]
    assert (early["readyReplicas"], early.get("availableReplicas", 0)) == (1, 0)
    assert late["availableReplicas"] == 1


@virtual()
async def test_a_rollout_that_gets_nowhere_misses_its_deadline(cluster):
    await cluster.apply(
        workload(
            "Deployment", "web", replicas=1, progressDeadlineSeconds=60, pod={"nodeSelector": {"no": "where"}}
        )
    )
    await cluster.clock.sleep(120)
    conditions = (await cluster.get("Deployment", "web"))["status"]["conditions"]
    assert [condition["reason"] for condition in conditions] == [
        "MinimumReplicasUnavailable",
        "ProgressDeadlineExceeded",
    ]


@virtual()
async def test_deleting_a_deployment_takes_its_pods_along(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=2))
    await cluster.settle()
    await cluster.delete("Deployment", "web")
    await cluster.clock.sleep(40)
    assert await names(cluster) == []


@virtual()
async def test_a_lost_pod_is_replaced_once(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=3))
    await cluster.settle()
    made = []
    watch_pods(cluster, lambda change, pod: made.append(pod.metadata.name) if change == "added" else None)
    before = len(made)
    await cluster.delete("Pod", (await names(cluster))[0])
    await cluster.settle()
    assert len(made) - before == 1
    assert len(await names(cluster)) == 3


@virtual()
async def test_a_replication_controller_keeps_its_pods_and_adopts_orphans(cluster):
    orphan = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "orphan", "labels": {"app": "old"}},
        "spec": {"containers": [{"name": "app", "image": "web:1"}]},
    }
    await cluster.apply(orphan, workload("ReplicationController", "old", replicas=2))
    await cluster.settle()
    found = await pods(cluster)
    assert len(found) == 2
    assert "orphan" in [pod.metadata.name for pod in found]
    assert {pod.metadata.owner_references[0].kind for pod in found} == {"ReplicationController"}


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "want"),
    [
        pytest.param("25%", "25%", 4, RolloutLimits(1, 1), id="a quarter of four is one"),
        pytest.param("25%", "25%", 3, RolloutLimits(1, 0), id="surge rounds up and unavailability down"),
        pytest.param(0, 0, 3, RolloutLimits(0, 1), id="with neither one pod may be missing"),
        pytest.param(0, "100%", 3, RolloutLimits(0, 3), id="all may be missing"),
    ],
)
def test_limits_of_a_rollout(surge, unavailable, replicas, want):
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    assert rollout_limits(wire.convert({"rollingUpdate": rolling}, UpdateStrategy), replicas) == want


def test_unhealthy_old_pods_go_before_healthy_ones():
    old = [ReplicaSetSize("broken", 2, 0), ReplicaSetSize("fine", 2, 2)]
    sizes = scale_down_old(ReplicaSetSize("new", 2, 2), old, 4, RolloutLimits(2, 0))
    assert sizes == {"broken": 0, "fine": 2}


def test_the_new_set_grows_only_as_far_as_the_surge_allows():
    assert (
        scale_up_new(ReplicaSetSize("new", 0, 0), [ReplicaSetSize("old", 4, 4)], 4, RolloutLimits(1, 0)) == 1
    )
    assert scale_up_new(ReplicaSetSize("new", 6, 6), [], 4, RolloutLimits(1, 0)) == 4


@pytest.mark.parametrize(
    ("sizes", "total", "want"),
    [
        pytest.param((8, 2), 20, (16, 4), id="each grows in proportion"),
        pytest.param((8, 2), 5, (4, 1), id="each shrinks in proportion"),
        pytest.param((1, 1), 3, (2, 1), id="what rounding leaves over goes to one of them"),
        pytest.param((3, 1), 0, (0, 0), id="to nothing"),
    ],
)
def test_a_changed_total_is_shared_out(sizes, total, want):
    sets = [ReplicaSetSize(f"set-{place}", size, size) for place, size in enumerate(sizes)]
    assert tuple(scale_proportionally(sets, total, sum(sizes)).values()) == want
