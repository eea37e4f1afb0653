"""HTTP transport: microseconds of CPU per request and per watch event, beside aiohttp and Go's net/http.

All talk to one server in a process of its own, in turn and several times; the ratio is of the medians. REQUESTS in the
environment makes it longer.
"""

import asyncio
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time

import aiohttp
import trustme
import uvloop

from bench import Row, Rows
from trimtab.clock import SystemClock
from trimtab.cluster.config import Connection, Credential, StaticCredentials, TlsSettings
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request, lines

REQUESTS = int(os.environ.get("REQUESTS", "4000"))
EVENTS = 4000
ROUNDS = 5
WORKERS = 16
_BODY = b"y" * 700
_TOKEN = "Bearer some-token"
_PEER = Path(__file__).parent / "go" / "transport"

Send = Callable[[str], Awaitable[object]]


def run() -> Rows:
    """Measure plain and TLS, reads, writes and a watch."""
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name, _serving(Path(name)) as addresses:
        peer = _build_peer(Path(name))
        rows: list[Row] = []
        for url in addresses:
            rows += [_requests(url, method, Path(name, "ca.pem"), peer) for method in ("GET", "PATCH")]
            rows.append(_watch(url, Path(name, "ca.pem")))
        return rows


@contextmanager
def _serving(directory: Path) -> Iterator[tuple[str, str]]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    pair = authority.issue_cert("127.0.0.1")
    pair.private_key_and_cert_chain_pem.write_to_path(directory / "pair.pem")
    command = [
        sys.executable,
        "-m",
        "bench._answering",
        str(directory / "pair.pem"),
        str(directory / "pair.pem"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        plain, secure = server.stdout.readline().split()
        yield f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"
        server.terminate()


def _requests(url: str, method: str, authority: Path, peer: Path | None) -> Row:
    ours, theirs, go = [], [], []
    for _ in range(ROUNDS):
        ours.append(_loop_for(_ours(url, method, authority)))
        theirs.append(_loop_for(_aiohttp(url, method, authority)))
        if peer is not None:
            go.append(_go(peer, url, method, authority))
    return _row(f"{method}, {'TLS' if url.startswith('https') else 'plain'}", ours, theirs, go)


def _watch(url: str, authority: Path) -> Row:
    ours = [_loop_for(_our_watch(url, authority)) for _ in range(ROUNDS)]
    theirs = [_loop_for(_aiohttp_watch(url, authority)) for _ in range(ROUNDS)]
    return _row(f"watch event of 7 KB, {'TLS' if url.startswith('https') else 'plain'}", ours, theirs, [])


def _row(what: str, ours: list[float], theirs: list[float], go: list[float]) -> Row:
    mine = statistics.median(ours)
    row = {
        "what": what,
        "ours, µs": f"{mine:.1f} ({min(ours):.1f}-{max(ours):.1f})",
        "aiohttp, µs": f"{statistics.median(theirs):.1f}",
        "aiohttp / ours": f"{statistics.median(theirs) / mine:.1f}",
    }
    if go:
        row["Go, µs"] = f"{statistics.median(go):.1f}"
        row["Go / ours"] = f"{statistics.median(go) / mine:.2f}"
    return row


def _loop_for(measuring: Awaitable[float]) -> float:
    async def main() -> float:
        return await measuring

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _transport(url: str, authority: Path) -> HttpTransport:
    credentials = StaticCredentials(Credential(_TOKEN))
    connection = Connection(url, credentials=credentials, tls=TlsSettings(ca_file=authority))
    return HttpTransport(SystemClock(), connection)


async def _ours(url: str, method: str, authority: Path) -> float:
    transport = _transport(url, authority)
    body = None if method == "GET" else _BODY
    headers = {} if method == "GET" else {"Content-Type": "application/merge-patch+json"}

    async def send(path: str) -> None:
        answer = await transport.request(Request(method, path, (("fieldManager", "x"),), headers, body))
        assert len(answer.body) > 1500

    try:
        return await _measure(send)
    finally:
        await transport.close()


async def _aiohttp(url: str, method: str, authority: Path) -> float:
    body = None if method == "GET" else _BODY
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Authorization": _TOKEN}
    context = ssl.create_default_context(cafile=str(authority))
    connector = aiohttp.TCPConnector(limit=0, ssl=context)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def send(path: str) -> None:
            where = f"{url}{path}?fieldManager=x"
            async with session.request(method, where, headers=headers, data=body) as answer:
                assert len(await answer.read()) > 1500

        return await _measure(send)


async def _measure(send: Send) -> float:
    async def work(count: int) -> None:
        for number in range(count):
            await send(f"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web-{number}/status")

    await asyncio.gather(*(work(20) for _ in range(WORKERS)))
    began = process_time()
    await asyncio.gather(*(work(REQUESTS // WORKERS) for _ in range(WORKERS)))
    return (process_time() - began) / (REQUESTS // WORKERS * WORKERS) * 1e6


async def _our_watch(url: str, authority: Path) -> float:
    transport = _transport(url, authority)
    try:
        async with transport.stream(Request("GET", f"/watch/{EVENTS}")) as stream:
            began = process_time()
            seen = 0
            async for _ in lines(stream, 1 << 20):
                seen += 1
        assert seen == EVENTS
        return (process_time() - began) / EVENTS * 1e6
    finally:
        await transport.close()


async def _aiohttp_watch(url: str, authority: Path) -> float:
    context = ssl.create_default_context(cafile=str(authority))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(f"{url}/watch/{EVENTS}") as answer,
    ):
        began = process_time()
        seen = 0
        async for _ in answer.content:
            seen += 1
        assert seen == EVENTS
        return (process_time() - began) / EVENTS * 1e6


def _build_peer(directory: Path) -> Path | None:
    if shutil.which("go") is None:
        sys.stderr.write("bench transport: no `go` here, so net/http is not measured\n")
        return None
    program = directory / "transport"
    subprocess.run(
        ["go", "build", "-o", program, "."], cwd=_PEER, check=True, capture_output=True, timeout=600
    )
    return program


def _go(peer: Path, url: str, method: str, authority: Path) -> float:
    command = [str(peer), f"{url}/apis/x", str(authority), method, str(REQUESTS), str(WORKERS)]
    environment = {**os.environ, "GOMAXPROCS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=environment)
    return float(done.stdout)
