"""Logging in, staying in for a while, and getting out (S15, S17)."""

import asyncio
import base64
import json
import sys
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import Browser, app_of, ask, entered, stream
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.dashboard.auth.access import ClusterAccess, OneToken
from trimtab.dashboard.auth.rights import LocalViewer
from trimtab.dashboard.auth.sessions import (
    LIFETIME_SECONDS,
    MAX_SESSIONS,
    MAX_VIEWER_SESSIONS,
    REVIEW_SECONDS,
    Session,
)
from trimtab.dashboard.auth.tokens import (
    INVALID_SECONDS,
    MAX_FAILURES,
    SHARED_FAILURES,
    SHARED_PER_SECOND,
)
from trimtab.dashboard.web.http import RefusedError, WebRequest


async def test_the_printed_token_opens_and_any_other_does_not():
    app = app_of(stage.steady())
    assert (await Browser(app).login(app.token + "x")).status == 401
    assert (await Browser(app).login("")).status == 401
    browser = await entered(app)
    assert (await browser.get("/api/overview")).json()["horizontal"][0]["name"] == "web"


def test_the_address_carries_the_token_where_browsers_send_it_to_no_server():
    app = app_of()
    assert app.url(8081) == f"http://127.0.0.1:8081/#token={app.token}"


async def test_every_program_has_a_token_of_its_own():
    assert len({app_of().token for _ in range(20)}) == 20
    with pytest.raises(ValueError, match="at least 16"):
        OneToken("short")


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites():
    app = app_of()
    cookie = (await Browser(app).login(app.token)).headers["set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith("trimtab-session-8081=")
    assert attributes == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]


async def test_over_https_the_cookie_is_bound_to_the_host():
    app = app_of()
    browser = Browser(app, scheme="https")
    cookie = (await browser.login(app.token)).headers["set-cookie"]
    assert cookie.startswith("__Host-trimtab-session-8081=")
    assert cookie.endswith("; Secure")
    assert (await browser.get("/api/overview")).status == 200


async def test_the_token_is_never_told_again():
    app = app_of(stage.steady())
    browser = await entered(app)
    for path in ("/api/session", "/api/overview", "/"):
        assert app.token.encode() not in (await browser.get(path)).body


async def test_logging_out_ends_the_session_at_the_server():
    browser = await entered(app_of())
    answer = await browser.post("/api/logout", {})
    assert (answer.status, "Max-Age=0" in answer.headers["set-cookie"]) == (204, True)
    assert (await browser.get("/api/session")).status == 401, "even with the old cookie"


def test_a_session_ends_after_twelve_hours():
    clock = VirtualClock()

    async def main():
        browser = await entered(app_of(clock=clock))
        await clock.sleep(LIFETIME_SECONDS - 1)
        assert (await browser.get("/api/session")).status == 200
        await clock.sleep(1)
        assert (await browser.get("/api/session")).status == 401

    clock.run(main())


class Named:
    """Knows the viewers whose tokens a test gives, until it takes them away."""

    login_token = "a token of a test"

    def __init__(self, **viewers):
        self.viewers = viewers
        self.asked = []
        self.is_down = False

    async def viewer(self, token):
        self.asked.append(token)
        if self.is_down:
            raise RefusedError(503, "the cluster cannot be asked")
        name = self.viewers.get(token)
        return SimpleNamespace(name=name, may_list=self._may_list, known=lambda _: None) if name else None

    async def _may_list(self, listing):
        return True


async def logged_in(app, token):
    browser = Browser(app)
    assert (await browser.login(token)).status == 204
    return browser


async def test_sessions_are_bounded_and_the_oldest_goes_first():
    tokens = {f"token-{number}": f"viewer-{number}" for number in range(MAX_SESSIONS + 1)}
    app = app_of(access=Named(**tokens))
    browsers = [await logged_in(app, token) for token in tokens]
    assert (await browsers[0].get("/api/session")).status == 401
    assert (await browsers[1].get("/api/session")).status == 200
    assert (await browsers[-1].get("/api/session")).status == 200


async def test_a_viewer_who_logs_in_often_ends_only_their_own_sessions():
    """One viewer could end everybody's session by logging in 256 times."""
    app = app_of(access=Named(a="ann", b="bob"))
    bob = await logged_in(app, "b")
    anns = [await logged_in(app, "a") for _ in range(MAX_VIEWER_SESSIONS + 1)]
    assert (await anns[0].get("/api/session")).status == 401
    assert (await anns[1].get("/api/session")).status == 200
    assert (await bob.get("/api/session")).status == 200


def web_token(**claims):
    """Make a token as clusters issue them; nobody here looks at its signature."""
    parts = ({"alg": "RS256"}, claims)
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + ".x"
    )


def test_a_session_ends_when_its_token_expires():
    """It lasted twelve hours, whatever the token said."""
    clock = VirtualClock()

    async def main():
        token = web_token(exp=int(clock.now().timestamp()) + 600)
        app = app_of(clock=clock, access=Named(**{token: "ann"}))
        browser = Browser(app)
        cookie = (await browser.login(token)).headers["set-cookie"]
        assert "Max-Age=600" in cookie
        await clock.sleep(599)
        assert (await browser.get("/api/session")).status == 200
        await clock.sleep(1)
        assert (await browser.get("/api/session")).status == 401
        assert (await browser.login(token)).status == 401, "an expired token opens no session"

    clock.run(main())


@pytest.mark.parametrize(
    "token",
    [
        "plain",
        "a.b.c",
        "a.!!!.c",
        web_token(),
        web_token(exp=None),
        web_token(exp="soon"),
        web_token(exp=1e300),
    ],
)
def test_a_token_that_does_not_say_when_it_expires_opens_twelve_hours(token):
    clock = VirtualClock()

    async def main():
        cookie = (await Browser(app_of(clock=clock, access=Named(**{token: "ann"}))).login(token)).headers[
            "set-cookie"
        ]
        assert "Max-Age=43200" in cookie

    clock.run(main())


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({}, id="the token is revoked"),
        pytest.param({"token-of-ann": "eve"}, id="the token is somebody else's"),
    ],
)
def test_a_session_and_its_stream_end_soon_after_its_token(after):
    clock = VirtualClock()

    async def main():
        access = Named(**{"token-of-ann": "ann"})
        app = app_of(stage.steady(), clock=clock, access=access)
        running = asyncio.ensure_future(app.run())
        browser = await logged_in(app, "token-of-ann")
        async with stream(app, browser) as (_, task):
            await clock.sleep(3600)
            assert not task.done()
            assert len(access.asked) < 1.1 * 3600 / REVIEW_SECONDS
            access.viewers = after
            await clock.sleep(REVIEW_SECONDS + 2)
            assert task.done()
        assert (await browser.get("/api/session")).status == 401
        access.viewers = {"token-of-ann": "ann"}
        assert (await browser.get("/api/session")).status == 401, "an ended session stays ended"
        running.cancel()

    clock.run(main())


def test_a_session_outlives_an_outage_of_the_cluster():
    clock = VirtualClock()

    async def main():
        access = Named(**{"token-of-ann": "ann"})
        browser = await logged_in(app_of(clock=clock, access=access), "token-of-ann")
        await clock.sleep(REVIEW_SECONDS)
        access.is_down = True
        assert (await browser.get("/api/session")).status == 503, "no answer is no yes"
        access.is_down = False
        assert (await browser.get("/api/session")).status == 200

    clock.run(main())


async def guesses(app, numbers, **browser):
    """Log in with tokens that nobody has, and return the statuses."""
    return Counter([(await Browser(app, **browser).login(f"guess-{number}")).status for number in numbers])


def test_invalid_tokens_are_limited_and_valid_ones_of_the_same_address_are_not():
    """Every guess was a TokenReview of the cluster, and 20 of them shut out everybody behind the same proxy."""
    clock = VirtualClock()

    async def main():
        access = Named(**{f"token-{number}": "ann" for number in range(100)})
        app = app_of(clock=clock, access=access)
        assert await guesses(app, range(MAX_FAILURES + 10)) == {401: MAX_FAILURES + 10}
        for number in range(60):
            await logged_in(app, f"token-{number}")
        flood = await guesses(app, range(1000, 1500))
        assert flood == {401: SHARED_FAILURES - 10, 429: 500 - (SHARED_FAILURES - 10)}
        assert len(access.asked) == MAX_FAILURES + SHARED_FAILURES + 60, "the cluster is asked for no more"
        await logged_in(app, "token-0")
        other = Browser(app, address="10.0.0.2")
        assert (await other.login("token-70")).status == 204, "another address has its own limit"
        await clock.sleep(1.0)
        await logged_in(app, "token-80")
        access.asked.clear()
        for second in range(60):
            await clock.sleep(1.0)
            await guesses(app, range(2000 + 100 * second, 2100 + 100 * second))
        assert len(access.asked) <= 60 * (SHARED_PER_SECOND + 1) + MAX_FAILURES

    clock.run(main())


def test_a_script_that_repeats_an_expired_token_costs_one_review_and_refuses_nobody():
    """A forgotten script behind the same proxy shut out every viewer there."""
    clock = VirtualClock()

    async def main():
        access = Named(a="ann")
        app = app_of(clock=clock, access=access)
        headers = {"authorization": "Bearer expired"}
        for _ in range(200):
            assert (await ask(app, "GET", "/api/overview", headers=headers)).status == 401
        assert access.asked == ["expired"]
        await logged_in(app, "a")
        access.viewers["expired"] = "eve"
        await clock.sleep(INVALID_SECONDS)
        assert (await ask(app, "GET", "/api/overview", headers=headers)).status == 200

    clock.run(main())


def test_a_token_that_was_valid_is_refused_once_it_is_not():
    clock = VirtualClock()

    async def main():
        access = Named(a="ann")
        app = app_of(clock=clock, access=access)
        await logged_in(app, "a")
        access.viewers.clear()
        assert (await Browser(app).login("a")).status == 401
        assert (await Browser(app).login("a")).status == 401
        assert len(access.asked) == 2

    clock.run(main())


@pytest.mark.parametrize(
    ("access", "words"),
    [
        (OneToken("a-token-of-a-program"), "the token that the program printed"),
        (ClusterAccess(VirtualClock(), cast("Client", None)), "kubectl create token NAME"),
    ],
    ids=["own token", "token of the cluster"],
)
async def test_a_refusal_says_where_a_token_comes_from(access, words):
    """In a cluster it named a token that the program had printed. It prints none there."""
    app = app_of(access=access)
    ended = {"cookie": "trimtab-session-8081=an-ended-session"}
    for headers in (ended, {}):
        for path in ("/api/session", "/events"):
            answer = await ask(app, "GET", path, headers=headers)
            assert (answer.status, words in answer.json()["message"]) == (401, True)
    answer = await Browser(app).login("")
    assert (answer.status, words in answer.json()["message"]) == (401, True)


def test_a_token_is_in_no_representation_of_a_session():
    session = Session(LocalViewer(), 0.0, "the-token")
    assert not [secret for secret in ("the-token", session.identity, session.csrf) if secret in repr(session)]


async def test_a_script_may_bring_the_token_with_each_request():
    app = app_of(stage.steady())
    headers = {"authorization": f"Bearer {app.token}"}
    assert (await ask(app, "GET", "/api/overview", headers=headers)).status == 200
    body = b'{"id": "hpa/shop/web", "edits": {}}'
    assert (await ask(app, "POST", "/api/whatif", headers=headers, body=body)).status == 200
    wrong = {"authorization": f"Basic {app.token}"}
    assert (await ask(app, "GET", "/api/overview", headers=wrong)).status == 401


@pytest.mark.parametrize(
    "cookie",
    ["trimtab-session-8081=", "trimtab-session-8081=x", "=;;=", "a" * 9000, "trimtab-session-8081=\x01"],
)
async def test_a_made_up_cookie_is_nobody(cookie):
    assert (await ask(app_of(), "GET", "/api/session", headers={"cookie": cookie})).status == 401


@pytest.mark.parametrize("cookies", ["a=1; {}", "{}; a=1", "a;{};=", 'a="1"; {} ; b', "__Host-{}; {}"])
async def test_the_session_is_found_among_other_cookies(cookies):
    browser = await entered(app_of())
    browser.cookie = cookies.format(browser.cookie, browser.cookie)
    assert (await browser.get("/api/session")).status == 200


LINEAR = {"get", "split", "partition", "strip"}


@pytest.mark.parametrize("filler", ["\\", '"\\"', ";", "=", '="', "a=1;", '\\";'])
def test_a_long_cookie_is_read_in_linear_time(filler):
    """`http.cookies` took 3.4 s for 30 KB of backslashes, without a login, on Pythons before 3.11.10.

    Its time is spent inside of one search per character, so the calls are compared and not counted.
    """
    request = WebRequest("GET", "/", "", {"cookie": f'trimtab="{filler * 1000}"'}, is_https=False)
    called = set()

    def note(frame, event, argument):
        if event == "c_call":
            called.add(argument.__name__)
        elif event == "call":
            called.add(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        found = request.cookie("trimtab-session-8081")
    finally:
        sys.setprofile(None)
    assert found == ""
    assert called - {"WebRequest.cookie", "setprofile"} <= LINEAR


async def test_two_dashboards_on_one_machine_do_not_log_each_other_out():
    one, other = app_of(), app_of()
    first = await entered(one, host="127.0.0.1:8081")
    second = await entered(other, host="127.0.0.1:8082")
    first.cookie = second.cookie = f"{first.cookie}; {second.cookie}"
    assert (await first.get("/api/session")).status == 200
    assert (await second.get("/api/session")).status == 200
