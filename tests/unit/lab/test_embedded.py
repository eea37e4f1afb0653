"""The embedded cluster as a whole: it repeats itself, it settles, it serves metrics."""

import asyncio

import pytest

from tests.unit.lab.controllers.builders import names, play, pods, virtual, workload
from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.cache.store import CacheEvent
from trimtab.model.json import wire
from trimtab.model.metrics_api import DescribedObject
from trimtab.model.quantity import Quantity
from trimtab_lab.controllers.kinds import PODS
from trimtab_lab.data_plane import DataPlaneConfig, NotSettledError
from trimtab_lab.embedded import EmbeddedCluster
from trimtab_lab.load.curves import Daily
from trimtab_lab.load.plan import LoadPlan, WorkloadLoad
from trimtab_lab.metrics.apis import MetricsApis
from trimtab_lab.metrics.server import API_SERVICES, MetricsApp
from trimtab_lab.metrics.values import MetricValues
from trimtab_lab.nodes.caches import WriteThroughCache

BUSY = DataPlaneConfig(
    plan=LoadPlan(
        seed=5,
        workloads=(
            WorkloadLoad(name="web", cpu=Daily(low=Quantity.parse("1"), high=Quantity.parse("4")), noise=0.3),
        ),
    )
)


async def a_busy_hour(cluster):
    await cluster.apply(
        workload("Deployment", "web", replicas=4),
        workload("StatefulSet", "db", replicas=2),
        workload("DaemonSet", "agent"),
        workload("Job", "batch", completions=3, parallelism=2, pod={"restartPolicy": "Never"}),
    )
    await cluster.clock.sleep(600)
    await cluster.apply(workload("Deployment", "web", image="web:2", replicas=6))
    await cluster.clock.sleep(600)
    await cluster.delete("Pod", (await names(cluster, "web"))[0])
    await cluster.clock.sleep(2400)
    now = cluster.clock.now()
    used = [
        cluster.side.kubelet.samples.pod_usage("default", name, now) for name in await names(cluster, "web")
    ]
    return cluster.dump(), [sample.containers for sample in used]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    first, second = play(a_busy_hour, BUSY), play(a_busy_hour, BUSY)
    assert first == second
    assert b'"web:2"' in first[0]
    assert play(a_busy_hour, BUSY, seed=2)[0] != first[0]


@virtual()
async def test_metrics_are_served_for_running_pods_in_both_versions(cluster):
    await cluster.apply(workload("Deployment", "web", replicas=2))
    await cluster.settle()
    cluster.use_cpu(web="40m")
    group = await cluster.client.read("discovering", "/apis/metrics.k8s.io", dict)
    assert [listed["version"] for listed in group["versions"]] == ["v1", "v1beta1"]
    for version in ("v1", "v1beta1"):
        root = f"/apis/metrics.k8s.io/{version}"
        listed = await cluster.client.read("discovering", root, dict)
        assert [(found["name"], found["kind"]) for found in listed["resources"]] == [
            ("nodes", "NodeMetrics"),
            ("pods", "PodMetrics"),
        ]
        selector = [("labelSelector", "app=web")]
        answer = await cluster.client.read(
            "reading metrics", f"{root}/namespaces/default/pods", dict, query=selector
        )
        assert [item["containers"][0]["usage"]["cpu"] for item in answer["items"]] == ["40m", "40m"]
        assert {found["apiVersion"] for found in (answer, *answer["items"])} == {f"metrics.k8s.io/{version}"}
        nodes = await cluster.client.read("reading metrics", f"{root}/nodes", dict)
        assert [item["usage"]["cpu"] for item in nodes["items"]] == ["40m", "40m", "0"]
        service = await cluster.client.get(API_SERVICES, f"{version}.metrics.k8s.io")
        assert service["status"]["conditions"][0]["status"] == "True"


@virtual()
async def test_what_cannot_settle_says_so(cluster):
    await cluster.apply(
        workload("Deployment", "web", replicas=1, annotations={"lab.trimtab.dev/start-seconds": "9999"})
    )
    with pytest.raises(NotSettledError, match="pods"):
        await cluster.settle(60)


@virtual()
async def test_a_new_namespace_is_made_on_the_way(cluster):
    manifest = workload("Deployment", "web", replicas=1)
    manifest["metadata"]["namespace"] = "shop"
    await cluster.apply(manifest)
    await cluster.settle()
    assert await cluster.replicas("web", "shop") == 1
    assert [pod.metadata.namespace for pod in await pods(cluster)] == ["shop"]


def test_a_mirror_shows_our_writes_before_the_cache_does():
    clock = VirtualClock()

    async def main():
        async with EmbeddedCluster(clock, seed=1) as cluster:
            behind = WriteThroughCache(
                cluster.client, PODS
            )  # its informer is not running, so it never catches up
            body = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "one", "labels": {"app": "x"}},
                "spec": {"containers": [{"name": "app", "image": "x"}]},
            }
            behind.informer._version = "1"
            made = await behind.create(body, "default")
            assert behind.get("one", "default") == made
            assert behind.all("default") == [made]

    clock.run(main())


def test_a_mirror_forgets_its_correction_once_the_cache_has_caught_up():
    clock = VirtualClock()

    async def main():
        async with EmbeddedCluster(clock, seed=1) as cluster:
            mirror = cluster.side.caches.pods
            seen = []
            mirror.subscribe(lambda delta: seen.append(delta.change))
            body = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "one"},
                "spec": {"containers": [{"name": "app", "image": "x"}]},
            }
            await mirror.create(body, "default")
            await cluster.settle()
            made = mirror.get("one", "default")
            assert made is not None
            assert made.status.phase == "Running"
            await cluster.delete("Pod", "one")
            await cluster.clock.sleep(60)
            assert mirror.get("one", "default") is None
            assert mirror._corrections == {}
            assert seen[-1] is CacheEvent.DELETED

    clock.run(main())


def call(app, method, path, body=b"", query=b""):
    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": query}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], wire.decode(sent[1]["body"], dict)


def metrics_app():
    values, clock = MetricValues(), SystemClock()
    return MetricsApp(MetricsApis(clock.now, values), values), values, clock.now()


def test_values_can_be_set_and_read_over_http():
    app, values, _now = metrics_app()
    sample = {"name": "queue", "value": "7", "timestamp": "2026-01-01T00:00:00Z", "labels": {"queue": "a"}}
    status, answer = call(app, "PUT", "/values", wire.encode({"values": [sample]}))
    assert (status, answer) == (200, {"values": [sample]})
    assert values.external("any", "queue")[0].value == "7"
    assert call(app, "PUT", "/values", b'{"values": [{"name": 1}]}')[0] == 400
    assert call(app, "DELETE", "/values")[0] == 405


@pytest.mark.parametrize("name", ["queue", "status", "finalize", "namespaces"])
def test_an_external_metric_may_have_any_name(name):
    """`status` was taken for the status of the namespace."""
    app, _values, _now = metrics_app()
    sample = {"name": name, "value": "7", "timestamp": "2026-01-01T00:00:00Z"}
    call(app, "PUT", "/values", wire.encode({"values": [sample]}))
    status, answer = call(app, "GET", f"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{name}")
    assert (status, [item["value"] for item in answer["items"]]) == (200, ["7"])


def test_custom_metrics_are_found_by_object_and_label():
    app, values, now = metrics_app()
    for name, value in (("web-1", 10), ("web-2", 0.5)):
        pod = DescribedObject(kind="Pod", namespace="shop", name=name, api_version="v1")
        values.set_custom("rps", value, now, described=pod, labels={"path": "/"})
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/rps"
    status, answer = call(app, "GET", path, query=b"metricLabelSelector=path%3D%2F")
    assert status == 400, "a slash is no valid label value"
    status, answer = call(app, "GET", path)
    assert (status, [item["value"] for item in answer["items"]]) == (200, ["10", "500m"])
    assert answer["items"][0]["metric"] == {"name": "rps"}
    assert call(app, "GET", path.replace("*", "web-9"))[0] == 404
    _, discovered = call(app, "GET", "/apis/custom.metrics.k8s.io/v1beta2")
    assert [resource["name"] for resource in discovered["resources"]] == ["pods/rps"]


def test_only_the_metrics_apis_are_served():
    app, _values, _now = metrics_app()
    assert call(app, "GET", "/api/v1/secrets")[0] == 404
    assert call(app, "POST", "/apis/metrics.k8s.io/v1beta1/pods")[0] == 405
    assert call(app, "GET", "/healthz")[0] == 200
