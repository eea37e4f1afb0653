"""What the path and the method of a request name."""

import pytest

from trimtab_lab.apiserver.request import ApiRequest, RequestInfo, parse_path, verb_of


@pytest.mark.parametrize(
    ("path", "info"),
    [
        pytest.param("/healthz", RequestInfo(rest=("healthz",)), id="no resource"),
        pytest.param("/api/v1", RequestInfo("", "v1", rest=("api", "v1")), id="a core group version"),
        pytest.param(
            "/apis/apps/v1", RequestInfo("apps", "v1", rest=("apis", "apps", "v1")), id="a group version"
        ),
        pytest.param(
            "/api/v1/nodes", RequestInfo("", "v1", "", "nodes", is_resource=True), id="a collection"
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/shop/deployments/web/scale",
            RequestInfo("apps", "v1", "shop", "deployments", "web", "scale", is_resource=True),
            id="a subresource of a namespaced object",
        ),
        pytest.param(
            "/api/v1/namespaces/shop",
            RequestInfo("", "v1", "shop", "namespaces", "shop", is_resource=True),
            id="a namespace is in itself",
        ),
        pytest.param(
            "/api/v1/namespaces/shop/finalize",
            RequestInfo("", "v1", "shop", "namespaces", "shop", "finalize", is_resource=True),
            id="a subresource of a namespace",
        ),
        pytest.param(
            "/api/v1/namespaces/shop/pods/a%2Fb",
            RequestInfo("", "v1", "shop", "pods", "a/b", is_resource=True),
            id="names are percent-decoded",
        ),
    ],
)
def test_parse_path(path, info):
    assert parse_path(path) == info


@pytest.mark.parametrize(
    ("method", "query", "name", "verb"),
    [
        ("GET", {}, "web", "get"),
        ("HEAD", {}, "web", "get"),
        ("GET", {}, "", "list"),
        ("GET", {"watch": ["1"]}, "", "watch"),
        ("POST", {}, "", "create"),
        ("PUT", {}, "web", "update"),
        ("PATCH", {}, "web", "patch"),
        ("DELETE", {}, "web", "delete"),
        ("DELETE", {}, "", "deletecollection"),
    ],
)
def test_verb_of(method, query, name, verb):
    assert verb_of(ApiRequest(method, "", query, {}), RequestInfo(name=name)) == verb
