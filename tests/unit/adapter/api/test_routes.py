"""From paths to queries and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery
from trimtab.adapter.api.routes import is_metrics_path, route, split_path
from trimtab.model.labels.selector import EVERYTHING, Selector
from trimtab.model.status import StatusError

CUSTOM = b"/apis/custom.metrics.k8s.io/v1beta2"
SELECTORS = st.sampled_from([EVERYTHING, *map(Selector.parse, ("a=b", "a in (b,c),!d", "a notin (x)", "k"))])
NAMES = st.text("abcxyz019-", min_size=1, max_size=20).map(lambda text: f"x{text}x")
METRICS = st.text("abcXYZ_:.- ~", min_size=1, max_size=20).filter(lambda text: text not in {".", ".."})


def ask(path: bytes, query: bytes = b""):
    return route(split_path(path), query)


@pytest.mark.parametrize(
    ("path", "query", "want"),
    [
        pytest.param(
            b"/namespaces/shop/pods/*/rps", b"labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET",
            CustomMetricQuery("shop", "pods", "*", "rps", Selector.parse("app=web"), Selector.parse("verb=GET")),
            id="all pods that a query selects, their series by another",
        ),
        pytest.param(
            b"/namespaces/shop/statefulsets.apps/foo/queue_length", b"metricLabelSelector=queue%3Dsome-jobs",
            CustomMetricQuery("shop", "statefulsets.apps", "foo", "queue_length", series=Selector.parse("queue=some-jobs")),
            id="one object",
        ),
        pytest.param(
            b"/namespaces/shop/metrics/queued", b"",
            CustomMetricQuery("", "namespaces", "shop", "queued"),
            id="the namespace itself",
        ),
        pytest.param(b"/nodes/n1/heat", b"", CustomMetricQuery("", "nodes", "n1", "heat"), id="an object of no namespace"),
        pytest.param(b"/nodes/*/heat", b"metricLabelSelector=", CustomMetricQuery("", "nodes", "*", "heat"),
                     id="an empty selector is none"),
    ],
)  # fmt: skip
def test_a_custom_path_asks_this(path, query, want):
    assert ask(CUSTOM + path, query).query == want


@settings(max_examples=100)
@given(
    NAMES, NAMES, st.sampled_from(["pods", "deployments.apps", "namespaces"]), METRICS, SELECTORS, SELECTORS
)
def test_parsing_the_path_of_a_query_returns_the_query(namespace, name, resource, metric, objects, series):
    is_namespace = resource == "namespaces"
    query = CustomMetricQuery("" if is_namespace else namespace, resource, name, metric, objects, series)
    parts = split_path(query.path("v1beta2").encode())
    query_string = "&".join(f"{key}={value}".replace(" ", "%20").replace("=", "%3D").replace("%3D", "=", 1)
                            for key, value in query.parameters())  # fmt: skip
    assert is_metrics_path(parts)
    assert route(parts, query_string.encode()).query == query
    external = ExternalMetricQuery(namespace, metric, series)
    assert route(split_path(external.path("v1beta1").encode()), b"").query == ExternalMetricQuery(
        namespace, metric
    )


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_become_a_query_or_are_rejected_and_never_leave_their_namespace(tail):
    try:
        found = ask(CUSTOM + b"/namespaces/shop/" + tail.replace(b"?", b""))
    except StatusError as error:
        if error.code not in {400, 404, 422}:
            raise
        return
    assert isinstance(found.query, CustomMetricQuery)
    assert "shop" in (found.query.namespace, found.query.name)
    assert found.attributes.namespace == "shop"


PARTS = st.sampled_from(
    ["namespaces", "metrics", "pods", "shop", "b", "*", "statefulsets.apps", "rps", "watch"]
)
PATHS = st.one_of(
    st.lists(PARTS, min_size=1, max_size=7),
    st.tuples(st.just("namespaces"), PARTS, PARTS, PARTS, PARTS).map(list),
    st.tuples(st.just("namespaces"), PARTS, st.just("metrics"), PARTS).map(list),
    st.tuples(PARTS, PARTS, PARTS).map(list),
)


def namespace_that_is_asked(path: str) -> str:
    """Return the namespace that an API server takes from a path: the part after `namespaces`, else none."""
    parts = path.split("/")[4:]
    return parts[1] if parts[0] == "namespaces" else ""


@settings(max_examples=500)
@given(st.sampled_from(["custom.metrics.k8s.io/v1beta2", "external.metrics.k8s.io/v1beta1"]), PATHS)
def test_the_namespace_that_is_authorized_is_the_namespace_that_is_asked_upstream(group, parts):
    """`namespaces/a/namespaces/b/METRIC` was authorized in a and forwarded as a question about b."""
    try:
        found = ask(f"/apis/{group}/{'/'.join(parts)}".encode())
    except StatusError as error:
        if error.code not in {400, 404, 422}:
            raise
        return
    requested = parts[1] if parts[0] == "namespaces" else ""
    assert found.attributes.namespace == requested
    assert namespace_that_is_asked(found.query.path(found.version)) == requested


def test_a_query_about_a_namespace_inside_of_a_namespace_cannot_be_made():
    with pytest.raises(ValueError, match="cannot be an object of namespace shop"):
        CustomMetricQuery("shop", "namespaces", "b", "spend")


@pytest.mark.parametrize("path", [b"/apis", b"/apis/custom.metrics.k8s.io", b"/apis/custom.metrics.k8s.io/v1beta2",
                                  b"/apis/metrics.k8s.io/v1beta1/pods", b"/apis/custom.metrics.k8s.io/v1/x/y/z"])  # fmt: skip
def test_other_paths_ask_for_no_metric(path):
    assert not is_metrics_path(split_path(path))


@pytest.mark.parametrize(
    "path", [b"/namespaces/shop", b"/namespaces/shop/pods/x", b"/x/y", b"/a/b/c/d", b"/namespaces/x/metrics"]
)
def test_paths_of_the_wrong_length_are_not_found(path):
    with pytest.raises(
        StatusError, match="the path of a custom metric is", check=lambda error: error.code == 404
    ):
        ask(CUSTOM + path)


@pytest.mark.parametrize(
    "part", [b"..", b".", b"%2e%2e", b"a%2fb", b"a%25b", b"a%5cb", b"%00", b"%0a", b"%ff", b"x" * 254]
)
def test_a_part_that_can_be_no_name_is_invalid(part):
    with pytest.raises(StatusError, check=lambda error: error.code == 422):
        split_path(b"/apis/" + part + b"/x")


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(StatusError, match="given twice", check=lambda error: error.code == 400):
        ask(CUSTOM + b"/nodes/n/m", b"labelSelector=a&labelSelector=b")
