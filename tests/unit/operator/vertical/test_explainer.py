"""What `explain` watches, when it gives up, and what it leaves behind."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from tests.unit.decide.vertical.policy_builders import recommended, vpa
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.resource import STATEFUL_SETS
from trimtab.cluster.transport import Request, Response
from trimtab.model.crds import all_crds
from trimtab.model.vpa.types import RecommenderSelector
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import (
    PATIENCE_SECONDS,
    CannotLookError,
    Explainer,
    NotFoundError,
    _estimator_lines,
)
from trimtab.operator.vertical.kinds import SCOPES, VPAS
from trimtab_lab.apiserver.server import Server


class Failing:
    """A transport that answers requests for some resources with an error."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.failing: dict[str, int] = {}

    def _failure(self, request: Request) -> Response | None:
        code = self.failing.get(request.path.rpartition("/")[2])
        if code is None:
            return None
        status = {"kind": "Status", "status": "Failure", "code": code, "message": "no", "reason": "X"}
        return Response(code, {}, json.dumps(status).encode())

    async def request(self, request: Request) -> Response:
        return self._failure(request) or await self._transport.request(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def play(scenario: Callable[[Explainer, Failing, Client], Awaitable[None]], **settings: Any) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
            labels = {"app": "db"}
            spec = {"containers": [{"name": "app", "image": "none"}]}
            template = {"metadata": {"labels": labels}, "spec": spec}
            body = {"serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
            await client.create(STATEFUL_SETS.untyped(), {"metadata": {"name": "db"}, "spec": body}, "shop")
            target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
            base = {"metadata": {"name": "base"}, "spec": {"targetRef": target}}
            await client.create(VPAS.untyped(), base, "shop")
            transport = Failing(client.sender.transport)
            found: Any = transport
            explainer = Explainer(Client(clock, found, seed=2), "shop", Settings.of(**settings))
            try:
                await scenario(explainer, transport, client)
            finally:
                await explainer.close()

    clock.run(main())


def test_no_watch_goes_on_after_the_explanation():
    async def scenario(explainer: Explainer, _transport: Failing, _client: Client) -> None:
        before = asyncio.all_tasks()
        await explainer.vpa("base")
        watches = asyncio.all_tasks() - before
        assert watches
        await explainer.close()
        assert not [task for task in watches if not task.done()]

    play(scenario)


@pytest.mark.parametrize(("kind", "name"), [("pod", "no pod shop/none"), ("vpa", "no VPA shop/none")])
def test_what_does_not_exist_is_named(kind, name):
    async def scenario(explainer: Explainer, _transport: Failing, _client: Client) -> None:
        with pytest.raises(NotFoundError, match=name):
            await getattr(explainer, kind)("none")

    play(scenario)


@pytest.mark.parametrize(
    ("code", "soonest", "latest"),
    [
        pytest.param(403, 0.0, 1.0, id="a refusal ends it at once"),
        pytest.param(500, PATIENCE_SECONDS, PATIENCE_SECONDS + 1, id="an error after a while"),
    ],
)
def test_a_list_that_fails_ends_the_explanation(code, soonest, latest):
    async def scenario(explainer: Explainer, transport: Failing, client: Client) -> None:
        transport.failing = {"verticalpodautoscalers": code}
        began = client.clock.monotonic()
        with pytest.raises(CannotLookError, match="verticalpodautoscalers cannot be listed"):
            await explainer.vpa("base")
        assert soonest <= client.clock.monotonic() - began <= latest

    play(scenario)


@pytest.mark.parametrize(("by_node", "is_named"), [(True, True), (False, False)])
def test_without_the_nodes_scopes_that_select_them_are_named(by_node, is_named):
    async def scenario(explainer: Explainer, transport: Failing, client: Client) -> None:
        selector = {"matchLabels": {"a": "b"}}
        spec = {"nodeSelector": selector} if by_node else {"podSelector": selector}
        for name in ("zone", "disk"):
            await client.create(SCOPES.untyped(), {"metadata": {"name": name}, "spec": spec}, "shop")
        transport.failing = {"nodes": 403}
        lines = (await explainer.vpa("base")).lines
        (unknown,) = [line for line in lines if line.startswith("not known")] or [""]
        assert unknown.endswith("in disk, zone of this namespace") is is_named

    play(scenario, feature_gates="VPASelectorRefinement=true")


def test_with_the_nodes_nothing_is_unknown():
    async def scenario(explainer: Explainer, _transport: Failing, client: Client) -> None:
        spec = {"nodeSelector": {"matchLabels": {"a": "b"}}}
        await client.create(SCOPES.untyped(), {"metadata": {"name": "zone"}, "spec": spec}, "shop")
        lines = (await explainer.vpa("base")).lines
        assert not [line for line in lines if line.startswith("not known")]

    play(scenario, feature_gates="VPASelectorRefinement=true")


@pytest.mark.parametrize(
    ("kind", "status", "is_shown"),
    [
        ("ConfigUnsupported", "True", True),
        ("NoNodeFits", "True", True),
        ("ReplacementRefused", "True", True),
        ("EstimatorFailed", "True", True),
        ("ConfigUnsupported", "False", False),
        ("RecommendationProvided", "True", False),
    ],
)
def test_conditions_that_keep_a_recommendation_from_its_pods_are_shown(kind, status, is_shown):
    async def scenario(explainer: Explainer, _transport: Failing, client: Client) -> None:
        condition = {
            "type": kind,
            "status": status,
            "message": "because",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = {"status": {"conditions": [condition]}}
        await client.patch(VPAS.untyped(), "base", "shop", body, subresource="status")
        lines = (await explainer.vpa("base")).lines
        assert (f"  {kind}: because" in lines) is is_shown

    play(scenario)


def test_amounts_of_an_estimator_come_from_the_status_until_a_checkpoint_has_them():
    plain = vpa("base", recommended("1Gi", "100m", upper={"cpu": "200m"}))
    assert _estimator_lines(plain) == []
    named = (RecommenderSelector(name="example.com/Mine"),)

    def estimated(found: Any) -> Any:
        return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, recommenders=named))

    assert _estimator_lines(estimated(plain)) == [
        "  app cpu: lower bound 100m, target 100m, upper bound 200m",
        "  app memory: lower bound 1 GiB, target 1 GiB, upper bound none",
        "  by example.com/Mine, whose reason is known from the next checkpoint on, or at once with --operator",
    ]
    (missing,) = _estimator_lines(estimated(vpa("base")))
    assert missing.startswith("  no recommendation yet: spec.recommenders names example.com/Mine")
