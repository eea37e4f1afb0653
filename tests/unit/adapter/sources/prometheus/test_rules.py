"""The rules file: what each mistake says, names from patterns, PromQL from templates."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.adapter.files import ConfigurationError
from trimtab.adapter.sources.prometheus import promql
from trimtab.adapter.sources.prometheus.rules import PrometheusRule, check, load_rules
from trimtab.adapter.sources.prometheus.source import RejectedSampleError, parse_value, sample_time
from trimtab.clock import VirtualClock
from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError

PODS = {"pods": "pod"}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"series": "m"}, "resources: say which label names the object"),
        ({"resources": PODS}, "exactly one of them is needed"),
        ({"series": "m", "series_pattern": "m", "resources": PODS}, "exactly one of them is needed"),
        ({"series": "m{a=1}", "resources": PODS}, "cannot be the name of a series"),
        ({"series": "m", "resources": {"pods": "the pod"}}, "'the pod' cannot be a label"),
        ({"series": "m", "resources": PODS, "matchers": {"a-b": "x"}}, "'a-b' cannot be a label"),
        ({"series": "m", "resources": {"namespaces": "ns"}}, "resources.namespaces: is 'ns', but namespaceLabel"),
        ({"series": "m", "resources": PODS, "namespace_label": ""}, "only an external metric can do without"),
        ({"series": "m", "type": "external", "resources": PODS}, "an external metric belongs to no object"),
        ({"series": "m", "resources": PODS, "query": "sum(m)"}, "has no <<matchers>>"),
        ({"series": "m", "resources": PODS, "query": "<<matchers>> <<colour>>"}, "unknown part <<colour>>"),
        ({"series": "m", "resources": PODS, "query": "m{a='<<matchers>>'}"}, "<<matchers>> is in a string"),
        ({"series": "m", "resources": PODS, "query": "m # {<<matchers>>}"}, "<<matchers>> is in a string or a comment"),
        ({"series": "m", "resources": PODS, "query": "<<series>>{} and <<matchers>>"}, "outside of a selector"),
        ({"series": "m", "resources": PODS, "query": "m{a='x,<<matchers>>}"}, "begins with ' does not end"),
        ({"series": "a.b", "resources": PODS, "query": "<<series>>_x{<<matchers>>}"}, "cannot be the name of a series"),
        ({"series_pattern": "(", "resources": PODS}, "seriesPattern: "),
        ({"series_pattern": "(a)", "metric": "${2}", "resources": PODS}, r"\$\{2\} is no group"),
        ({"series": "m", "resources": PODS, "window": "soon"}, "window: 'soon' is not a duration"),
        ({"series": "m", "resources": PODS, "max_age": "0s"}, "maxAge: '0s' is not a duration"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_used_says_why(fields, want):
    with pytest.raises((ConfigurationError, promql.TemplateError), match=want):
        check(PrometheusRule(name="r", **fields))


def test_each_bad_rule_is_refused_by_itself(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(
        "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: MetricRules\nrules:\n"
        "- {name: good, series: m, resources: {pods: pod}}\n"
        "- {name: good, series: n, resources: {pods: pod}}\n"
        "- {name: typo, serie: m}\n- 7\n- {series: m, resources: {pods: pod}}\n"
    )
    rules = load_rules(path)
    assert [rule.name for rule in rules.usable] == ["good"]
    assert set(rules.refused) == {"good (rules[1])", "typo", "rules[3]", "rules[4]"}
    assert "unknown field `serie`" in rules.refused["typo"]


@pytest.mark.parametrize(
    "text",
    [
        "rules: []",
        "apiVersion: adapter.trimtab.dev/v2\nkind: MetricRules\nrules: []",
        "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: MetricRules\nrules: {}",
        "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: MetricRules\nrules: []\nmore: 1",
        "- 1",
        "[",
        "\ufffe",
        "a: &a [x]\nb: [" + "*a," * 101 + "]",
    ],
)
def test_a_file_that_cannot_be_used_is_one_error_with_its_name(tmp_path, text):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"rules\.yaml"):
        load_rules(path)


@pytest.mark.parametrize(
    ("metric", "series", "want"),
    [
        ("${1}_per_second", "http_requests_total", "http_requests_per_second"),
        ("$1", "http_requests_total", "http_requests"),
        ("${what}", "http_requests_total", "requests"),
        ("", "http_requests_total", "http_requests_total"),
        ("${1}", "ssh_requests_total", None),
        ("${1}", "http_requests_total_x", None),
    ],
)
def test_a_pattern_names_the_metric(metric, series, want):
    rule = check(
        PrometheusRule(name="r", series_pattern="(http_(?P<what>.+))_total", metric=metric, resources=PODS)
    )
    assert rule.metric_of(series) == want


def test_prometheus_adapters_own_placeholders_are_understood():
    template = "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)"
    filled = promql.parse_template(template).fill("s", 'a="b"', "pod")
    assert filled == 'sum(rate(s{a="b"}[2m])) by (pod)'


@pytest.mark.parametrize("text", ["a>3", "a<3"])
def test_prometheus_cannot_compare_labels_as_numbers(text):
    with pytest.raises(StatusError, match="cannot compare", check=lambda error: error.code == 400):
        promql.from_selector(Selector.parse(text))


def test_a_kubernetes_label_that_prometheus_cannot_have_is_refused_by_name():
    with pytest.raises(
        StatusError,
        match=r"'app\.kubernetes\.io/name' cannot be a label",
        check=lambda error: error.code == 400,
    ):
        promql.from_selector(Selector.parse("app.kubernetes.io/name=web"))


@settings(max_examples=300)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True))
def test_no_value_gets_out_of_its_quotes(values):
    matcher = promql.one_of("a", values)
    inside = matcher.partition('"')[2]
    assert matcher.startswith(("a=~", "a="))
    assert inside.endswith('"')
    body = inside[:-1]
    position = 0
    while position < len(body):
        assert body[position] not in '"\n'
        position += 2 if body[position] == "\\" else 1
    assert position == len(body)


@pytest.mark.parametrize(
    ("text", "want"), [("3", "3"), ("0.5", "500m"), ("1e-9", "1n"), ("-2", "-2"), ("1.5e6", "1500k")]
)
def test_values_are_exact(text, want):
    assert str(parse_value(text)) == want


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "", "x", "1e400", "9.3e18", "-9.3e18"])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(RejectedSampleError):
        parse_value(text)


@pytest.mark.parametrize(
    ("age", "is_served"), [(0, True), (120, True), (121, False), (-60, True), (-61, False)]
)
def test_samples_are_served_between_their_age_limit_and_a_minute_ahead(age, is_served):
    now = VirtualClock().now()
    if is_served:
        assert sample_time(now.timestamp() - age, now, 120) is not None
    else:
        with pytest.raises(RejectedSampleError):
            sample_time(now.timestamp() - age, now, 120)
