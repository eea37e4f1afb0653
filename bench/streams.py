"""1,000 watch streams on the lab: what one change costs when everybody looks."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

from bench import Rows
from trimtab.clock import SystemClock
from trimtab_lab.apiserver.server import Server

STREAMS = 1_000
CHANGES = 50
_PATH = "/api/v1/namespaces/default/configmaps"


def run() -> Rows:
    """Open the streams, change objects, and wait until each stream has told every change."""
    return asyncio.run(_measure())


async def _measure() -> Rows:
    async with Server(SystemClock()) as server:
        headers = {"authorization": f"Bearer {server.tokens.admin}", "content-type": "application/json"}
        answers = [await server.request("GET", _PATH, "watch=true", headers) for _ in range(STREAMS)]
        listeners = [asyncio.ensure_future(_listen(answer.stream)) for answer in answers]
        await asyncio.sleep(0)
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(CHANGES):
            body = json.dumps({"metadata": {"name": f"change-{number}"}}).encode()
            await server.request("POST", _PATH, "", headers, body)
        await asyncio.gather(*listeners)
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    told = STREAMS * CHANGES
    return [
        {
            "streams": STREAMS,
            "events told": told,
            "events/s": f"{told / seconds:,.0f}",
            "us CPU each": f"{spent / told * 1e6:.1f}",
        }
    ]


async def _listen(stream: AsyncIterator[bytes] | None) -> None:
    assert stream is not None
    told = 0
    async for chunk in stream:
        told += chunk.count(b'"type":"ADDED"')
        if told >= CHANGES:
            return
