"""F56: whatever the body of a review is, there is a valid answer, and a pod is always allowed."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.support.asgi import AsgiTransport
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.transport import Request
from trimtab.model.crds import all_crds
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.vpa.webhooks import MUTATE_PODS, VALIDATE_SCOPES, VALIDATE_VPAS
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.reviews import Reviewer
from trimtab.operator.vertical.metrics import AdmissionMetrics
from trimtab.operator.vertical.wiring import VerticalRuntime, make_admission
from trimtab_lab.apiserver.server import Server
from trimtab_lab.patches import json_patch


def ask(path: str, body: bytes, *, method: str = "POST", prepare: Any = None) -> tuple[int, dict[str, Any]]:
    """Send one body to the application of a cluster and return status and answer."""
    clock = VirtualClock()

    async def main() -> tuple[int, dict[str, Any]]:
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            for crd in all_crds():
                await server.request(
                    "POST",
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    "",
                    {**headers, "content-type": "application/json"},
                    json.dumps(crd).encode(),
                )
            gates = "VPASelectorRefinement=true"
            site = VerticalRuntime(Runtime(clock, client, Settings.of(feature_gates=gates)))
            await site.view.wait_synced()
            app = make_admission(site).app
            answer = await AsgiTransport(app).request(Request(method, path, body=body))
            await site.runtime.close()
            return answer.status, json.loads(answer.body)

    return clock.run(main())


def review(obj: Any, **request: Any) -> bytes:
    return json.dumps(
        {"kind": "AdmissionReview", "request": {"uid": "u-1", "namespace": "shop", "object": obj, **request}}
    ).encode()


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "app", "image": "x"}]}}


@pytest.mark.parametrize(
    ("body", "uid"),
    [
        pytest.param(b"{}", "", id="no request"),
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"not json", "", id="not JSON"),
        pytest.param(b"[" * 100_000, "", id="a hundred thousand brackets"),
        pytest.param(review(None), "u-1", id="no object"),
        pytest.param(review([1, 2]), "u-1", id="the object is a list"),
        pytest.param(review({"spec": {"containers": "many"}}), "u-1", id="a pod that is none"),
        pytest.param(review(POD, dryRun=True), "u-1", id="a dry run"),
        pytest.param(review({**POD, "data": "x" * 3_000_000}), "u-1", id="three megabytes"),
    ],
)
def test_a_pod_is_allowed_whatever_comes(body, uid):
    status, answer = ask(MUTATE_PODS, body)
    assert status == 200
    assert answer["kind"] == "AdmissionReview"
    assert answer["response"] == {"uid": uid, "allowed": True}


@pytest.mark.parametrize("path", [VALIDATE_VPAS, VALIDATE_SCOPES])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="no request"),
        pytest.param(b"nonsense", id="not JSON"),
        pytest.param(
            review({"metadata": {"name": "?"}}).replace(b"?", b"\xff"), id="an object that is not UTF-8"
        ),
    ],
)
def test_an_unreadable_review_of_our_own_kinds_is_refused_with_a_reason(path, body):
    status, answer = ask(path, body)
    assert status == 200
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["code"] == 400


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 413)])
def test_a_body_beyond_four_mebibytes_is_not_read(more, status):
    assert ask(MUTATE_PODS, b" " * (4_194_304 + more))[0] == status


@pytest.mark.parametrize(
    ("known", "wanted", "is_read", "is_refused"),
    [
        pytest.param({"leader"}, "leader", False, False, id="cached"),
        pytest.param({"leader"}, "new", True, False, id="created just now"),
        pytest.param({"leader"}, "missing", True, True, id="missing"),
        pytest.param(None, "missing", False, False, id="the cache is not complete"),
        pytest.param({"leader"}, "", False, False, id="no scope"),
    ],
)
async def test_a_scope_is_read_if_the_cache_lacks_it(known, wanted, is_read, is_refused):
    read: list[str] = []

    class Lookup:
        view = SimpleNamespace(
            gates=FeatureGates(vpa_selector_refinement=True), scope_names=lambda _namespace: known
        )

        async def scopes_with(self, namespace: str, name: str) -> frozenset[str]:
            assert namespace == "shop"
            read.append(name)
            return frozenset(known) | ({name} if name == "new" else set())

    lookup: Any = Lookup()
    reviewer = Reviewer(VirtualClock(), lookup, AdmissionMetrics(CollectorRegistry()))
    spec: dict[str, Any] = {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}}
    spec["updatePolicy"] = {"updateMode": "Off"}
    if wanted:
        spec["vpaScope"] = {"name": wanted}
    body = review({"metadata": {"name": "v"}, "spec": spec}, operation="CREATE", name="v")
    answer = json.loads(await reviewer.review(VALIDATE_VPAS, body))["response"]
    assert read == ([wanted] if is_read else [])
    assert answer["allowed"] is not is_refused
    assert ("Not found" in str(answer)) is is_refused


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", MUTATE_PODS, 405, id="reviews are posted"),
        pytest.param("POST", "/etc/passwd", 404, id="no other path"),
        pytest.param("GET", "/readyz", 200, id="ready"),
    ],
)
def test_paths_and_methods(method, path, status):
    assert ask(path, b"{}", method=method)[0] == status


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["metadata", "spec", "containers", "resources", "requests", "labels", "ownerReferences"]
)
SHAPED = st.dictionaries(FIELDS, st.dictionaries(FIELDS, ODD, max_size=3) | ODD, max_size=4)


@settings(max_examples=25)
@given(obj=SHAPED)
def test_no_object_makes_the_webhook_fail(obj):
    status, answer = ask(MUTATE_PODS, review(obj))
    assert status == 200
    assert answer["response"]["allowed"] is True
    patch = answer["response"].get("patch")
    assert patch is None or json_patch.parse(base64.b64decode(patch))


async def test_a_pod_is_looked_up_in_the_namespace_of_the_request():
    """The object of a new pod names no namespace, or one that its author wrote there."""
    found: list[str] = []

    class Lookup:
        async def admission_context(self, pod: Any) -> Any:
            found.append(pod.metadata.namespace)
            raise LookupError

    lookup: Any = Lookup()
    reviewer = Reviewer(VirtualClock(), lookup, AdmissionMetrics(CollectorRegistry()))
    other = {**POD, "metadata": {"name": "p", "namespace": "elsewhere"}}
    for pod in (POD, other):
        answer = json.loads(await reviewer.review(MUTATE_PODS, review(pod)))
        assert answer["response"]["allowed"]
    assert found == ["shop", "shop"]
