"""Load models: curves, sharing, queues, and what pods use because of them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.lab.controllers.builders import pods, virtual, workload
from trimtab.model.json import wire
from trimtab.model.metrics_api import DescribedObject
from trimtab.model.quantity import Quantity
from trimtab_lab.controllers.kinds import LabPod, LabPodMeta
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.load.curves import Moment, Recorded, constant
from trimtab_lab.load.plan import (
    HotShard,
    Leader,
    LoadPlan,
    MemoryLoad,
    MetricCurve,
    PlanError,
    Queue,
    WorkloadLoad,
    parse_plan,
    read_plan,
    read_points,
)
from trimtab_lab.load.usage import Backlog, load_shares, noise

START = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday


def at(hours: float = 0.0, *, seconds: float = 0.0, day: int = 0) -> Moment:
    since = day * 86400 + hours * 3600 + seconds
    return Moment(since, datetime.fromtimestamp(START.timestamp() + since, UTC))


def curve(text: str):
    plan = parse_plan(f"apiVersion: lab.trimtab.dev/v1\nkind: LoadPlan\nseries: [{{name: x, value: {text}}}]")
    return plan.series[0].value


@pytest.mark.parametrize(
    ("text", "moment", "want"),
    [
        pytest.param("{type: constant, value: 250m}", at(5), 0.25, id="constant"),
        pytest.param(
            '{type: ramp, start: "1", end: "3", lasts: 100}', at(seconds=50), 2.0, id="half way up a ramp"
        ),
        pytest.param(
            '{type: ramp, start: "1", end: "3", lasts: 100}', at(seconds=500), 3.0, id="after the ramp"
        ),
        pytest.param('{type: daily, low: "1", high: "5", peakHour: 14}', at(14), 5.0, id="the peak of a day"),
        pytest.param(
            '{type: daily, low: "1", high: "5", peakHour: 14}', at(2), 1.0, id="the middle of the night"
        ),
        pytest.param(
            '{type: daily, low: "1", high: "5", peakHour: 14, weekend: 0.5}',
            at(14, day=5),
            2.5,
            id="Saturday",
        ),
        pytest.param(
            '{type: spikes, base: "1", peak: "9", every: 60, lasts: 5}', at(seconds=63), 9.0, id="in a spike"
        ),
        pytest.param(
            '{type: spikes, base: "1", peak: "9", every: 60, lasts: 5}',
            at(seconds=70),
            1.0,
            id="between spikes",
        ),
        pytest.param(
            '{type: steps, steps: [{at: 0, value: "1"}, {at: 60, value: "7"}]}',
            at(seconds=60),
            7.0,
            id="on a step",
        ),
        pytest.param(
            "{type: recorded, points: [[0, 1], [10, 3]]}", at(seconds=5), 2.0, id="between recorded points"
        ),
        pytest.param(
            "{type: recorded, points: [[0, 1], [10, 3]], repeats: true}",
            at(seconds=25),
            2.0,
            id="a recording repeats",
        ),
        pytest.param(
            "{type: recorded, points: [[0, 1], [10, 3]]}", at(seconds=99), 3.0, id="after the recording"
        ),
    ],
)
def test_curves(text, moment, want):
    assert curve(text).at(moment) == pytest.approx(want)


def test_a_plan_says_what_is_wrong_with_it():
    with pytest.raises(PlanError, match=r"apiVersion: lab\.trimtab\.dev/v1"):
        parse_plan("kind: LoadPlan")
    with pytest.raises(PlanError, match=r"workloads\[0\]"):
        parse_plan(
            "apiVersion: lab.trimtab.dev/v1\nkind: LoadPlan\nworkloads: [{name: web, cpu: {type: wobble}}]"
        )
    with pytest.raises(PlanError, match="CSV line 3"):
        read_points(["time,value", "1,2", "x,3"], "time", "value")


def test_a_recording_is_read_from_the_file_beside_the_plan(tmp_path):
    (tmp_path / "day.csv").write_text("t,users\n10,4\n0,2\n")
    path = tmp_path / "plan.yaml"
    path.write_text(
        "apiVersion: lab.trimtab.dev/v1\nkind: LoadPlan\nworkloads:\n"
        "- {name: web, cpu: {type: recorded, file: day.csv, timeColumn: t, valueColumn: users}}\n"
    )
    cpu = read_plan(path).workloads[0].cpu
    assert isinstance(cpu, Recorded)
    assert cpu.points == ((0.0, 2.0), (10.0, 4.0))
    path.write_text(path.read_text().replace("day.csv", "../day.csv"))
    with pytest.raises(PlanError, match="beside the plan"):
        read_plan(path)


def test_a_plan_survives_the_way_to_json_and_back():
    plan = LoadPlan(
        seed=3,
        workloads=(
            WorkloadLoad(
                name="web",
                cpu=constant("2"),
                share=HotShard(ordinal=1),
                memory=MemoryLoad(total=constant("1Gi")),
            ),
            WorkloadLoad(name="q", queue=Queue(metric="n", arrivals=constant("2"), rate=Quantity.parse("1"))),
        ),
    )
    text = wire.encode({**wire.to_builtins(plan), "apiVersion": plan.api_version, "kind": plan.kind}).decode()
    assert parse_plan(text) == plan


def member(name, **labels):
    return LabPod(metadata=LabPodMeta(name=name, namespace="default", labels=labels))


def test_the_leader_gets_its_share_and_the_others_the_rest():
    crew = [member("a"), member("b", role="leader"), member("c")]
    assert load_shares(Leader(share=0.8), crew) == pytest.approx([0.1, 0.8, 0.1])
    assert load_shares(Leader(share=0.8, lease="lead"), crew, lambda _ns, _name: "c_123") == pytest.approx(
        [0.1, 0.1, 0.8]
    )
    assert load_shares(Leader(label="none"), crew) == pytest.approx([1 / 3] * 3)


def test_a_hot_shard_is_found_by_its_ordinal_not_by_the_alphabet():
    crew = [member(f"db-{number}") for number in (0, 1, 10, 2)]
    assert load_shares(HotShard(ordinal=2, weight=7.0), crew) == pytest.approx([0.1, 0.1, 0.1, 0.7])


def test_noise_depends_on_nothing_but_its_arguments():
    drawn = [noise(1, 77, tick) for tick in range(1000)]
    assert drawn == [noise(1, 77, tick) for tick in range(1000)]
    assert all(-1 <= value <= 1 for value in drawn)
    assert abs(sum(drawn)) < 60
    assert drawn != [noise(2, 77, tick) for tick in range(1000)]


def test_a_backlog_grows_while_too_little_is_done_and_empties_afterwards():
    backlog = Backlog(0.0, since=0.0)
    backlog.advance(60, lambda _t: 10.0, 5.0)
    assert backlog.items == 300.0
    backlog.advance(120, lambda _t: 0.0, 10.0)
    assert backlog.items == 0.0
    assert backlog.done_per_second == 0.0


def test_it_does_not_matter_how_often_a_backlog_is_asked():
    often, once = Backlog(5.0, 0.0), Backlog(5.0, 0.0)
    for tick in range(1, 1001):
        often.advance(tick * 0.1, lambda t: t % 7, 3.0)
    once.advance(100.0, lambda t: t % 7, 3.0)
    assert often.items == pytest.approx(once.items)


def queue_plan():
    queue = Queue(
        metric="queue_length",
        labels={"queue": "mail"},
        arrivals=constant("10"),
        rate=Quantity.parse("4"),
        cpu_per_item=Quantity.parse("50m"),
    )
    return LoadPlan(workloads=(WorkloadLoad(name="worker", queue=queue),))


@virtual(DataPlaneConfig(plan=queue_plan()))
async def test_a_queue_grows_until_there_are_enough_workers(cluster):
    await cluster.apply(workload("Deployment", "worker", replicas=2))
    await cluster.clock.sleep(121)
    grown = cluster.values.external("default", "queue_length")[0]
    assert int(grown.value) == pytest.approx(240, abs=40)
    assert grown.labels == {"queue": "mail"}
    used = cluster.side.kubelet.samples.pod_usage(
        "default", (await pods(cluster))[0].metadata.name, cluster.clock.now()
    )
    assert used.containers["app"]["cpu"] == "200m"
    await cluster.apply(workload("Deployment", "worker", replicas=5))
    await cluster.clock.sleep(120)
    assert cluster.values.external("default", "queue_length")[0].value == "0"


@virtual(DataPlaneConfig(plan=queue_plan()))
async def test_load_can_be_turned_off_while_it_runs(cluster):
    await cluster.apply(workload("Deployment", "worker", replicas=1))
    await cluster.clock.sleep(60)
    cluster.load.scale("worker", 0.0)
    await cluster.clock.sleep(300)
    assert cluster.values.external("default", "queue_length")[0].value == "0"
    with pytest.raises(KeyError, match="there are: worker"):
        cluster.load.scale("nobody", 2)


@virtual()
async def test_a_total_is_divided_over_the_ready_pods(cluster):
    cluster.load.set(WorkloadLoad(name="web", cpu=constant("900m")))
    await cluster.apply(workload("Deployment", "web", replicas=3))
    await cluster.settle()
    assert await usage(cluster) == ["300m"] * 3
    cluster.load.scale("web", 2)
    await cluster.apply(workload("Deployment", "web", replicas=2))
    await cluster.settle()
    assert await usage(cluster) == ["900m"] * 2


async def usage(cluster):
    found = []
    for pod in await pods(cluster):
        sample = cluster.side.kubelet.samples.pod_usage("default", pod.metadata.name, cluster.clock.now())
        found.append(sample.containers["app"]["cpu"])
    return found


@virtual()
async def test_cpu_beyond_the_limit_is_not_given(cluster):
    manifest = workload("Deployment", "web", replicas=1)
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "200m"}
    await cluster.apply(manifest)
    cluster.use_cpu(web="1")
    await cluster.settle()
    assert await usage(cluster) == ["200m"]


@virtual()
async def test_memory_that_leaks_starts_over_with_the_container(cluster):
    leak = MemoryLoad(base=Quantity.parse("10Mi"), growth_per_hour=Quantity.parse("120Mi"))
    cluster.load.set(WorkloadLoad(name="web", memory=leak))
    manifest = workload("Deployment", "web", replicas=1)
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "100Mi"}}
    await cluster.apply(manifest)
    await cluster.clock.sleep(3600)
    status = (await pods(cluster))[0].status.container_statuses[0]
    assert status.restart_count == 1
    ended = status.last_state.terminated
    assert ended is not None
    assert ended.reason == "OOMKilled"


@virtual(
    DataPlaneConfig(
        plan=LoadPlan(series=(MetricCurve(name="rps", value=constant("12"), labels={"zone": "a"}),))
    )
)
async def test_series_are_served_as_external_metrics(cluster):
    await cluster.clock.sleep(20)
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/rps"
    answer = await cluster.client.read("reading rps", path, dict, query=[("labelSelector", "zone=a")])
    assert [item["value"] for item in answer["items"]] == ["12"]
    answer = await cluster.client.read("reading rps", path, dict, query=[("labelSelector", "zone=b")])
    assert answer["items"] == []


@virtual(
    DataPlaneConfig(
        plan=LoadPlan(workloads=(WorkloadLoad(name="chat", metrics={"open_websockets": constant("900")}),))
    )
)
async def test_a_metric_of_pods_is_divided_over_those_that_are_there(cluster):
    """users.md, B-3: an HPA with a metric of type Pods works on the lab."""
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/open_websockets"

    async def values(app):
        query = [("labelSelector", f"app={app}")]
        answer = await cluster.client.read("reading open_websockets", path, dict, query=query)
        return [item["value"] for item in answer["items"]]

    await cluster.apply(workload("Deployment", "chat", replicas=3), workload("Deployment", "web", replicas=1))
    await cluster.settle()
    assert await values("chat") == ["300"] * 3
    assert await values("web") == []
    await cluster.apply(workload("Deployment", "chat", replicas=2))
    await cluster.settle()
    cluster.load.scale("chat", 2)
    cluster.measure()
    assert await values("chat") == ["900"] * 2


@virtual(
    DataPlaneConfig(
        plan=LoadPlan(
            series=(
                MetricCurve(
                    name="length",
                    value=constant("3"),
                    object=DescribedObject(
                        api_version="apps/v1", kind="StatefulSet", namespace="default", name="broker"
                    ),
                ),
            )
        )
    )
)
async def test_a_series_with_an_object_is_a_metric_of_that_object(cluster):
    await cluster.clock.sleep(20)
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/statefulsets.apps/broker/length"
    answer = await cluster.client.read("reading length", path, dict)
    assert [item["value"] for item in answer["items"]] == ["3"]


def test_the_plan_in_the_documentation_is_a_plan():
    text = (Path(__file__).parents[4] / "docs" / "load-models.md").read_text(encoding="utf-8")
    plan = parse_plan(text.split("```yaml\n")[1].split("```")[0])
    assert [load.name for load in plan.workloads] == ["web", "db", "cache", "chat", "worker"]
    assert isinstance(plan.series[2].value, Recorded)


@virtual()
async def test_an_annotation_sets_the_load_of_a_workload_that_no_plan_names(cluster):
    """The load is divided over the ready pods, and follows a changed annotation."""
    web = workload("Deployment", "web", annotations={"lab.trimtab.dev/cpu": "300m"}, replicas=3)
    await cluster.apply(web)
    await cluster.settle()
    assert cluster.load.names == ["default/web"]
    assert await cpu_of(cluster, "web") == [100, 100, 100]
    web["spec"]["template"]["metadata"]["annotations"] = {"lab.trimtab.dev/cpu": "600m"}
    await cluster.apply(web)
    await cluster.settle()
    assert await cpu_of(cluster, "web") == [200, 200, 200]


@virtual()
async def test_a_plan_wins_over_an_annotation_and_nonsense_changes_nothing(cluster):
    cluster.load.set(WorkloadLoad(name="web", cpu=constant("30m")))
    for name, text in (("web", "300m"), ("api", "much")):
        await cluster.apply(
            workload("Deployment", name, annotations={"lab.trimtab.dev/cpu": text}, replicas=1)
        )
    await cluster.settle()
    assert cluster.load.names == ["web"]
    assert await cpu_of(cluster, "web") == [30]


async def cpu_of(cluster, name):
    """Return the millicores of each pod of a Deployment, as its metrics show them."""
    source, now = cluster.side.kubelet.samples, cluster.clock.now()
    usages = [source.pod_usage("default", pod.metadata.name, now) for pod in await pods(cluster, name)]
    return [Quantity.parse(usage.containers["app"]["cpu"]).milli_value() for usage in usages]
