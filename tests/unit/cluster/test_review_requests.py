"""What is asked in TokenReviews and SubjectAccessReviews, and which answers count as a yes."""

import json

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi
from trimtab.clock import VirtualClock
from trimtab.cluster import access_reviews
from trimtab.cluster.access_reviews import (
    AccessReviewer,
    AccessStatus,
    NonResourceAttributes,
    ResourceAttributes,
    ReviewCache,
    ReviewFailedError,
    TokenReviewer,
    UserInfo,
)
from trimtab.cluster.client import Client

ANN = UserInfo("ann", "u1", ("devs", "ops"), (("scopes", ("read", "write")),))
READ_PODS = ResourceAttributes("get", "", "pods", "shop", "v1", "web", "log")


def run(answer, act, code=200):
    clock = VirtualClock()
    api = FakeApi()
    api.fault = lambda request: Answer(code, answer)

    async def main():
        return await act(clock, Client(clock, AsgiTransport(api), seed=1))

    result = clock.run(main())
    return result, [json.loads(request.body) for request in api.requests]


def authenticate(token):
    return lambda clock, client: TokenReviewer(clock, client).user(token)


def test_the_user_of_a_token_has_its_groups_and_extra_fields():
    user = {
        "username": "ann",
        "uid": "u1",
        "groups": ["devs", "ops"],
        "extra": {"scopes": ["read", "write"]},
    }
    answer = {"status": {"authenticated": True, "user": user}}
    found, asked = run(answer, authenticate("secret"))
    assert found == ANN
    assert asked == [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}}
    ]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"authenticated": False, "user": {"username": "ann"}}, id="not authenticated"),
        pytest.param({"authenticated": True, "user": {"username": ""}}, id="no name"),
        pytest.param({}, id="nothing"),
    ],
)
def test_a_token_of_nobody_has_no_user(status):
    assert run({"status": status}, authenticate("secret"))[0] is None


@pytest.mark.parametrize(
    ("token", "requests"),
    [("", 0), ("x" * 16 * 1024, 1), ("x" * (16 * 1024 + 1), 0)],
    ids=["empty", "the longest", "too long"],
)
def test_a_token_that_cannot_be_one_is_not_reviewed(token, requests):
    answer = {"status": {"authenticated": True, "user": {"username": "ann"}}}
    found, asked = run(answer, authenticate(token))
    assert (found is not None, len(asked)) == (bool(requests), requests)


@pytest.mark.parametrize(
    ("user", "attributes", "want"),
    [
        pytest.param(
            ANN,
            READ_PODS,
            {
                "user": "ann",
                "uid": "u1",
                "groups": ["devs", "ops"],
                "extra": {"scopes": ["read", "write"]},
                "resourceAttributes": {
                    "verb": "get",
                    "group": "",
                    "resource": "pods",
                    "namespace": "shop",
                    "version": "v1",
                    "name": "web",
                    "subresource": "log",
                },
            },
            id="a resource",
        ),
        pytest.param(
            UserInfo("bob"),
            NonResourceAttributes("get", "/metrics"),
            {"user": "bob", "groups": [], "nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
            id="a path, by a user without uid and extra",
        ),
    ],
)
def test_an_access_review_has_all_that_is_known_of_the_user(user, attributes, want):
    answer = {"status": {"allowed": True}}
    found, asked = run(answer, lambda clock, client: AccessReviewer(clock, client).review(user, attributes))
    assert found.is_allowed
    assert asked[0]["spec"] == want
    assert asked[0]["kind"] == "SubjectAccessReview"


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (AccessStatus(allowed=True), True),
        (AccessStatus(allowed=True, denied=True), False),
        (AccessStatus(denied=True), False),
        (AccessStatus(), False),
    ],
)
def test_a_denial_wins(status, want):
    assert status.is_allowed is want


@pytest.mark.parametrize(("code", "answer"), [(500, {}), (403, {}), (200, {"status": 7})])
def test_a_review_that_fails_is_never_a_yes(code, answer):
    async def act(clock, client):
        with pytest.raises(ReviewFailedError, match="the cluster cannot be asked about this request"):
            await AccessReviewer(clock, client).review(ANN, READ_PODS)

    _, asked = run(answer, act, code)
    assert len(asked) == 1


def test_a_cached_review_is_known_until_it_is_too_old():
    async def act(clock, client):
        reviewer = AccessReviewer(clock, client, 5.0)
        known = [reviewer.cached(ANN, READ_PODS)]
        await reviewer.review(ANN, READ_PODS)
        for seconds in (4.9, 0.1):
            await clock.sleep(seconds)
            known.append(reviewer.cached(ANN, READ_PODS))
        known.append(reviewer.cached(UserInfo("bob"), READ_PODS))
        return [status is not None for status in known]

    assert run({"status": {"allowed": True}}, act)[0] == [False, True, False, False]


def test_the_cache_keeps_the_latest_reviews(monkeypatch):
    monkeypatch.setattr(access_reviews, "_MAX_ENTRIES", 2)
    clock = VirtualClock()
    asked = []

    async def main():
        cache: ReviewCache[str, str] = ReviewCache(clock, 10.0)

        async def get(name):
            async def review():
                asked.append(name)
                return name

            assert await cache.get(name, review) == name

        for name in ("ann", "bob"):
            await get(name)
        await clock.sleep(11)
        for name in ("ann", "cid", "ann", "cid", "bob"):
            await get(name)

    clock.run(main())
    assert asked == ["ann", "bob", "ann", "cid", "bob"]
    assert access_reviews.MAX_CACHE_SECONDS == 10.0
