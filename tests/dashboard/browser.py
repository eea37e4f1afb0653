"""A real Chromium over the DevTools protocol: just enough to open a page, click, read and take pictures."""

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
from contextlib import asynccontextmanager

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIST = "document.querySelector('.list')"


def program():
    """Return the browser's path, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


NEEDS_BROWSER = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(program() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed"),
    # Chromium's own start warns about what a container lacks; the page's complaints are asserted below.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def has(selector, text):
    """Return the expression that is true if an element contains a text."""
    return f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})"


class Tab:
    """One page; what it complains about is collected in `complaints`."""

    def __init__(self, socket):
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self.complaints = []
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self):
        async for message in self._socket:
            data = json.loads(message.data)
            if "id" in data:
                self._waiting.pop(data["id"]).set_result(data)
            elif data["method"] == "Runtime.exceptionThrown":
                self.complaints.append(data["params"]["exceptionDetails"]["exception"]["description"])
            elif data["method"] == "Log.entryAdded" and data["params"]["entry"]["level"] == "error":
                self.complaints.append(data["params"]["entry"]["text"])

    async def send(self, method, **params):
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._waiting[number], 60)
        assert "error" not in answer, answer
        return answer["result"]

    async def begin(self):
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")

    async def size(self, width, height, *, scale=1, mobile=False):
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )

    async def scheme(self, name):
        await self.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}]
        )

    async def open(self, url):
        await self.send("Page.navigate", url=url)

    async def run(self, script):
        """Evaluate an expression, waiting for it if it is a promise; return its value."""
        found = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, condition):
        """Wait until an expression is true of the page; whoever changes the page wakes the wait."""
        for _ in range(3):  # a navigation ends the wait together with the page it was asked of
            try:
                return await self.run(_WAIT % condition)
            except AssertionError as error:
                if "navigat" not in str(error) and "destroyed" not in str(error):
                    raise
        raise AssertionError(f"never true: {condition}")

    async def click(self, selector):
        """Click the middle of the first element that fits, with the mouse."""
        await self.until(f"document.querySelector({json.dumps(selector)})")
        x, y = await self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def type(self, selector, text):
        """Replace the text of a field."""
        await self.click(selector)
        await self.run(f"document.querySelector({json.dumps(selector)}).select()")
        await self.send("Input.insertText", text=text)

    async def press(self, key):
        code = _CODES[key]
        typed = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if typed else "rawKeyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed
            )

    async def text(self, selector="body"):
        return await self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    async def picture(self, path, *, whole=False):
        """Write a screenshot; `whole` takes the page beyond the window too."""
        more = {}
        if whole:
            size = (await self.send("Page.getLayoutMetrics"))["cssContentSize"]
            more = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "scale": 1, **{k: size[k] for k in ("width", "height")}},
            }
        found = await self.send("Page.captureScreenshot", format="png", **more)
        path.write_bytes(base64.b64decode(found["data"]))

    async def close(self):
        await self._socket.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


_CODES = {"Tab": 9, "Enter": 13, "ArrowRight": 39}

_WAIT = """new Promise((done) => {
  const holds = () => { try { return (%s); } catch { return false; } };
  if (holds()) return done(true);
  const check = () => { if (holds()) { watcher.disconnect(); done(true); } };
  const watcher = new MutationObserver(check);
  document.addEventListener("focusin", check);
  watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})"""


@asynccontextmanager
async def chromium(directory):
    """Start a browser with a profile of its own, and end it by its process id."""
    options = [
        "--headless=new",
        "--remote-debugging-port=0",
        f"--user-data-dir={directory}",
        "--no-first-run",
    ]
    options += [
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--hide-scrollbars",
    ]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # the sandbox refuses root, who is all there is in a container
    process = await asyncio.create_subprocess_exec(
        program(), *options, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    drain = None
    assert process.stderr is not None
    try:
        while not (
            found := re.search(rb"ws://([^/]+)/", await asyncio.wait_for(process.stderr.readline(), 60))
        ):
            pass
        drain = asyncio.ensure_future(process.stderr.read())
        yield found[1].decode()
    finally:
        process.terminate()
        await process.wait()
        if drain is not None:
            await drain


@asynccontextmanager
async def tab(address):
    """Open a fresh tab of a running browser."""
    async with aiohttp.ClientSession() as session:
        async with session.put(f"http://{address}/json/new?about:blank") as answer:
            where = (await answer.json())["webSocketDebuggerUrl"]
        async with session.ws_connect(where, max_msg_size=0) as socket:
            opened = Tab(socket)
            await opened.begin()
            try:
                yield opened
            finally:
                await opened.close()
