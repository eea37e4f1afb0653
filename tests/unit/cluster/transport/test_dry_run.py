"""What a dry run may send, request by request."""

import pytest

from trimtab.cluster.sender import DryRun
from trimtab.cluster.transport import Request

RULE = DryRun("trimtab", "trimtab-recommender")
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
HPAS = "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/horizontalpodautoscalers"
VPAS = "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalers"
PODS = "/api/v1/namespaces/shop/pods"
NAMED = b'{"metadata": {"name": "%s"}}'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{PODS}/db-0", None),
        ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", NAMED % b"web.1"),
        ("PATCH", "/api/v1/namespaces/shop/events/web.1", b"{}"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", b"{}"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", b"{}"),
        ("POST", f"{LEASES}/trimtab/leases", NAMED % b"trimtab-recommender-0"),
        ("PUT", f"{LEASES}/trimtab/leases/trimtab-recommender-3", b"{}"),
        ("PATCH", f"{LEASES}/trimtab/leases/trimtab-recommender-settings", b"{}"),
        ("POST", f"{LEASES}/trimtab/leases", NAMED % b"trimtab-recommender-member-0"),
    ],
)
def test_events_reviews_and_leases_of_its_own_are_sent(method, path, body):
    assert RULE.may_send(Request(method, path, body=body))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", f"{HPAS}/web/status", b"{}"),
        ("PATCH", "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status", b"{}"),
        ("PATCH", f"{VPAS}/db/status", b"[]"),
        ("PATCH", f"{PODS}/db-0", b"{}"),
        ("PATCH", f"{PODS}/db-0/status", b"{}"),
        ("PATCH", f"{PODS}/db-0/resize", b"{}"),
        ("POST", f"{PODS}/db-0/eviction", b"{}"),
        ("POST", PODS, NAMED % b"probe"),
        ("DELETE", f"{PODS}/db-0", b"{}"),
        ("PATCH", f"{HPAS}/web", b"{}"),
        ("PATCH", f"{VPAS}/db", b"{}"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", b"{}"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/status", b"{}"),
        ("POST", f"{VPAS}/checkpoints", b"{}"),
        ("POST", "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalercheckpoints", b"{}"),
        (
            "DELETE",
            "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalercheckpoints/a",
            b"{}",
        ),
        ("PATCH", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/trimtab-vpa", b"{}"),
        ("PUT", "/api/v1/namespaces/trimtab/secrets/trimtab-webhook-tls", b"{}"),
        ("PATCH", f"{LEASES}/kube-system/leases/vpa-admission-controller", b"{}"),
        ("PUT", f"{LEASES}/trimtab/leases/trimtab-updater-0", b"{}"),
        ("PUT", f"{LEASES}/trimtab/leases/trimtab-recommender", b"{}"),
        ("PUT", f"{LEASES}/shop/leases/trimtab-recommender-0", b"{}"),
        ("POST", f"{LEASES}/trimtab/leases", NAMED % b"trimtab-recommender-hot-0"),
        ("POST", f"{LEASES}/trimtab/leases", b"not json"),
    ],
)
def test_every_other_write_is_refused(method, path, body):
    request = Request(method, path, body=body)
    assert not RULE.may_send(request)
    assert RULE.may_send(Request(method, path, [("dryRun", "All")], body=body)), "nothing is stored"


def test_without_a_lease_of_its_own_no_lease_is_written():
    request = Request("PUT", f"{LEASES}/trimtab/leases/", body=b"{}")
    assert not DryRun("trimtab", "").may_send(request)
