"""One pod leads, carries the label and the load, and is followed by another."""

from tests.unit.lab.controllers.builders import pods, virtual, watch_pods, workload
from trimtab.cluster.resource import LEASES
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.load.curves import constant
from trimtab_lab.load.plan import Election, Leader, LoadPlan, WorkloadLoad


def led(**election):
    load = WorkloadLoad(name="db", cpu=constant("1"), share=Leader(share=0.8), election=Election(**election))
    return DataPlaneConfig(plan=LoadPlan(workloads=(load,)))


async def roles(cluster):
    return {pod.metadata.name: pod.metadata.labels.get("role") for pod in await pods(cluster)}


@virtual(led())
async def test_one_pod_leads_and_has_most_of_the_load(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    assert await roles(cluster) == {"db-0": "leader", "db-1": "follower", "db-2": "follower"}
    used = [
        cluster.side.kubelet.samples.pod_usage("default", name, cluster.clock.now()).containers["app"]["cpu"]
        for name in ("db-0", "db-1", "db-2")
    ]
    assert used == ["800m", "100m", "100m"]


@virtual(led())
async def test_another_pod_leads_when_the_leader_goes(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    most = [0]

    def count(_change, _pod):
        found = cluster.side.caches.pods.all()
        leading = [
            pod
            for pod in found
            if pod.metadata.labels.get("role") == "leader" and not pod.metadata.deletion_timestamp
        ]
        most[0] = max(most[0], len(leading))

    watch_pods(cluster, count)
    await cluster.delete("Pod", "db-0")
    await cluster.settle()
    assert await roles(cluster) == {"db-0": "follower", "db-1": "leader", "db-2": "follower"}
    assert most == [1], "there are never two leaders"


@virtual(led(every=60.0, lease="db-leader"))
async def test_the_lead_changes_from_time_to_time_and_the_lease_says_so(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=2))
    await cluster.settle()
    before = cluster.side.elections.leader("default", "db")
    await cluster.clock.sleep(61)
    after = cluster.side.elections.leader("default", "db")
    lease = await cluster.client.get(LEASES, "db-leader", "default")
    assert (before, after) == ("db-0", "db-1")
    assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("db-1", 1)


@virtual(led())
async def test_a_person_can_choose_the_leader(cluster):
    await cluster.apply(workload("StatefulSet", "db", replicas=3))
    await cluster.settle()
    cluster.side.elections.elect("default", "db", "db-2")
    await cluster.settle()
    assert (await roles(cluster))["db-2"] == "leader"
    assert list((await roles(cluster)).values()).count("leader") == 1
