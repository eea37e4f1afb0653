"""kube-controller-manager's own HPA controller is noticed by what it wrote, before native HPAs are reconciled."""

from datetime import UTC, datetime

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.operator.horizontal.kinds import RivalControllerError, ensure_hpa_controller_is_off

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RIVAL = {"manager": "kube-controller-manager", "time": "2026-01-01T11:56:00Z"}
OLD = {"manager": "kube-controller-manager", "time": "2026-01-01T11:55:00Z"}
OTHER = {"manager": "kubectl", "time": "2026-01-01T11:59:00Z"}
UNDATED = {"manager": "kube-controller-manager"}


def check(*written, namespaces=(), refused=None):
    """Return what was asked, and the namespaces that could not be listed."""
    clock, api = VirtualClock(), FakeApi()
    items = [
        {"metadata": {"name": f"web-{number}", "namespace": "shop", "managedFields": fields}}
        for number, fields in enumerate(written)
    ]

    def answer(request):
        if "drop=metadata.managedFields" in request.headers.get("accept", ""):
            for item in items:
                item["metadata"].pop("managedFields", None)  # as a server of Kubernetes 1.38 does
        for namespace, (code, reason) in (refused or {}).items():
            if namespace in request.path.split("/"):
                return Answer(code, status(code, reason))
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    api.fault = answer

    async def main():
        client = Client(clock, AsgiTransport(api), seed=1)
        return await ensure_hpa_controller_is_off(client, namespaces, NOW)

    unseen = clock.run(main())
    return [request.path for request in api.requests], list(unseen)


@pytest.mark.parametrize(
    "fields",
    [None, [], [OLD], [OTHER], [UNDATED], [OLD, OTHER, UNDATED]],
    ids=["none", "empty", "five minutes ago", "another writer", "no time", "all of them"],
)
def test_nobody_else_writes(fields):
    check(fields)


@pytest.mark.parametrize(
    "written",
    [
        ([[RIVAL]]),
        ([[OLD, RIVAL]]),
        ([[RIVAL, OLD]]),
        ([[UNDATED, OTHER, RIVAL]]),
        ([None, [RIVAL], [OTHER]]),
    ],
)
def test_a_rival_that_wrote_within_five_minutes_is_named_with_what_to_do(written):
    place = next(number for number, fields in enumerate(written) if fields and RIVAL in fields)
    with pytest.raises(RivalControllerError, match=rf"shop/web-{place} at 11:56:00 UTC.*--controllers"):
        check(*written)


def test_every_watched_namespace_is_looked_at():
    base = "/apis/autoscaling/v2"
    both = [f"{base}/namespaces/{name}/horizontalpodautoscalers" for name in ("a", "b")]
    assert check() == ([f"{base}/horizontalpodautoscalers"], [])
    assert check(namespaces=("a", "b")) == (both, [])


REFUSALS = [(403, "Forbidden"), (404, "NotFound")]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("doomed", ["a", "b", "c"])
def test_a_deleted_namespace_keeps_no_other_from_being_looked_at(refusal, doomed):
    """One namespace that may not be listed stopped the native HPAs of all others after a restart."""
    asked, unseen = check(namespaces=("a", "b", "c"), refused={doomed: refusal})
    assert (len(asked), unseen) == (3, [doomed])
    with pytest.raises(RivalControllerError, match="shop/web-0"):
        check([RIVAL], namespaces=("a", "b", "c"), refused={doomed: refusal})


@pytest.mark.parametrize(
    ("namespaces", "refused"),
    [
        ((), {"horizontalpodautoscalers": (403, "Forbidden")}),
        (("a", "b"), {"a": (403, "Forbidden"), "b": (404, "NotFound")}),
        (("a", "b"), {"a": (400, "BadRequest")}),
    ],
    ids=["all at once", "each", "another error"],
)
def test_a_rival_that_can_be_ruled_out_nowhere_is_an_error(namespaces, refused):
    with pytest.raises(errors.ApiError):
        check(namespaces=namespaces, refused=refused)
