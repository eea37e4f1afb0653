"""What the client sends: paths, parameters and bodies of each kind of request."""

import asyncio
import json

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from tests.unit.cluster.test_client import pod
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import (
    Client,
    DeleteOptions,
    ListOptions,
    PatchType,
    Preconditions,
    retry_on_conflict,
)
from trimtab.cluster.resource import DEPLOYMENTS, PODS, Resource
from trimtab.cluster.sender import DryRun
from trimtab.model.status import Status


def sent(act, answer=None):
    """Return the only request that `act` sends."""
    clock, api = VirtualClock(), FakeApi()
    api.fault = lambda request: answer or Answer(200, pod())

    async def main():
        await act(Client(clock, AsgiTransport(api), seed=1))

    clock.run(main())
    (request,) = api.requests
    return request


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, {}),
        ({"how": PatchType.APPLY}, {"force": "true"}),
        ({"how": PatchType.STRATEGIC}, {}),
        ({"is_dry_run": True}, {"dryRun": "All"}),
    ],
)
def test_a_patch_has_its_field_manager_and_only_the_options_it_needs(options, query):
    request = sent(lambda client: client.patch(PODS, "a", "shop", {"spec": {}}, **options))
    assert request.query == {"fieldManager": "trimtab", **query}
    assert json.loads(request.body) == {"spec": {}}


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        (Preconditions(), {}),
        (Preconditions(uid="u"), {"uid": "u"}),
        (Preconditions(resource_version="5"), {"resourceVersion": "5"}),
        (Preconditions("u", "5"), {"uid": "u", "resourceVersion": "5"}),
    ],
)
def test_only_preconditions_that_are_given_are_sent(conditions, want):
    patch = {"metadata": {"labels": {"a": "b"}}}
    merged = conditions.within(patch, PatchType.MERGE)
    assert merged == {"metadata": {"labels": {"a": "b"}, **want}}
    # The server answers 409 for another version that is set, and 422 for a test that fails.
    operations = {"uid": "test", "resourceVersion": "add"}
    assert conditions.within([], PatchType.JSON) == [
        {"op": operations[name], "path": f"/metadata/{name}", "value": value} for name, value in want.items()
    ]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (DeleteOptions(), {}),
        (DeleteOptions(grace_seconds=0), {"gracePeriodSeconds": 0}),
        (DeleteOptions(propagation="Foreground"), {"propagationPolicy": "Foreground"}),
        (DeleteOptions(Preconditions(uid="u")), {"preconditions": {"uid": "u"}}),
    ],
)
def test_a_deletion_has_the_options_that_are_given(options, want):
    request = sent(lambda client: client.delete(PODS, "a", "shop", options=options))
    assert json.loads(request.body) == {"apiVersion": "v1", "kind": "DeleteOptions", **want}


@pytest.mark.parametrize(
    ("options", "query", "extra"),
    [
        ({}, {}, {}),
        ({"dry_run": True}, {"dryRun": "All"}, {}),
        (
            {"preconditions": Preconditions(uid="u")},
            {},
            {"deleteOptions": {"preconditions": {"uid": "u"}}},
        ),
    ],
)
def test_an_eviction_goes_to_its_subresource(options, query, extra):
    request = sent(lambda client: client.evict("a", "shop", **options))
    assert (request.path, request.query) == ("/api/v1/namespaces/shop/pods/a/eviction", query)
    assert json.loads(request.body) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "shop"},
        **extra,
    }


@pytest.mark.parametrize(
    ("selection", "want"),
    [
        (ListOptions(), {}),
        (ListOptions("shop", labels="a=b"), {"labelSelector": "a=b"}),
        (ListOptions("shop", fields="x=y"), {"fieldSelector": "x=y"}),
    ],
)
def test_a_list_has_the_selectors_that_are_given_and_pages_of_500(selection, want):
    empty = Answer(200, {"metadata": {"resourceVersion": "7"}, "items": []})
    request = sent(lambda client: client.list(PODS, selection), empty)
    assert request.query == {"limit": "500", **want}
    where = "/namespaces/shop" if selection.namespace else ""
    assert request.path == f"/api/v1{where}/pods"


def listed(faults):
    clock, api = VirtualClock(), FakeApi()
    api.fault = lambda request: faults.pop(0) if faults else None

    async def main():
        for name in ("a", "b"):
            await api.put(name)
        found = await Client(clock, AsgiTransport(api), seed=1).list(PODS)
        return [item.metadata.name for item in found.items], found.resource_version

    return clock.run(main()), [request.query.get("limit") for request in api.requests]


def test_a_list_whose_pages_expired_is_read_again_without_pages():
    found, limits = listed([Answer(410, status(410, "Expired"))])
    assert found == (["a", "b"], "102")
    assert limits == ["500", None]


UID_CHANGED = {"causes": [{"field": "spec.x"}, {"field": "metadata.uid"}]}
OTHER_FIELD = {"causes": [{"field": "spec.x"}]}


@pytest.mark.parametrize(
    ("uid", "details", "kind"),
    [
        pytest.param("u", UID_CHANGED, errors.Conflict, id="not the object that was seen"),
        pytest.param("u", OTHER_FIELD, errors.Invalid, id="an invalid field"),
        pytest.param(None, UID_CHANGED, errors.Invalid, id="no uid was required"),
    ],
)
def test_a_patch_of_the_successor_of_an_object_is_a_conflict(uid, details, kind):
    refused = Answer(422, status(422, "Invalid", "no", details=details))

    async def act(client):
        with pytest.raises(kind) as caught:
            await client.patch(PODS, "a", "shop", {}, preconditions=Preconditions(uid=uid))
        assert type(caught.value) is kind

    sent(act, refused)


@pytest.mark.parametrize(
    ("failures", "want"),
    [
        pytest.param([], 1, id="no conflict"),
        pytest.param(["Conflict"] * 4, 5, id="four conflicts"),
        pytest.param(["Conflict"] * 5, errors.Conflict, id="five conflicts"),
        pytest.param(["AlreadyExists"], errors.AlreadyExists, id="the name is taken"),
        pytest.param(["NotFound"], errors.NotFound, id="another error"),
    ],
)
def test_a_step_is_tried_five_times_while_it_conflicts(failures, want):
    calls = []

    async def step():
        calls.append(1)
        if len(calls) <= len(failures):
            reason = failures[len(calls) - 1]
            code = 404 if reason == "NotFound" else 409
            raise errors.error_from_status("writing", Status(reason=reason, code=code))
        return len(calls)

    if isinstance(want, int):
        assert asyncio.run(retry_on_conflict(step)) == want
    else:
        with pytest.raises(want):
            asyncio.run(retry_on_conflict(step))
        assert len(calls) == (5 if want is errors.Conflict else 1)


@pytest.mark.parametrize(
    ("resource", "place", "path", "words"),
    [
        (PODS, (None, None), "/api/v1/pods", "pods"),
        (PODS, ("shop", None), "/api/v1/namespaces/shop/pods", "pods shop"),
        (PODS, ("shop", "web"), "/api/v1/namespaces/shop/pods/web", "pods shop/web"),
        (
            DEPLOYMENTS,
            ("shop", "web"),
            "/apis/apps/v1/namespaces/shop/deployments/web",
            "deployments shop/web",
        ),
        (
            Resource("", "v1", "nodes", "Node", dict, namespaced=False),
            (None, "n1"),
            "/api/v1/nodes/n1",
            "nodes n1",
        ),
        (
            Resource("", "v1", "nodes", "Node", dict, namespaced=False),
            ("shop", "n1"),
            "/api/v1/nodes/n1",
            "nodes shop/n1",
        ),
        (PODS, ("shop", "a:b c"), "/api/v1/namespaces/shop/pods/a%3Ab%20c", "pods shop/a:b c"),
    ],
)
def test_an_object_has_its_path_and_its_words(resource, place, path, words):
    assert resource.path(*place) == path
    assert resource.describe(*place) == words


def test_a_subresource_comes_last():
    assert PODS.path("shop", "web", "resize") == "/api/v1/namespaces/shop/pods/web/resize"


def test_copies_of_a_client_keep_what_the_first_one_was_told():
    clock = VirtualClock()

    class Closed:
        def may_write(self):
            return False

        def time_left(self):
            return 0.0

    async def main():
        api = FakeApi()
        client = Client(clock, AsgiTransport(api), seed=1)
        assert not client.is_dry_run
        dry = client.in_dry_run(DryRun("ns", "own"))
        assert dry.is_dry_run
        assert dry.fenced(Closed()).is_dry_run
        with pytest.raises(errors.Fenced):
            await (
                client.fenced(Closed())
                .in_dry_run(DryRun())
                .create(Resource("", "v1", "events", "Event", dict), {}, "shop")
            )
        with pytest.raises(errors.DryRunRefused):
            await dry.create(PODS, pod(), "shop")
        assert api.requests == []

    clock.run(main())
