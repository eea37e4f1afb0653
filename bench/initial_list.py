"""First list of pods: pages, one long list and WatchList, for the cache and for the real API server.

`PODS` in the environment chooses how many pods (default 20,000), `SPACES` how many namespaces there are. Each way fills
the operator's cache of pods in a process of its own, after a restart of the API server, so that no way inherits the heap
of another. Ratios are to pages.

WatchList is a watch with `sendInitialEvents=true`: an event for each object, then a bookmark that ends the list.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench import Row, Rows
from bench.picture.api import Api, series
from bench.picture.generator import Generator, Load
from bench.picture.machine import cpu_seconds, peak_mb
from tools.peers.cluster import RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.cache.informer import Informer, ListedObjects
from trimtab.cluster.client import PAGE_SIZE, Client
from trimtab.cluster.codec.lists import SLICE
from trimtab.cluster.codec.objects import ListPage
from trimtab.cluster.config.kubeconfig import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request
from trimtab.model.json import wire
from trimtab.operator.pods.decoder import CachedPod, PodDecoder
from trimtab.operator.pods.wire import SLIM_PODS, PodWire

PODS = int(os.environ.get("PODS", "20000"))
SPACES = int(os.environ.get("SPACES", "100"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
EACH = 10
PAGES, LONG, WATCH_LIST = "pages", "one list", "WatchList"
WAYS = (PAGES, LONG, WATCH_LIST) if PODS <= 40_000 else (PAGES, WATCH_LIST)
"""One list of more pods is longer than the client reads in one answer."""
_SETTLE = 5.0
_PATIENCE = 120.0
_FIGURES = ("s", "CPU s", "peak MB", "server CPU s", "server peak MB", "server allocated MB", "MB")
_END = b'"k8s.io/initial-events-end":"true"'


def run() -> Rows:
    """Measure each way several times in turn, and return its medians."""
    load = Load(max(PODS // EACH, 1), EACH, SPACES)
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-lists-") as directory,
        RealCluster(Path(directory)) as cluster,
    ):
        Generator(Api(cluster.url, cluster.tokens["admin"]), cluster.etcd).fill(load)
        found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way in WAYS:
                found[way].append(_measure(cluster, way, load.workloads * load.pods))
    medians = {way: _median(figures) for way, figures in found.items()}
    return [_row(way, medians[way], medians[PAGES]) for way in WAYS]


def _measure(cluster: RealCluster, way: str, pods: int) -> dict[str, float]:
    cluster.restart_apiserver()
    api = Api(cluster.url, cluster.tokens["admin"])
    while api.count("/api/v1/pods") < pods:
        time.sleep(0.2)
    time.sleep(_SETTLE)
    server = cluster.pids["kube-apiserver"]
    Path(f"/proc/{server}/clear_refs").write_text("5")  # the peak is counted from now on
    before, spent, allocated = peak_mb(server), cpu_seconds(server), _allocated(api)
    command = [sys.executable, "-m", "bench.initial_list", str(cluster.kubeconfig), way]
    child = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    figures: dict[str, float] = json.loads(child.stdout)
    if figures.pop("pods") < pods:
        raise RuntimeError(f"{way}: not all pods were cached")
    return figures | {
        "server CPU s": cpu_seconds(server) - spent,
        "server peak MB": peak_mb(server) - before,
        "server allocated MB": _allocated(api) - allocated,
    }


def _allocated(api: Api) -> float:
    """Return what the API server has allocated so far, which does not depend on when memory is collected."""
    return sum(value for _, _, value in series(api.text("/metrics"), "go_memstats_alloc_bytes_total")) / 1e6


def _median(figures: list[dict[str, float]]) -> dict[str, float]:
    return {name: sorted(one[name] for one in figures)[len(figures) // 2] for name in _FIGURES} | {
        "is in order": min(one["is in order"] for one in figures)
    }


def _row(way: str, figures: dict[str, float], pages: dict[str, float]) -> Row:
    cells = {name: f"{figures[name]:.1f} ({figures[name] / (pages[name] or 1):.2f})" for name in _FIGURES}
    return {"way": way, **cells, "order": "by key" if figures["is in order"] else "other"}


class PodEvent(msgspec.Struct, frozen=True, gc=False):
    """An event about a pod, or the bookmark that ends the list."""

    type: str
    object: PodWire


class InitialEvents:
    """Decodes the first events of a WatchList while they arrive, as a list is decoded."""

    def __init__(self, informer: "WatchListInformer") -> None:
        self._decoder = wire.decoder(PodEvent)
        self._keep = informer.read_pod
        self._pieces: list[bytes] = []
        self._size = 0
        self.version = ""

    def feed(self, piece: bytes) -> list[Any]:
        """Add a chunk and return the objects that are complete, at times."""
        self._pieces.append(piece)
        self._size += len(piece)
        is_end = len(piece) < SLICE and _END in piece
        if self._size < SLICE and not is_end:
            return []
        text = b"".join(self._pieces)
        end = text.rfind(b"\n") + 1
        self._pieces, self._size = [text[end:]], len(text) - end
        events = self._decoder.decode_lines(text[:end])
        if events and events[-1].type == "BOOKMARK":
            self.version = events.pop().object.metadata.resource_version
        return [self._keep(event.object) for event in events]


class WatchListInformer(Informer[CachedPod]):
    """The cache of pods, whose first list is a WatchList. A measurement: it handles no failure and no change."""

    def read_pod(self, whole: PodWire) -> Any:
        """Return what is cached of a pod."""
        return self._intake.read_listed(whole)

    async def _read_pages(self, limit: int) -> ListedObjects[CachedPod]:
        listed: ListedObjects[CachedPod] = ListedObjects(self._cache.known)
        decoder = InitialEvents(self)
        async for size, items in self._initial(decoder):
            self._add_page(listed, ListPage(items, decoder.version, "", (), size))
        return listed

    async def _initial(self, decoder: InitialEvents) -> AsyncIterator[tuple[int, list[Any]]]:
        query = [
            ("watch", "true"),
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", "300"),
        ]
        request = Request("GET", self.resource.path(None), query, self._selection.headers())
        async with self._client.sender.watch("watching pods", request) as stream:
            async for chunk in stream.chunks():
                items = decoder.feed(chunk)
                yield len(chunk), items
                if decoder.version:
                    return


async def _fill(kubeconfig: Path, way: str) -> dict[str, float]:
    clock = SystemClock()
    client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(kubeconfig), environ={})))
    what = SLIM_PODS.with_transform(PodDecoder(pod_level_resources=True))
    kind = WatchListInformer if way == WATCH_LIST else Informer
    informer: Informer[CachedPod] = kind(client, what, page_size=0 if way == LONG else PAGE_SIZE)
    keys: list[str] = []
    informer.on_page = lambda: None  # as the operator: each page is cached when it arrives
    informer.subscribe(lambda delta: keys.append(delta.object.metadata.key) if delta.new else None)
    began, spent = time.monotonic(), time.process_time()
    running = asyncio.ensure_future(informer.run())
    async with asyncio.timeout(_PATIENCE):
        await informer.wait_synced()
    figures = {
        "s": time.monotonic() - began,
        "CPU s": time.process_time() - spent,
        "peak MB": peak_mb(os.getpid()),
        "MB": informer.counts.received / 1e6,
        "pods": float(len(informer.store)),
        "is in order": float(keys == sorted(keys)),
    }
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await client.close()
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(_fill(Path(sys.argv[1]), sys.argv[2]))))
