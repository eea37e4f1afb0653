"""Rules over a Prometheus that answers, lies, refuses, hangs and goes away."""

import re
import time
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.adapter.conftest import (
    CUSTOM,
    EXTERNAL,
    HPA,
    Caller,
    running,
    source_of,
    write,
    write_configuration,
)
from tests.adapter.fake_prometheus import FakePrometheus, answering, failing, hanging, listening, refusing

RULES = [
    {
        "name": "queues",
        "series": "queue_length",
        "resources": {"statefulsets.apps": "statefulset", "pods": "pod"},
    },
    {
        "name": "rates",
        "seriesPattern": "^(http_.+)_total$",
        "metric": "${1}_per_second",
        "resources": {"pods": "pod", "namespaces": "namespace"},
        "query": "sum by (<<groupBy>>) (rate(<<series>>{<<matchers>>}[2m]))",
        "window": "2m",
    },
    {
        "name": "jobs",
        "seriesPattern": "^(jobs.*)_(?:total|count)$",
        "metric": "${1}",
        "resources": {"pods": "pod", "namespaces": "namespace"},
    },
    {
        "name": "outside",
        "type": "external",
        "seriesPattern": "^(jobs.*)_(?:total|count)$",
        "metric": "${1}",
    },
    {"name": "backlog", "type": "external", "series": "sqs_visible", "metric": "sqs"},
    {"name": "everywhere", "type": "external", "series": "world", "namespaceLabel": ""},
    {"name": "widgets", "series": "widget_load", "resources": {"widgets.example.com": "widget"}},
    {"name": "no-matchers", "series": "m", "resources": {"pods": "pod"}, "query": "sum(<<series>>)"},
    {"name": "typo", "series": "m", "resorces": {"pods": "pod"}},
]
QUEUE = f"{CUSTOM}/namespaces/shop/statefulsets.apps/foo/queue_length"


@pytest.fixture
def prometheus():
    fake = FakePrometheus()
    fake.now = time.time
    fake.names = ["http_requests_total", "queue_length"]
    return fake


@pytest.fixture
async def over_prometheus(cluster, prometheus, tmp_path, front):
    write(tmp_path / "rules.yaml", "MetricRules", {"rules": RULES})
    async with listening(prometheus) as url:
        source = {"name": "prom", "prometheus": {"server": {"url": url}, "rulesFile": "rules.yaml"}}
        async with running(cluster, write_configuration(tmp_path, source)) as adapter:
            await source_of(adapter).discover()
            prometheus.queries.clear()
            caller = Caller(adapter, front.proxy)
            yield caller
            await caller.close()


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(
            "/namespaces/shop/statefulsets.apps/foo/queue_length?metricLabelSelector=queue%3Dsome-jobs",
            'sum by (statefulset) (queue_length{namespace="shop",statefulset="foo",queue="some-jobs"})',
            id="the seed's queue",
        ),
        pytest.param(
            "/namespaces/shop/statefulsets.apps/foo/queue_length"
            "?metricLabelSelector=queue%20in%20(a.b,c),tier%21%3Dx,env,%21old",
            'sum by (statefulset) (queue_length{namespace="shop",statefulset="foo",'
            'env!="",old="",queue=~"a\\\\.b|c",tier!~"x"})',
            id="every operator",
        ),
        pytest.param(
            "/namespaces/shop/pods/*/queue_length",
            'sum by (pod) (queue_length{namespace="shop",pod!=""})',
            id="all pods",
        ),
        pytest.param(
            "/namespaces/shop/pods/*/http_requests_per_second?labelSelector=app%3Dweb",
            'sum by (pod) (rate(http_requests_total{namespace="shop",pod=~"web\\\\-1|web\\\\-2"}[2m]))',
            id="the pods of a label query, by name",
        ),
        pytest.param(
            "/namespaces/shop/metrics/http_requests_per_second",
            'sum by (namespace) (rate(http_requests_total{namespace="shop"}[2m]))',
            id="a namespace's own metric",
        ),
    ],
)
async def test_a_question_becomes_this_promql(over_prometheus, prometheus, cluster, path, want):
    for pod in ("web-1", "web-2"):
        await cluster.put("pods", pod, "shop", labels={"app": "web"})
    await over_prometheus.get(CUSTOM + path, HPA)
    assert prometheus.queries == [want]


async def test_a_question_about_pods_that_do_not_exist_asks_nothing(over_prometheus, prometheus):
    path = f"{CUSTOM}/namespaces/shop/pods/*/queue_length?labelSelector=app%3Dnone"
    assert (await over_prometheus.get(path, HPA))[0] == 404
    assert prometheus.queries == []


async def test_values_keep_their_precision_and_their_window(over_prometheus, prometheus):
    prometheus.default = [({"pod": "web-1"}, "0.1234567"), ({"pod": "web-2"}, "1e3")]
    _, body = await over_prometheus.get(f"{CUSTOM}/namespaces/shop/pods/*/http_requests_per_second", HPA)
    found = [
        (item["describedObject"]["name"], item["value"], item["windowSeconds"]) for item in body["items"]
    ]
    assert found == [("web-1", "123456700n", 120), ("web-2", "1k", 120)]


async def test_external_series_stay_in_the_namespace_that_asks(over_prometheus, prometheus):
    prometheus.default = [({"__name__": "sqs_visible", "queue": "a"}, "4"), ({"queue": "b"}, "5")]
    path = f"{EXTERNAL}/namespaces/shop/sqs?labelSelector=namespace%3Dother"
    _, body = await over_prometheus.get(path, HPA)
    assert prometheus.queries == ['sqs_visible{namespace="shop",namespace="other"}']
    assert [(item["metricLabels"], item["value"]) for item in body["items"]] == [
        ({"queue": "a"}, "4"),
        ({"queue": "b"}, "5"),
    ]
    await over_prometheus.get(f"{EXTERNAL}/namespaces/shop/world", HPA)
    assert prometheus.queries[-1] == "world{}"


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e400", "9.3e18", "many"])
async def test_F34_a_value_that_is_no_amount_is_refused(over_prometheus, prometheus, value):
    prometheus.default = [({"statefulset": "foo"}, value)]
    status, body = await over_prometheus.get(QUEUE, HPA)
    assert (status, body["reason"]) == (503, "ServiceUnavailable")
    assert "rule prom/queues gives no usable value" in body["message"]


async def test_a_lasting_bad_value_is_logged_once(over_prometheus, prometheus, caplog):
    prometheus.default = [({"statefulset": "foo"}, "NaN")]
    for _ in range(3):
        await over_prometheus.get(QUEUE, HPA)
    assert caplog.text.count("rule prom/queues fails") == 1
    prometheus.default = [({"statefulset": "foo"}, "1")]
    await over_prometheus.get(QUEUE, HPA)
    _, text = await over_prometheus.get("/readyz?verbose")
    assert "[+]rule prom/queues ok" in text


async def test_one_pod_with_a_bad_value_is_left_out_and_one_bad_external_series_refuses_the_sum(
    over_prometheus, prometheus
):
    prometheus.default = [({"pod": "web-1"}, "5"), ({"pod": "web-2"}, "NaN")]
    _, body = await over_prometheus.get(f"{CUSTOM}/namespaces/shop/pods/*/queue_length", HPA)
    assert [item["describedObject"]["name"] for item in body["items"]] == ["web-1"]
    assert (await over_prometheus.get(f"{EXTERNAL}/namespaces/shop/sqs", HPA))[0] == 503


@pytest.mark.parametrize("shift", [-125, 61])
async def test_F38_F39_an_old_or_future_sample_is_refused(over_prometheus, prometheus, shift):
    prometheus.default = [({"statefulset": "foo"}, "1")]
    prometheus.now = lambda: time.time() + shift
    assert (await over_prometheus.get(QUEUE, HPA))[0] == 503


async def test_one_bad_rule_is_out_of_service_by_itself_and_named(over_prometheus, prometheus):
    prometheus.default = [({"statefulset": "foo", "pod": "web-1"}, "1")]
    prometheus.fault = refusing("rate(")
    source = source_of(over_prometheus.adapter)
    for active in source.rules:
        active.is_proven = False
    await source.discover()
    asked = len(prometheus.queries)
    rates = f"{CUSTOM}/namespaces/shop/pods/web-1/http_requests_per_second"
    status, body = await over_prometheus.get(rates, HPA)
    assert (status, len(prometheus.queries)) == (503, asked)
    assert "rule prom/rates is out of service" in body["message"]
    assert (await over_prometheus.get(QUEUE, HPA))[0] == 200
    status, text = await over_prometheus.get("/readyz?verbose")
    assert status == 200
    for line in (
        "[+]rule prom/queues ok",
        "[-]rule prom/rates disabled",
        "[-]rule prom/no-matchers disabled",
        "[-]rule prom/typo disabled",
    ):
        assert line in text
    _, metrics = await over_prometheus.get("/metrics", HPA)
    assert 'source_health{source="prom",state="disabled",what="rule prom/rates"} 1.0' in metrics


@pytest.mark.parametrize("error", ["bad_data", "execution"])
async def test_a_query_that_prometheus_refuses_is_paused_alone(over_prometheus, prometheus, error):
    """Duplicate series of one namespace took the rule from all namespaces for up to 5 minutes."""
    prometheus.default = [({"statefulset": "foo"}, "1")]
    prometheus.fault = refusing('namespace="bad"', error)
    bad = QUEUE.replace("/shop/", "/bad/")
    assert (await over_prometheus.get(bad, HPA))[0] == 503
    asked = len(prometheus.queries)
    status, body = await over_prometheus.get(bad, HPA)
    assert (status, len(prometheus.queries)) == (503, asked)
    assert "rule prom/queues: this query is out of service" in body["message"]
    assert (await over_prometheus.get(QUEUE, HPA))[0] == 200
    assert (await over_prometheus.get(f"{bad}?metricLabelSelector=a%3Db", HPA))[0] == 503
    _, text = await over_prometheus.get("/readyz?verbose")
    assert "[-]rule prom/queues failing" in text


@pytest.mark.parametrize("name", ["w", "*?labelSelector=a%3Db"])
async def test_objects_of_a_group_that_the_cluster_does_not_serve_are_not_found(
    over_prometheus, prometheus, name
):
    """It was a 503, which asks autoscalers to wait for what cannot come."""
    prometheus.default = [({"widget": "w"}, "1")]
    path, _, query = name.partition("?")
    answer = await over_prometheus.get(
        f"{CUSTOM}/namespaces/shop/widgets.example.com/{path}/widget_load?{query}", HPA
    )
    assert answer[0] == 404
    assert "no API group example.com" in answer[1]["message"]


SECRET = 'many-to-many matching not allowed: {pod="ledger-7",namespace="bank"} at 10.1.2.3:9090'
"""What Prometheus says about the series of other tenants."""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (answering(400, "bad_data", SECRET), "rule prom/queues: this query is out of service"),
        (answering(422, "execution", SECRET), "rule prom/queues: this query is out of service"),
        (answering(503, "unavailable", SECRET), "source prom: Prometheus gives no usable answer"),
        (answering(500, "", SECRET), "source prom: Prometheus gives no usable answer"),
    ],
    ids=["rejected", "failed on series", "unavailable", "not JSON of Prometheus"],
)
async def test_tenants_get_the_kind_of_a_failure_and_the_log_its_text(
    over_prometheus, prometheus, caplog, fault, words
):
    """Prometheus' own text, with pods and labels of other tenants, was in the answer."""
    prometheus.fault = fault
    for _ in range(2):
        status, body = await over_prometheus.get(QUEUE, HPA)
        assert (status, words in body["message"]) == (503, True)
        assert not [part for part in ("ledger-7", "bank", "10.1.2.3") if part in body["message"]]
        assert "log says why" in body["message"]
    assert "ledger-7" in caplog.text


async def test_the_rule_that_prometheus_rejects_keeps_the_text_from_tenants(
    over_prometheus, prometheus, caplog
):
    source = source_of(over_prometheus.adapter)
    source.rules[0].health.disable(f"discovering its series: {SECRET}")
    status, body = await over_prometheus.get(QUEUE, HPA)
    assert (status, "ledger-7" in body["message"], "ledger-7" in caplog.text) == (503, False, True)
    assert "rule prom/queues is out of service: Prometheus rejects its query" in body["message"]


ATTACK = 'http_x_total{namespace="victim"}[2m])) or sum by (pod) (rate(http_y_total'


async def test_a_tenants_name_of_a_series_reads_no_other_namespace(over_prometheus, prometheus):
    """The name was filled into the query as text, so the answer came from the other namespace."""
    prometheus.names = ["http_requests_total", ATTACK, "http_{dotted.name_total", "http_/x_total"]
    await source_of(over_prometheus.adapter).discover()
    _, listed = await over_prometheus.get(CUSTOM, HPA)
    metrics = {resource["name"].partition("/")[2] for resource in listed["resources"]}
    assert metrics == {
        "http_requests_per_second",
        "http_{dotted.name_per_second",
        f"{ATTACK.removesuffix('_total')}_per_second",
    }
    prometheus.queries.clear()
    metric = quote(f"{ATTACK.removesuffix('_total')}_per_second", safe="")
    await over_prometheus.get(f"{CUSTOM}/namespaces/a/pods/*/{metric}", HPA)
    name = ATTACK.replace('"', '\\"')
    assert prometheus.queries == [f'sum by (pod) (rate({{__name__="{name}",namespace="a",pod!=""}}[2m]))']


async def test_a_name_that_needs_quotes_takes_no_metric_from_a_simple_one(over_prometheus, prometheus):
    prometheus.names = ["http-requests_total", "http_requests_total"]
    active = source_of(over_prometheus.adapter).rules[1]
    active.checked = replace(active.checked, pattern=re.compile("http.(requests)_total"))
    active.set_series(prometheus.names)
    assert list(active.series.values()) == [("http_requests_total", "http-requests_total")]


async def test_a_rule_that_loses_the_objects_label_says_so(over_prometheus, prometheus):
    prometheus.default = [({"queue": "a"}, "1")]
    status, body = await over_prometheus.get(QUEUE, HPA)
    assert (status, "has no label 'statefulset'" in body["message"]) == (503, True)


async def test_a_503_asks_nobody_to_wait_because_autoscalers_would_repeat_it_ten_times_before_they_hold(
    over_prometheus, prometheus
):
    prometheus.fault = failing(500)
    assert (await over_prometheus.get(QUEUE, HPA))[0] == 503
    assert "Retry-After" not in over_prometheus.headers


async def test_F42_a_source_that_hangs_is_a_503_within_its_deadline(over_prometheus, prometheus):
    prometheus.fault = hanging
    over_prometheus.adapter.router._deadline = 0.02
    status, body = await over_prometheus.get(QUEUE, HPA)
    assert (status, body["message"]) == (503, "source prom did not answer within 0.02 s")


@pytest.mark.parametrize(
    "fault",
    [
        failing(500, b"<html>oops</html>"),
        failing(503),
        failing(200, b"[]"),
        failing(200, b"\xff"),
        failing(200, {"status": "error"}),
        failing(200, {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}),
        failing(200, {"status": "success", "data": {"resultType": "vector", "result": [{"value": [1]}]}}),
    ],
)
async def test_F14_an_answer_that_is_none_is_a_503(over_prometheus, prometheus, fault):
    prometheus.fault = fault
    assert (await over_prometheus.get(QUEUE, HPA))[0] == 503


async def test_discovery_lists_only_the_series_that_exist(over_prometheus):
    _, body = await over_prometheus.get(CUSTOM, HPA)
    assert [resource["name"] for resource in body["resources"]] == [
        "namespaces/http_requests_per_second",
        "pods/http_requests_per_second",
        "pods/queue_length",
        "statefulsets.apps/queue_length",
    ]


@pytest.mark.parametrize("text", ["", "rules: [", None])
async def test_rules_that_cannot_be_read_at_the_start_are_told_and_taken_over_when_they_can(
    cluster, prometheus, tmp_path, text
):
    if text is not None:
        (tmp_path / "rules.yaml").write_text(text)
    server = {"url": "http://127.0.0.1:1"}
    source = {"name": "prom", "prometheus": {"server": server, "rulesFile": "rules.yaml"}}
    async with running(cluster, write_configuration(tmp_path, source)) as adapter:
        rules = source_of(adapter)
        assert [health.reason for health in rules.health() if health.name == "rules file of prom"] != []
        write(tmp_path / "rules.yaml", "MetricRules", {"rules": RULES[:1]})
        rules.refresh()
        assert [active.checked.name for active in rules.rules] == ["queues"]
        assert [health for health in rules.health() if health.name == "rules file of prom"] == []


async def test_a_changed_rules_file_is_taken_over_and_a_spoilt_one_is_not(
    cluster, prometheus, tmp_path, front
):
    write(tmp_path / "rules.yaml", "MetricRules", {"rules": RULES[:1]})
    async with listening(prometheus) as url:
        source = {"name": "prom", "prometheus": {"server": {"url": url}, "rulesFile": "rules.yaml"}}
        async with running(cluster, write_configuration(tmp_path, source)) as adapter:
            rules = source_of(adapter)
            write(tmp_path / "rules.yaml", "MetricRules", {"rules": RULES[:2]})
            rules.refresh()
            assert [active.checked.name for active in rules.rules] == ["queues", "rates"]
            (tmp_path / "rules.yaml").write_text("rules: [")
            rules.refresh()
            assert [active.checked.name for active in rules.rules] == ["queues", "rates"]
            assert any(health.name == "rules file of prom" for health in rules.health())


@pytest.mark.parametrize("names", [["jobs_count", "jobs_total"], ["jobs_total", "jobs_count"]])
@pytest.mark.parametrize(("namespace", "series"), [("a", "jobs_count"), ("b", "jobs_total")])
@pytest.mark.parametrize(
    ("path", "query"),
    [
        (f"{CUSTOM}/namespaces/NS/pods/p/jobs", 'sum by (pod) (SERIES{namespace="NS",pod="p"})'),
        (f"{CUSTOM}/namespaces/NS/metrics/jobs", 'sum by (namespace) (SERIES{namespace="NS"})'),
        (f"{EXTERNAL}/namespaces/NS/jobs", 'SERIES{namespace="NS"}'),
    ],
)
async def test_a_namespace_cannot_hide_the_series_of_another(
    over_prometheus, prometheus, names, namespace, series, path, query
):
    """`b` served jobs_total until `a` exposed jobs_count, which is the same metric by the rule."""
    prometheus.names = names
    prometheus.names_in = {"a": ["jobs_count"], "b": ["jobs_total"]}
    await source_of(over_prometheus.adapter).discover()
    wanted = query.replace("SERIES", series).replace("NS", namespace)
    prometheus.vectors[wanted] = [({"pod": "p", "namespace": namespace}, "7")]
    status, found = await over_prometheus.get(path.replace("NS", namespace), HPA)
    assert status == 200, found
    assert [item["value"] for item in found["items"]] == ["7"]
