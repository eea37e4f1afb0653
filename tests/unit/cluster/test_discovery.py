"""Kinds are found by both kinds of discovery, and half an answer makes nothing unknown (fault F19)."""

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery, GroupUnavailableError, UnknownKindError

LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True},
            {"name": "pods/resize", "kind": "Pod", "namespaced": True},
            {"name": "nodes", "kind": "Node", "namespaced": False},
        ]
    },
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
            {"name": "x.example", "versions": [{"groupVersion": "x.example/v1", "version": "v1"}]},
        ],
    },
    "/apis/apps/v1": {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        ]
    },
    "/apis/x.example/v1": {"resources": [{"name": "gadgets", "kind": "Gadget", "namespaced": True}]},
}


def aggregated(group, plural, kind, *, subresources=(), freshness="Current"):
    resource = {
        "resource": plural,
        "responseKind": {"group": group, "version": "v1", "kind": kind},
        "scope": "Namespaced",
        "subresources": [{"subresource": name} for name in subresources],
    }
    version = {
        "version": "v1",
        "freshness": freshness,
        "resources": [] if freshness == "Stale" else [resource],
    }
    return {"metadata": {"name": group}, "versions": [version]}


def roots(*groups, core=()):
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return {"/api": {**kind, "items": list(core)}, "/apis": {**kind, "items": list(groups)}}


def run(scenario, pages):
    clock = VirtualClock()

    async def main() -> None:
        api = FakeApi()
        api.fault = lambda request: (
            pages[request.path]
            if isinstance(pages[request.path], Answer)
            else Answer(200, pages[request.path])
        )
        await scenario(api, Discovery(Client(clock, AsgiTransport(api), seed=1)), clock)

    clock.run(main())


@pytest.mark.parametrize(
    ("pages", "requests"),
    [
        pytest.param(LEGACY, 5, id="one page per group version"),
        pytest.param(
            roots(
                aggregated("apps", "deployments", "Deployment", subresources=("scale", "status")),
                core=[aggregated("", "pods", "Pod", subresources=("resize",))],
            ),
            2,
            id="aggregated",
        ),
    ],
)
def test_a_kind_is_found_with_its_subresources(pages, requests):
    async def scenario(api, discovery, clock):
        deployments = await discovery.find_kind("apps/v1", "Deployment")
        assert deployments.has_scale
        assert (
            deployments.resource().path("shop", "web", "scale")
            == "/apis/apps/v1/namespaces/shop/deployments/web/scale"
        )
        pods = await discovery.find_kind("v1", "Pod")
        assert not pods.has_scale
        assert "resize" in pods.subresources
        assert (await discovery.served("apps", "v1", "deployments")) == deployments
        assert len(api.requests) == requests

    run(scenario, pages)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param({"major": "1", "minor": "37"}, "1.37", id="plain"),
        pytest.param({"major": "1", "minor": "36+"}, "1.36", id="with a vendor's plus"),
        pytest.param(
            {"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "36"},
            "1.36",
            id="behaving like an older one",
        ),
    ],
)
def test_the_version_is_the_one_whose_rules_the_server_follows(answer, want):
    async def scenario(api, discovery, clock):
        assert await discovery.kubernetes() == want
        assert await discovery.kubernetes() == want
        assert len(api.requests) == 1

    run(scenario, {"/version": answer})


def test_the_version_is_read_again_after_an_upgrade():
    pages = {"/version": {"major": "1", "minor": "36"}}

    async def scenario(api, discovery, clock):
        assert await discovery.kubernetes() == "1.36"
        pages["/version"] = {"major": "1", "minor": "37"}
        await clock.sleep(601)
        assert await discovery.kubernetes() == "1.37"

    run(scenario, pages)


def versions(group, *served):
    """Return a group whose versions serve these kinds, the preferred version first."""
    found = []
    for version, kinds in served:
        resources = [
            {
                "resource": f"{kind.lower()}s",
                "responseKind": {"group": group, "version": version, "kind": kind},
                "scope": "Namespaced",
            }
            for kind in kinds or ()
        ]
        freshness = "Stale" if kinds is None else "Current"
        found.append({"version": version, "freshness": freshness, "resources": resources})
    return {"metadata": {"name": group}, "versions": found}


BOTH = [("v2", ["Gadget"]), ("v1", ["Gadget", "Widget"])]


@pytest.mark.parametrize(
    ("served", "asked", "kind", "want"),
    [
        pytest.param(
            BOTH, "x.example/v1", "Gadget", "v1", id="the version that is asked for, if it is served"
        ),
        pytest.param(BOTH, "x.example/v1beta1", "Gadget", "v2", id="else the group's preferred version"),
        pytest.param(
            BOTH, "x.example/v2", "Widget", "v1", id="else the preferred one of those that have the kind"
        ),
        pytest.param(
            [("v2", None), ("v1", ["Gadget"])], "x.example/v2", "Gadget", "v1", id="and that answer"
        ),
        pytest.param([("v2", None), ("v1", ["Gadget"])], "x.example/v1", "Widget", "?", id="one may have it"),
        pytest.param(BOTH, "x.example/v1", "Gizmo", None, id="no version has it"),
        pytest.param(BOTH, "y.example/v1", "Gadget", None, id="another group is another kind"),
    ],
)
def test_a_kind_is_found_by_group_and_kind_in_any_version(served, asked, kind, want):
    """RH-M1: references outlive versions; upstream maps group and kind."""

    async def scenario(api, discovery, clock):
        if want in {None, "?"}:
            with pytest.raises(UnknownKindError if want is None else GroupUnavailableError):
                await discovery.find_kind(asked, kind)
            return
        found = await discovery.find_kind(asked, kind)
        assert (found.group, found.version, found.kind) == ("x.example", want, kind)

    run(scenario, roots(versions("x.example", *served)))


def test_an_unknown_kind_is_looked_for_again_but_not_in_a_loop():
    async def scenario(api, discovery, clock):
        for _ in range(50):
            with pytest.raises(UnknownKindError, match="no kind Widget in apps/v1"):
                await discovery.find_kind("apps/v1", "Widget")
            await clock.sleep(1)
        assert len(api.requests) <= 2 * 6

    run(scenario, roots(aggregated("apps", "deployments", "Deployment")))


def test_a_kind_installed_later_is_found():
    pages = roots(aggregated("apps", "deployments", "Deployment"))

    async def scenario(api, discovery, clock):
        assert await discovery.served("x.example", "v1", "gadgets") is None
        pages["/apis"]["items"].append(aggregated("x.example", "gadgets", "Gadget"))
        await clock.sleep(11)
        found = await discovery.served("x.example", "v1", "gadgets")
        assert found is not None
        assert found.kind == "Gadget"

    run(scenario, pages)


@pytest.mark.parametrize("legacy", [True, False], ids=["503 on one group", "stale in the aggregate"])
def test_f19_a_group_that_is_down_leaves_the_others_and_is_not_unknown(legacy):
    if legacy:
        pages = {**LEGACY, "/apis/x.example/v1": Answer(503)}
    else:
        pages = roots(
            aggregated("apps", "deployments", "Deployment"),
            aggregated("x.example", "gadgets", "Gadget", freshness="Stale"),
        )

    async def scenario(api, discovery, clock):
        assert (await discovery.find_kind("apps/v1", "Deployment")).plural == "deployments"
        with pytest.raises(GroupUnavailableError, match="cannot tell"):
            await discovery.find_kind("x.example/v1", "Gadget")
        assert ("x.example", "v1") in discovery.unavailable()

    run(scenario, pages)


def test_f19_what_was_known_of_a_group_stays_known_while_it_is_down():
    pages = roots(aggregated("x.example", "gadgets", "Gadget"))

    async def scenario(api, discovery, clock):
        known = await discovery.find_kind("x.example/v1", "Gadget")
        pages["/apis"]["items"] = [aggregated("x.example", "gadgets", "Gadget", freshness="Stale")]
        await clock.sleep(700)
        assert await discovery.find_kind("x.example/v1", "Gadget") == known
        pages["/apis"] = pages["/api"] = Answer(503)
        await clock.sleep(700)
        assert await discovery.find_kind("x.example/v1", "Gadget") == known

    run(scenario, pages)


def test_without_any_answer_the_first_question_fails():
    async def scenario(api, discovery, clock):
        with pytest.raises(errors.Unavailable):
            await discovery.find_kind("apps/v1", "Deployment")

    run(scenario, {"/api": Answer(503)})
