"""Asks a dashboard without a socket, as a browser, a script or an attacker would."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

from trimtab.clock import SystemClock
from trimtab.dashboard import DashboardApp
from trimtab.dashboard.auth.rights import LocalViewer, NamespaceRights
from trimtab.dashboard.sources import NoVertical, Sources
from trimtab.dashboard.sources.horizontal import OperatorHorizontal

EVERYTHING = NamespaceRights(LocalViewer(), "shop")
"""The rights of a viewer who may see every part of a page."""


class Answer:
    """Status, headers and body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.decode(): value.decode() for name, value in headers}
        self.body = body

    def json(self):
        return json.loads(self.body)


async def ask(app, method, path, *, headers=None, body=b"", scheme="http", query="", address="127.0.0.1"):
    """Send one request and return the whole answer."""
    given = {"host": "127.0.0.1:8081", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "scheme": scheme,
        "client": (address, 50000),
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value is not None],
    }
    messages = iter([{"type": "http.request", "body": body}])
    sent = []

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    return Answer(start["status"], start["headers"], b"".join(part.get("body", b"") for part in parts))


class Browser:
    """Keeps the cookie and sends what a browser sends."""

    def __init__(self, app, *, scheme="http", host="127.0.0.1:8081", address="127.0.0.1"):
        self.address = address
        self.app = app
        self.scheme = scheme
        self.host = host
        self.cookie = None
        self.csrf = ""

    async def get(self, path, **more):
        headers = {"host": self.host, "sec-fetch-site": "same-origin", "cookie": self.cookie}
        return await ask(
            self.app, "GET", path, headers=headers, scheme=self.scheme, address=self.address, **more
        )

    async def post(self, path, value, **headers):
        sent = {
            "host": self.host,
            "origin": f"{self.scheme}://{self.host}",
            "sec-fetch-site": "same-origin",
            "content-type": "application/json",
            "cookie": self.cookie,
            "x-trimtab-csrf": self.csrf,
        }
        sent |= {name.replace("_", "-"): header for name, header in headers.items()}
        body = json.dumps(value).encode()
        return await ask(
            self.app, "POST", path, headers=sent, body=body, scheme=self.scheme, address=self.address
        )

    async def login(self, token):
        answer = await self.post("/api/login", {"token": token})
        if answer.status == 204:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.csrf = (await self.get("/api/session")).json()["csrf"]
        return answer


def app_of(*autoscalers, clock=None, vertical=None, **options):
    """Make a dashboard of some autoscalers."""
    sources = Sources(OperatorHorizontal(list(autoscalers)), vertical or NoVertical())
    return DashboardApp(clock or SystemClock(), sources, **options)


async def entered(app, **how):
    """Return a browser that is logged in."""
    browser = Browser(app, **how)
    assert (await browser.login(app.token)).status == 204
    return browser


@asynccontextmanager
async def stream(app, browser, send=None):
    """Open the live stream; yield the queue of what is sent and the task that sends."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"host", browser.host.encode()), (b"cookie", (browser.cookie or "").encode())],
    }
    gone = asyncio.Event()
    sent: asyncio.Queue[Any] = asyncio.Queue()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    task = asyncio.ensure_future(app(scope, receive, send or sent.put))
    try:
        yield sent, task
    finally:
        gone.set()
        await task
