"""S11 and S14: whether the running adapter lets a user see a metric, and that no spelling of a path gets around it."""

import pytest

from tests.adapter.conftest import CUSTOM, EXTERNAL, HPA

QUEUE = f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/queue_length"


def attributes(cluster):
    return cluster.access_reviews[-1]["resourceAttributes"]


async def test_a_user_without_the_right_is_told_what_is_missing(proxy, cluster):
    cluster.may = lambda spec: False
    status, body = await proxy.get(QUEUE, HPA)
    assert (status, body["reason"]) == (403, "Forbidden")
    assert 'User "hpa" cannot get resource "statefulsets.apps/queue_length"' in body["message"]
    assert 'in the namespace "default"' in body["message"]


async def test_a_refused_external_metric_is_named_without_an_empty_object(proxy, cluster):
    """The message began with `spend "" is forbidden`."""
    cluster.may = lambda spec: False
    status, body = await proxy.get(f"{EXTERNAL}/namespaces/default/spend", HPA)
    assert status == 403
    assert body["message"] == (
        'spend.external.metrics.k8s.io is forbidden: User "hpa" cannot list resource "spend" in API group '
        '"external.metrics.k8s.io" in the namespace "default"'
    )


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(
            "/namespaces/default/pods/*/http_requests",
            {
                "verb": "get",
                "namespace": "default",
                "resource": "pods",
                "name": "*",
                "subresource": "http_requests",
            },
            id="all pods are a get of the name *",
        ),
        pytest.param(
            "/namespaces/default/metrics/queued",
            {
                "verb": "get",
                "namespace": "default",
                "resource": "metrics",
                "name": "queued",
                "subresource": "",
            },
            id="a namespace's metric is the resource metrics in it",
        ),
        pytest.param(
            "/nodes/n1/temperature",
            {"verb": "get", "namespace": "", "resource": "nodes", "name": "n1", "subresource": "temperature"},
            id="a cluster-scoped object has no namespace",
        ),
    ],
)
async def test_the_cluster_is_asked_what_kube_apiserver_would_ask(proxy, cluster, path, want):
    await proxy.get(f"{CUSTOM}{path}", HPA)
    assert attributes(cluster) == {"group": "custom.metrics.k8s.io", "version": "v1beta2", **want}


async def test_an_external_metric_is_a_list_of_the_resource_of_its_name(proxy, cluster):
    await proxy.get(f"{EXTERNAL}/namespaces/default/sqs_messages", HPA)
    assert (attributes(cluster)["verb"], attributes(cluster)["resource"]) == ("list", "sqs_messages")


async def test_each_namespace_and_metric_is_asked_for_once_while_the_answer_is_fresh(proxy, cluster):
    for _ in range(3):
        await proxy.get(QUEUE, HPA)
    await proxy.get(QUEUE.replace("default", "other"), HPA)
    await proxy.get(QUEUE, {**HPA, "X-Remote-User": "ann"})
    assert [spec["user"] for spec in cluster.access_reviews] == ["hpa", "hpa", "ann"]


async def test_a_review_api_that_is_down_is_a_503_and_never_a_yes(proxy, cluster):
    cluster.reviews_fail = True
    assert (await proxy.get(QUEUE, HPA))[0] == 503
    cluster.reviews_fail = False
    assert (await proxy.get(QUEUE, HPA))[0] == 200


@pytest.mark.parametrize("path", ["/metrics", "/apis", "/apis/custom.metrics.k8s.io/v1beta2", "/openapi/v2"])
async def test_documents_need_a_name_and_a_right(proxy, stranger, cluster, path):
    assert (await stranger.get(path))[0] == 401
    assert (await proxy.get(path, HPA))[0] == 200
    assert cluster.access_reviews[-1]["nonResourceAttributes"] == {"verb": "get", "path": path}
    cluster.may = lambda spec: False
    assert (await proxy.get(path, {**HPA, "X-Remote-User": "other"}))[0] == 403


@pytest.mark.parametrize(
    "tail",
    [
        "/namespaces/default/statefulsets.apps/foo/m/../../other",
        "/namespaces/default/../other/statefulsets.apps/foo/queue_length",
        "/namespaces/default/%2e%2e/other/statefulsets.apps/foo/queue_length",
        "/namespaces/other%2fstatefulsets.apps%2ffoo/metrics/queue_length",
        "/namespaces/default/statefulsets.apps/a%2fb/queue_length",
        "/namespaces/default/statefulsets.apps/a%252fb/queue_length",
        "/namespaces/default/statefulsets.apps/foo%00/queue_length",
        "/namespaces/default/statefulsets.apps/foo/queue_length%0a",
        "/namespaces/default/statefulsets.apps//queue_length",
        "/namespaces/default/statefulsets.apps/./queue_length",
        "/namespaces/DEFAULT/statefulsets.apps/foo/queue_length",
        "/namespaces/*/statefulsets.apps/foo/queue_length",
        "/namespaces/default,other/statefulsets.apps/foo/queue_length",
        "/namespaces/default/Stateful Sets/foo/queue_length".replace(" ", "%20"),
        "/namespaces/default/statefulsets.apps/%ff/queue_length",
        "/namespaces/default/statefulsets.apps/foo/queue_length/more",
        "/namespaces/default/" + "p" * 300 + "/foo/queue_length",
        "/../../external.metrics.k8s.io/v1beta1/namespaces/default/sqs_messages",
        "\\namespaces\\default\\pods\\x\\y".replace("\\", "%5c"),
        "/namespaces/default/http:%2f%2f169.254.169.254/foo/queue_length",
    ],
)
async def test_no_spelling_of_a_path_reaches_anything(proxy, cluster, tail):
    status, body = await proxy.get(CUSTOM + tail, HPA)
    assert status in (404, 422)
    assert body["kind"] == "Status"
    assert not any("other" in str(spec) for spec in cluster.access_reviews)


async def test_a_selector_cannot_lead_out_of_the_namespace_that_was_authorised(proxy):
    path = f"{EXTERNAL}/namespaces/elsewhere/sqs_messages?labelSelector=namespace%3Ddefault"
    assert (await proxy.get(path, HPA))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_only_reading_is_served(proxy, method):
    assert (await proxy.get(QUEUE, HPA, method))[0] == 405
