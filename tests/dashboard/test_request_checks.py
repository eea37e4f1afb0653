"""What a browser can be tricked into sending is refused, and every answer says how it may be used (S15, S17, S18, S22)."""

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import Browser, app_of, ask, entered

GOLDEN = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
OF_THE_ANSWER = {"content-type", "content-length", "cache-control", "etag", "set-cookie"}


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/overview", "/api/nothing", "/../secrets"])
async def test_every_answer_carries_exactly_the_golden_headers(path):
    answer = await ask(app_of(), "GET", path)
    assert {name: value for name, value in answer.headers.items() if name not in OF_THE_ANSWER} == GOLDEN


async def test_over_https_the_browser_is_told_to_stay_there():
    answer = await ask(app_of(), "GET", "/", scheme="https")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8081",
        "127.0.0.1.evil.example",
        "",
        "[",
        "evil.example@127.0.0.1",
        "127.0.0.1/evil.example",
        "127.0.0.1?",
        "127.0.0.1:8081\n",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/session", "/events", "/static/app.css"])
async def test_another_host_is_misdirected_even_for_static_files(host, path):
    assert (await ask(app_of(), "GET", path, headers={"host": host})).status == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]:8081", "trimtab.example:443"]
)
async def test_loopback_and_the_named_hosts_are_answered(host):
    app = app_of(hosts=("Trimtab.Example",))
    assert (await ask(app, "GET", "/", headers={"host": host})).status == 200


@pytest.mark.parametrize("first", ["127.0.0.1", "127.0.0.1:8081", "evil.example"])
@pytest.mark.parametrize("second", ["127.0.0.1", "localhost:8081", "evil.example"])
async def test_two_host_headers_are_refused(first, second):
    """Joined by a comma they passed where the first had a port: the second was read as a part of the port."""
    answer = await ask(app_of(), "GET", "/", headers={"host": first, "Host": second})
    assert answer.status == 400


@pytest.mark.parametrize("path", ["/api/hpa", "/api/vpa"])
async def test_many_query_parameters_are_a_bad_request(path, caplog):
    """They were an internal error with a traceback in the log."""
    browser = await entered(app_of(stage.steady()))
    query = "&".join(f"id=hpa/shop/{number}" for number in range(30))
    assert (await browser.get(path, query=query)).status == 400
    assert caplog.records == []


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"origin": "http://evil.example"}, id="another site"),
        pytest.param({"origin": "http://127.0.0.1:9999"}, id="another port of this machine"),
        pytest.param({"origin": "https://127.0.0.1:8081"}, id="another scheme"),
        pytest.param({"origin": "null"}, id="a sandboxed page"),
        pytest.param({"sec-fetch-site": "cross-site"}, id="the browser says cross-site"),
        pytest.param({"sec-fetch-site": "same-site"}, id="a sibling host"),
    ],
)
async def test_another_origin_is_refused(headers):
    browser = await entered(app_of(stage.steady()))
    answer = await ask(browser.app, "GET", "/api/overview", headers={"cookie": browser.cookie, **headers})
    assert answer.status == 403


@pytest.mark.parametrize(
    "path", ["/api/overview", "/api/hpa", "/api/session", "/events", "/metrics", "/debug/pprof"]
)
async def test_without_a_login_nothing_is_told(path):
    answer = await ask(app_of(stage.steady()), "GET", path)
    assert answer.status == 401
    assert b"shop" not in answer.body


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"x_trimtab_csrf": "guessed"}, id="a guessed secret"),
        pytest.param({"x_trimtab_csrf": None}, id="no secret, as a form sends it"),
        pytest.param({"origin": None}, id="no origin"),
        pytest.param({"origin": "http://evil.example"}, id="a foreign origin"),
        pytest.param({"content_type": "text/plain"}, id="the body of a form"),
    ],
)
@pytest.mark.parametrize("path", ["/api/whatif", "/api/loads", "/api/logout"])
async def test_a_forged_post_is_refused(path, forged):
    browser = await entered(app_of(stage.steady()))
    answer = await browser.post(path, {"id": "hpa/shop/web"}, **forged)
    assert answer.status in {403, 415}
    assert (await browser.get("/api/session")).status == 200, "a forged logout has no effect either"


async def test_a_login_from_another_page_is_refused():
    app = app_of()
    answer = await Browser(app).post("/api/login", {"token": app.token}, origin="http://evil.example")
    assert answer.status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
async def test_only_get_head_and_post_are_answered(method):
    assert (await ask(app_of(), method, "/")).status == 405


async def test_a_long_body_is_cut_off():
    browser = await entered(app_of(stage.steady()))
    assert (await browser.post("/api/whatif", {"id": "x" * 70_000})).status == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"id": 1}', b"\xff", b"[" * 5000])
async def test_a_body_of_another_shape_is_unprocessable(body):
    app = app_of(stage.steady())
    headers = {"authorization": f"Bearer {app.token}"}
    assert (await ask(app, "POST", "/api/whatif", headers=headers, body=body)).status == 422


async def test_head_has_the_headers_of_get_and_no_body():
    head, get = [await ask(app_of(), method, "/") for method in ("HEAD", "GET")]
    assert head.headers == get.headers
    assert head.body == b""
