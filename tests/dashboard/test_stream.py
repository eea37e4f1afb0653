"""Live updates: what changed, to whom it may be shown, until the session ends."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import app_of, ask, entered, stream
from tests.unit.decide.horizontal import builders as given
from trimtab.clock import VirtualClock
from trimtab.dashboard import LoadView
from trimtab.dashboard.auth.rights import HPAS, NATIVE_HPAS, KindInNamespace
from trimtab.dashboard.web import event_stream as streams
from trimtab.serving.server import HttpServer


def rows_in(message):
    kind, data = message["body"].decode().strip().split("\n")
    assert kind == "event: rows"
    return json.loads(data.removeprefix("data: "))


def in_virtual_time(main):
    clock = VirtualClock()
    clock.run(main(clock))


def test_a_new_decision_reaches_the_open_page_and_unchanged_rows_do_not():
    async def main(clock):
        one, other = stage.steady(), stage.steady("other")
        app = app_of(one, other, clock=clock)
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        await clock.sleep(0.5)
        async with stream(app, browser) as (sent, _):
            start = await sent.get()
            assert dict(start["headers"])[b"content-type"] == b"text/event-stream; charset=utf-8"
            assert b"default-src 'self'" in dict(start["headers"])[b"content-security-policy"]
            assert (await sent.get())["body"] == b"retry: 2000\n\n"
            stage.decided(one, 3, given.usage_of(given.pods(3), 90), at=given.T + 15)
            news = rows_in(await sent.get())
            assert [(row["id"], row["desired"]) for row in news["horizontal"]] == [("hpa/shop/web", 6)]
        running.cancel()

    in_virtual_time(main)


def test_a_deleted_autoscaler_is_gone_from_the_page():
    async def main(clock):
        book = [stage.steady(), stage.steady("other")]
        app = app_of(clock=clock)
        app._sources.horizontal._hpa_states = book
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        await clock.sleep(0.5)
        async with stream(app, browser) as (sent, _):
            await sent.get(), await sent.get()
            book.pop()
            assert rows_in(await sent.get())["removed"] == ["hpa/shop/other"]
        running.cancel()

    in_virtual_time(main)


class Granted:
    """Logs everybody in as a viewer of the listings that a test grants."""

    name = "ann"
    login_token = "any token"

    def __init__(self, *listings):
        self.listings = set(listings)

    async def viewer(self, token):
        return self

    def known(self, listing):
        return None

    async def may_list(self, listing):
        return listing in self.listings


def test_a_deletion_in_a_namespace_that_the_viewer_may_not_see_is_not_told():
    """Every viewer was sent the id of each deleted autoscaler, such as "hpa/secret-project/takeover-of-acme"."""

    async def main(clock):
        book = [stage.steady(), stage.steady("takeover-of-acme", "secret-project"), stage.steady("old")]
        app = app_of(clock=clock, access=Granted(KindInNamespace(HPAS, "shop")))
        app._sources.horizontal._hpa_states = book
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        await clock.sleep(0.5)
        async with stream(app, browser) as (sent, _):
            await sent.get(), await sent.get()
            book[1:] = []
            news = rows_in(await sent.get())
            assert (news["removed"], news["horizontal"]) == (["hpa/shop/old"], [])
        running.cancel()

    in_virtual_time(main)


def test_a_right_that_is_revoked_takes_its_rows_from_the_page_and_a_new_one_adds_them():
    async def main(clock):
        shop, native = KindInNamespace(HPAS, "shop"), KindInNamespace(NATIVE_HPAS, "shop")
        access = Granted(shop)
        app = app_of(stage.steady(), stage.steady("old", native=True), clock=clock, access=access)
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        await clock.sleep(0.5)
        async with stream(app, browser) as (sent, _):
            await sent.get(), await sent.get()
            access.listings = {native}
            news = rows_in(await sent.get())
            assert (news["removed"], [row["id"] for row in news["horizontal"]]) == (
                ["hpa/shop/web"],
                ["native/shop/old"],
            )
        running.cancel()

    in_virtual_time(main)


def test_a_quiet_stream_still_gives_a_sign():
    async def main(clock):
        app = app_of(stage.steady(), clock=clock)
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        await clock.sleep(0.5)
        async with stream(app, browser) as (sent, _):
            await sent.get(), await sent.get()
            began = clock.monotonic()
            assert (await sent.get())["body"] == b"event: still\ndata: {}\n\n"
            assert clock.monotonic() - began == pytest.approx(streams.QUIET_REFRESHES, abs=1.1)
        running.cancel()

    in_virtual_time(main)


def test_logging_out_and_stopping_the_program_end_the_stream():
    async def main(clock):
        app = app_of(stage.steady(), clock=clock)
        running = asyncio.ensure_future(app.run())
        browser, other = await entered(app), await entered(app)
        async with stream(app, browser) as (_, first), stream(app, other) as (_, second):
            await clock.sleep(0.5)
            await browser.post("/api/logout", {})
            await first
            assert not second.done()
            running.cancel()
            await second

    in_virtual_time(main)


def test_streams_are_bounded_and_one_viewer_does_not_take_all_of_them():
    async def main(clock):
        app = app_of(clock=clock)
        browser = await entered(app)
        async with AsyncExitStack() as stack:
            for _ in range(streams.MAX_VIEWER_STREAMS):
                await stack.enter_async_context(stream(app, browser))
            await asyncio.sleep(0)
            assert (await ask(app, "GET", "/events", headers={"cookie": browser.cookie})).status == 503
            assert app._streams._open == {"owner": streams.MAX_VIEWER_STREAMS}
            assert streams.MAX_VIEWER_STREAMS < streams.MAX_STREAMS
        assert app._streams._open == {}
        app._streams._open["others"] = streams.MAX_STREAMS
        assert (await ask(app, "GET", "/events", headers={"cookie": browser.cookie})).status == 503

    in_virtual_time(main)


def test_a_stream_that_is_not_read_ends_and_frees_its_place():
    """It waited for its reader for ever, beyond the end of the session."""

    async def main(clock):
        app = app_of(stage.steady(), clock=clock)
        running = asyncio.ensure_future(app.run())
        browser = await entered(app)
        sent = []

        async def send(message):
            sent.append(message)
            if len(sent) > 1:
                await asyncio.Event().wait()

        async with stream(app, browser, send=send) as (_, task):
            await clock.sleep(streams.SEND_SECONDS - 1)
            assert app._streams.are_open
            await clock.sleep(2)
            assert task.done()
            assert not app._streams.are_open
        running.cancel()

    in_virtual_time(main)


async def test_a_slow_reader_costs_one_message_of_memory_however_much_changes():
    """Changes wait in the overview, which has one state, and not in a queue per reader."""
    crowd = stage.crowd(300)
    app = app_of(*crowd)
    browser = await entered(app)
    server = HttpServer(app)
    await server.start("127.0.0.1", 0)
    host = f"127.0.0.1:{server.port}"
    cookie = browser.cookie.replace("-8081=", f"-{server.port}=")
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    try:
        writer.write(f"GET /events HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            while not app._streams.are_open:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
        one_message = len((await browser.get("/api/overview")).body)
        (connection,) = server._state.connections
        waiting = []
        for turn in range(1, 60):
            for hpa_state in crowd:
                stage.decided(hpa_state, 3, given.usage_of(given.pods(3), 50), at=given.T + 15 * turn)
            app.refresh()
            for _ in range(20):
                await asyncio.sleep(0)
            waiting.append(connection.transport.get_write_buffer_size())
        assert max(waiting) > 0, "the reader is slow"
        assert max(waiting) <= 2 * one_message
    finally:
        writer.transport.abort()
        app._streams.close()
        await server.stop()


def test_what_cannot_be_shown_does_not_end_the_program_that_is_shown(caplog):
    async def main(clock):
        app = app_of(clock=clock)
        app._sources.horizontal._hpa_states = [None]
        running = asyncio.ensure_future(app.run())
        await clock.sleep(2.5)
        assert not running.done()
        running.cancel()

    in_virtual_time(main)
    assert {record.message for record in caplog.records} == {"refreshing the dashboard failed"}


class Knobs:
    def __init__(self):
        self.factors = {"web": 1.0}

    def loads(self):
        return [
            LoadView(name=name, title=name.title(), factor=factor) for name, factor in self.factors.items()
        ]

    async def set_factor(self, name, factor):
        if name not in self.factors:
            raise KeyError(name)
        self.factors[name] = factor


async def test_a_load_is_turned_up_by_our_own_page_only():
    knobs = Knobs()
    browser = await entered(app_of(controls=knobs))
    assert (await browser.get("/api/session")).json()["hasLoads"] is True
    assert (await browser.post("/api/loads", {"name": "web", "factor": 3}, x_trimtab_csrf="x")).status == 403
    assert knobs.factors == {"web": 1.0}
    answer = await browser.post("/api/loads", {"name": "web", "factor": 3})
    assert (answer.json()["loads"][0]["factor"], knobs.factors) == (3.0, {"web": 3.0})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "none", "factor": 1}, 404),
        ({"name": "web", "factor": -1}, 422),
        ({"name": "web", "factor": 101}, 422),
        ({"name": "web", "factor": "much"}, 422),
    ],
)
async def test_a_load_that_is_not_there_or_absurd_is_refused(body, status):
    browser = await entered(app_of(controls=Knobs()))
    assert (await browser.post("/api/loads", body)).status == status


async def test_without_a_lab_there_is_no_load_to_change():
    browser = await entered(app_of())
    assert (await browser.get("/api/loads")).json() == {"loads": []}
    assert (await browser.post("/api/loads", {"name": "web", "factor": 1})).status == 404
