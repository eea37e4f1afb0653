"""Logging in, staying in for a while, and getting out (S15, S17)."""

import sys

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import Browser, app_of, ask, entered
from trimtab.clock import VirtualClock
from trimtab.dashboard.auth.access import OneToken
from trimtab.dashboard.auth.sessions import LIFETIME_SECONDS, MAX_SESSIONS
from trimtab.dashboard.web.http import WebRequest


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


async def test_sessions_are_bounded_and_the_oldest_goes_first():
    app = app_of()
    first = await entered(app)
    for _ in range(MAX_SESSIONS):
        last = await entered(app)
    assert (await first.get("/api/session")).status == 401
    assert (await last.get("/api/session")).status == 200


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
