"""kube-controller-manager's own HPA controller is noticed by what it wrote, before native HPAs are reconciled."""

from datetime import UTC, datetime

import pytest

from tests.unit.cluster.fake_api import Answer, FakeApi
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.transport.asgi import AsgiTransport
from trimtab.operator.horizontal.inputs.kinds import RivalControllerError, ensure_hpa_controller_is_off

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RIVAL = {"manager": "kube-controller-manager", "time": "2026-01-01T11:56:00Z"}
OLD = {"manager": "kube-controller-manager", "time": "2026-01-01T11:55:00Z"}
OTHER = {"manager": "kubectl", "time": "2026-01-01T11:59:00Z"}
UNDATED = {"manager": "kube-controller-manager"}


def check(*written, namespaces=()):
    clock, api = VirtualClock(), FakeApi()
    items = [
        {"metadata": {"name": f"web-{number}", "namespace": "shop", "managedFields": fields}}
        for number, fields in enumerate(written)
    ]
    api.fault = lambda request: Answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    async def main():
        await ensure_hpa_controller_is_off(Client(clock, AsgiTransport(api), seed=1), namespaces, NOW)

    clock.run(main())
    return [request.path for request in api.requests]


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
    assert check() == [f"{base}/horizontalpodautoscalers"]
    assert check(namespaces=("a", "b")) == [
        f"{base}/namespaces/a/horizontalpodautoscalers",
        f"{base}/namespaces/b/horizontalpodautoscalers",
    ]
