"""Names of series: any text since Prometheus 3, chosen by whoever owns the pod."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.adapter.sources.prometheus import promql
from trimtab.adapter.sources.prometheus.rules import PrometheusRule, check

ATTACK = 'http_x_total{namespace="victim"}[2m])) or sum by (pod) (rate(http_y_total'
MATCHERS = 'namespace="a",pod="p"'
TEMPLATES = st.sampled_from(
    [
        "<<series>>{<<matchers>>}",
        "sum by (<<groupBy>>) (rate(<<series>>{<<matchers>>}[2m]))",
        "<<series>> {<<matchers>>} / <<.Series>>{<<matchers>>,le='a{\\'b'} # <<groupBy>>",
        "label_replace(<<series>>{<<matchers>>}, 'a', '<<series>>', '', '')",
        "{__name__=`<<series>>`,<<matchers>>}",
        "<<series>>_sum{<<matchers>>} / <<series>>_count{<<matchers>>}",
        "x{<<matchers>>}",
    ]
)
NAMES = st.one_of(
    st.text(max_size=30),
    st.text("ab_.{}\"'`\\#<>(), =\n", max_size=30),
    st.sampled_from(
        ["http_requests_total", "http.requests", "a<<matchers>>", "<<groupBy>>", ATTACK, "a:b", "é", "\\"]
    ),
)
STRING = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`""")


def without_strings(query: str) -> str:
    """Return the shape of a query: what Prometheus evaluates, whatever stands between its quotes."""
    return STRING.sub('""', query)


@settings(max_examples=600)
@given(TEMPLATES, NAMES)
def test_the_name_of_a_series_is_refused_or_leaves_the_shape_of_the_query(text, series):
    """A series `m{namespace="victim"}) or (n` was filled in as text and read another namespace."""
    template = promql.parse_template(text)
    if not template.takes(series):
        assert not promql.is_simple_name(series)
        with pytest.raises(promql.TemplateError, match="cannot contain a series"):
            template.fill(series, MATCHERS, "pod")
        return
    filled = template.fill(series, MATCHERS, "pod")
    named = template.fill("plain", MATCHERS, "pod")
    if re.fullmatch("[a-zA-Z_:][a-zA-Z0-9_:]*", series):
        assert filled == named.replace("plain", series)
        return
    want = re.sub(r"plain *\{", '{__name__="",', without_strings(named))
    assert without_strings(filled) == want
    # Each string is the escaped name or one that the query has anyway.
    strings = set(STRING.findall(filled)) - set(STRING.findall(named))
    assert strings <= {promql.quote(series)}


@pytest.mark.parametrize(
    ("query", "series", "is_served"),
    [
        pytest.param("", "http.requests", True, id="a dotted name as a matcher"),
        pytest.param("", "a{b}", True, id="braces are quoted"),
        pytest.param("", "a\nb", False, id="a line break is no name"),
        pytest.param("", "a/b", False, id="no path can name such a metric"),
        pytest.param("", "..", False, id="no path can name two dots"),
        pytest.param("", "x" * 254, False, id="longer than a path's part"),
        pytest.param("<<series>>_sum{<<matchers>>}", "a.b", False, id="the query appends to the name"),
        pytest.param("<<series>>_sum{<<matchers>>}", "a_b", True, id="a simple name can be appended to"),
        pytest.param("x{a='<<series>>',<<matchers>>}", "a.b", False, id="the query has the name in a string"),
    ],
)
def test_a_pattern_serves_only_series_that_its_query_can_name(query, series, is_served):
    rule = check(PrometheusRule(name="r", series_pattern="(?s).+", query=query, resources={"pods": "pod"}))
    assert (rule.metric_of(series) is not None) is is_served


def test_a_rule_may_name_a_dotted_series():
    rule = check(PrometheusRule(name="r", series="http.requests", resources={"pods": "pod"}))
    assert rule.promql("http.requests", 'pod="x"', "pod") == (
        'sum by (pod) ({__name__="http.requests",pod="x"})'
    )
