"""What the running adapter answers: both versions, selectors, discovery, mistakes."""

import pytest

from tests.adapter.conftest import CUSTOM, EXTERNAL, HPA

QUEUE = "/namespaces/default/statefulsets.apps/foo/queue_length"


async def values(proxy, path):
    status, body = await proxy.get(path, HPA)
    return [item["value"] for item in body["items"]] if status == 200 else status


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        ("queue%3Dsome-jobs", ["3"]),
        ("queue%3Dother-jobs", ["70"]),
        ("queue%20in%20(some-jobs,other-jobs)", ["73"]),
        ("queue%20notin%20(some-jobs)", ["70"]),
        ("queue%21%3Dother-jobs", ["3"]),
        ("queue", ["73"]),
        ("%21queue", 404),
        ("", ["73"]),
        ("queue%3Dnone", 404),
    ],
)
async def test_SPEC_G3_the_selector_tells_the_queues_apart(proxy, selector, want):
    assert await values(proxy, f"{CUSTOM}{QUEUE}?metricLabelSelector={selector}") == want


async def test_v1beta2_has_the_metric_with_its_selector(proxy):
    _, body = await proxy.get(f"{CUSTOM}{QUEUE}?metricLabelSelector=queue%3Dsome-jobs", HPA)
    assert (body["kind"], body["apiVersion"]) == ("MetricValueList", "custom.metrics.k8s.io/v1beta2")
    item = body["items"][0]
    assert item.pop("timestamp").endswith("Z")
    assert item == {
        "describedObject": {
            "kind": "StatefulSet",
            "namespace": "default",
            "name": "foo",
            "apiVersion": "apps/v1",
        },
        "metric": {"name": "queue_length", "selector": {"matchLabels": {"queue": "some-jobs"}}},
        "value": "3",
    }


async def test_v1beta1_has_the_name_and_the_selector_beside_each_other(proxy):
    _, body = await proxy.get(f"{CUSTOM.replace('v1beta2', 'v1beta1')}{QUEUE}?metricLabelSelector=queue", HPA)
    item = body["items"][0]
    assert body["apiVersion"] == "custom.metrics.k8s.io/v1beta1"
    assert (item["metricName"], item["value"]) == ("queue_length", "73")
    assert item["selector"] == {"matchExpressions": [{"key": "queue", "operator": "Exists"}]}
    assert "metric" not in item


async def test_an_absent_selector_is_written_as_null_in_both_versions(proxy):
    _, new = await proxy.get(f"{CUSTOM}{QUEUE}", HPA)
    _, old = await proxy.get(f"{CUSTOM.replace('v1beta2', 'v1beta1')}{QUEUE}", HPA)
    assert new["items"][0]["metric"] == {"name": "queue_length", "selector": None}
    assert old["items"][0]["selector"] is None


async def test_external_series_come_with_their_labels(proxy):
    _, body = await proxy.get(f"{EXTERNAL}/namespaces/default/sqs_messages?labelSelector=queue%3Dorders", HPA)
    assert (body["kind"], body["apiVersion"]) == (
        "ExternalMetricValueList",
        "external.metrics.k8s.io/v1beta1",
    )
    assert [(item["metricName"], item["metricLabels"], item["value"]) for item in body["items"]] == [
        ("sqs_messages", {"queue": "orders"}, "40")
    ]


async def test_external_series_that_no_selector_matches_are_an_empty_list(proxy):
    assert await values(proxy, f"{EXTERNAL}/namespaces/default/sqs_messages?labelSelector=queue%3Dnone") == []


async def test_an_unknown_metric_is_not_found(proxy):
    status, body = await proxy.get(f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/nothing", HPA)
    assert (status, body["reason"]) == (404, "NotFound")
    assert body["message"] == "the server could not find the metric nothing for statefulsets.apps foo"


async def test_discovery_lists_groups_versions_and_metrics(proxy):
    _, groups = await proxy.get("/apis", HPA)
    assert [group["name"] for group in groups["groups"]] == [
        "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
    ]
    _, group = await proxy.get("/apis/custom.metrics.k8s.io", HPA)
    assert group["preferredVersion"]["version"] == "v1beta2"
    _, custom = await proxy.get(CUSTOM, HPA)
    assert custom["groupVersion"] == "custom.metrics.k8s.io/v1beta2"
    assert [resource["name"] for resource in custom["resources"]] == ["statefulsets.apps/queue_length"]
    _, external = await proxy.get(EXTERNAL, HPA)
    assert [resource["name"] for resource in external["resources"]] == ["sqs_messages"]


async def test_aggregated_discovery_has_metrics_as_subresources(proxy):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    _, body = await proxy.get("/apis", {**HPA, "Accept": accept})
    assert body["kind"] == "APIGroupDiscoveryList"
    custom, external = body["items"]
    assert [one["version"] for one in custom["versions"]] == ["v1beta2", "v1beta1"]
    objects = custom["versions"][0]["resources"][0]
    assert (objects["resource"], objects["scope"]) == ("statefulsets.apps", "Namespaced")
    assert [one["subresource"] for one in objects["subresources"]] == ["queue_length"]
    assert [one["resource"] for one in external["versions"][0]["resources"]] == ["sqs_messages"]


@pytest.mark.parametrize(
    "query",
    [
        "metricLabelSelector=%3D%3D%3D",
        "metricLabelSelector=a%3Db&metricLabelSelector=c%3Dd",
        "metricLabelSelector=" + ",".join(f"k{n}%3Dv" for n in range(101)),
        "metricLabelSelector=%ff",
        "labelSelector=a%20in%20(",
    ],
)
async def test_a_query_that_cannot_be_read_is_a_bad_request(proxy, query):
    status, body = await proxy.get(f"{CUSTOM}{QUEUE}?{query}", HPA)
    assert (status, body["reason"]) == (400, "BadRequest")


async def test_probes_need_nobody(stranger):
    assert await stranger.get("/healthz") == (200, "ok")
    assert await stranger.get("/livez") == (200, "ok")
    assert await stranger.get("/readyz") == (200, "ok")
    _, text = await stranger.get("/readyz?verbose")
    assert "[+]front-proxy-trust ok\n[+]pods ok\n[+]source by-hand ok\nreadyz check passed\n" in text


async def test_the_metrics_tell_requests_and_health(proxy):
    await proxy.get(f"{CUSTOM}{QUEUE}", HPA)
    _, text = await proxy.get("/metrics", HPA)
    assert 'trimtab_adapter_requests_total{code="200",group="custom.metrics.k8s.io"} 1.0' in text
    assert 'trimtab_adapter_source_health{source="by-hand",state="ok",what="source by-hand"} 1.0' in text
