"""The metrics APIs are asked as the specification says, once per question, within bounds."""

import asyncio

import pytest

from tests.unit.metrics.fake_metrics import LOOK_UP, USAGE_LOOK_UP, Api, run
from trimtab.metrics.queries import (
    CUSTOM_GROUP,
    EXTERNAL_GROUP,
    RESOURCE_GROUP,
    ExternalMetric,
    MetricsError,
    ObjectMetric,
    PodsMetric,
    PodUsage,
)
from trimtab.metrics.versions import choose


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(PodUsage("shop"), "/apis/metrics.k8s.io/v1/namespaces/shop/pods", id="one namespace"),
        pytest.param(PodUsage(), "/apis/metrics.k8s.io/v1/pods", id="all namespaces"),
        pytest.param(
            ExternalMetric("shop", "queue", "a=b,c in (x,y)"),
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue",
            id="external",
        ),
        pytest.param(
            ObjectMetric("shop", "ingresses.networking.k8s.io", "main", "hits", "verb=GET"),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/main/hits",
            id="object",
        ),
        pytest.param(
            ObjectMetric("shop", "namespaces", "other", "hits"),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/hits",
            id="a Namespace object stays in the HPA's own namespace",
        ),
        pytest.param(
            PodsMetric("shop", "hits", "app=web", "verb=GET"),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/hits",
            id="pods",
        ),
    ],
)
def test_each_question_goes_to_its_path(query, want):
    versions = {CUSTOM_GROUP: "v1beta2", EXTERNAL_GROUP: "v1beta1", RESOURCE_GROUP: "v1"}
    assert query.path(versions[query.group]) == want


def test_the_metric_selector_and_the_pod_selector_are_two_parameters():
    assert PodsMetric("shop", "hits", "app=web", "verb=GET").parameters() == [
        ("labelSelector", "app=web"),
        ("metricLabelSelector", "verb=GET"),
    ]


@pytest.mark.parametrize("metric", ["", ".", "..", "a/b", "a%2fb"])
def test_a_metric_name_cannot_climb_out_of_its_path(metric):
    with pytest.raises(ValueError, match="metrics path"):
        ExternalMetric("shop", metric).path()


def usage_of(*pods):
    return {"items": [{"metadata": {"namespace": place, "name": name}} for place, name in pods]}


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(PodUsage("shop"), [("shop", "web"), ("", "old")], id="of one namespace, its own only"),
        pytest.param(
            PodUsage(),
            [("shop", "web"), ("elsewhere", "web"), ("", "old"), ("elsewhere", "db")],
            id="of all namespaces, everything",
        ),
    ],
)
def test_usage_of_pods_of_another_namespace_is_not_read(query, want):
    """Every reader of usage goes through here: the pods of one namespace were found by their names alone."""
    api = Api()
    api.answer = lambda path: usage_of(
        ("shop", "web"), ("elsewhere", "web"), ("", "old"), ("elsewhere", "db")
    )

    async def act(reader, clock):
        answer = await reader.pod_usage(query)
        return [(item.metadata.namespace, item.metadata.name) for item in answer.items]

    assert run(api, act) == want


def test_equal_questions_share_one_flight():
    api = Api()

    async def act(reader, clock):
        await asyncio.gather(*(reader.pod_usage(PodUsage("shop")) for _ in range(10)))

    run(api, act)
    assert api.asked == [USAGE_LOOK_UP, "/apis/metrics.k8s.io/v1/namespaces/shop/pods"]


def test_an_upgraded_adapter_is_noticed_within_one_period():
    api = Api()
    api.versions = ["v1beta1"]
    query = ObjectMetric("shop", "pods", "a", "hits")

    async def act(reader, clock):
        await reader.custom(query)
        api.versions = ["v1beta2", "v1beta1"]
        await clock.sleep(15)
        await reader.custom(query)

    run(api, act)
    assert [path.split("/")[3] for path in api.asked if "namespaces" in path] == ["v1beta1", "v1beta2"]


def test_all_questions_of_a_round_wait_for_the_one_look_up_of_the_version():
    """Those that came second took the version of the last period, and failed where it was no longer served."""
    api = Api()
    queries = [ObjectMetric("shop", "pods", name, "hits") for name in "abc"]

    async def act(reader, clock):
        await asyncio.gather(*map(reader.custom, queries))
        api.versions = ["v1beta1"]
        await clock.sleep(15)
        await asyncio.gather(*map(reader.custom, queries))

    run(api, act)
    assert [path.split("/")[3] for path in api.asked if "namespaces" in path] == ["v1beta2"] * 3 + [
        "v1beta1"
    ] * 3
    assert api.asked.count("/apis/custom.metrics.k8s.io") == 2


@pytest.mark.parametrize(
    ("trouble", "tries"),
    [
        pytest.param(404, 1, id="not served"),
        pytest.param(503, 4, id="unavailable, which the client tries again"),
        pytest.param({"versions": [{"version": "v7"}], "preferredVersion": {}}, 1, id="no version we know"),
    ],
)
def test_the_absence_of_the_custom_metrics_api_is_remembered_for_a_period(trouble, tries):
    """N21: without a version every question looked it up anew, one after the other: 1,000 HPAs, 1,000 requests."""
    api = Api()
    api.look_up = trouble
    queries = [ObjectMetric("shop", "pods", f"p{number}", "hits") for number in range(50)]

    async def act(reader, clock):
        for _ in range(4):
            answers = await asyncio.gather(*map(reader.custom, queries), return_exceptions=True)
            assert {type(answer) for answer in answers} == {MetricsError}
            assert len({str(answer) for answer in answers}) == 1
            await clock.sleep(15)
        assert api.asked == [LOOK_UP] * 4 * tries
        api.look_up = None
        await reader.custom(queries[0])  # served at last: noticed within a period

    run(api, act)


@pytest.mark.parametrize(
    ("preferred", "served", "want"),
    [
        ("v1beta1", ["v1beta1", "v1beta2"], "v1beta1"),
        ("v9", ["v9", "v1beta1"], "v1beta1"),
        ("v9", ["v9"], None),
    ],
)
def test_the_preferred_version_is_taken_if_known(preferred, served, want):
    assert choose(preferred, served) == want


def test_a_hanging_source_delays_nobody_else_and_is_asked_once_at_a_time():
    api = Api()
    api.answer = lambda path: "hang" if path.endswith("/stuck") else {"items": []}

    async def act(reader, clock):
        stuck = [asyncio.ensure_future(reader.external(ExternalMetric("shop", "stuck"))) for _ in range(5)]
        await reader.external(ExternalMetric("shop", "healthy"))
        healthy_at = clock.monotonic()
        results = await asyncio.gather(*stuck, return_exceptions=True)
        return healthy_at, results

    healthy_at, results = run(api, act, deadline=10)
    assert healthy_at == 0
    assert {str(error) for error in results} == {"external.metrics.k8s.io did not answer within 10 s"}
    assert sum("stuck" in path for path in api.asked) == 1


def test_one_asker_giving_up_does_not_take_the_answer_from_the_others():
    api = Api()
    api.answer = lambda path: "hang"

    async def act(reader, clock):
        first = asyncio.ensure_future(reader.pod_usage(PodUsage("shop")))
        second = asyncio.ensure_future(reader.pod_usage(PodUsage("shop")))
        await clock.sleep(1)
        first.cancel()
        api.hang.set()
        with pytest.raises(MetricsError):
            await second  # the body "hang" is no list: an answer came, and it was for the second asker

    run(api, act)


def test_the_servers_own_words_are_in_the_error():
    api = Api()
    api.answer = lambda path: 503

    async def act(reader, clock):
        await reader.external(ExternalMetric("shop", "queue"))

    with pytest.raises(MetricsError, match="it is down"):
        run(api, act)


def test_without_a_custom_metrics_api_the_error_says_so():
    api = Api()
    api.versions = ["v7"]

    async def act(reader, clock):
        await reader.custom(ObjectMetric("shop", "pods", "a", "hits"))

    with pytest.raises(MetricsError, match=r"no custom metrics API \(custom.metrics.k8s.io\) registered"):
        run(api, act)
