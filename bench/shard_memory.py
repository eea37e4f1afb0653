"""Shards: memory and first lists of one replica and of each of four, beside a stand-in server that makes its objects up.

`PODS` in the environment chooses how many pods (default 20,000), `EACH` how many belong to one HPA, `SPACES` how many
namespaces there are and `REPLICAS` which numbers of replicas are measured. Each replica has one shard. Another one with
another number of shards waits for them to end, and shows the memory of a process without a shard. `python -m bench shards`
measures the same on the real API server. `COMPONENT=recommender` measures recommenders, with a VPA in place of each HPA.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench import Row, Rows
from bench.memory import (
    EACH,
    NAMESPACES,
    VERSION,
    Json,
    Send,
    StandIn,
    _kubeconfig,
    _meta,
    _mib,
    _until,
)
from bench.picture.api import series
from tools.peers.cluster import free_port
from trimtab.serving.server import served

PODS = int(os.environ.get("PODS", "20000"))
REPLICAS = [int(text) for text in os.environ.get("REPLICAS", "1,4").split(",")]
SETTLED_SECONDS = float(os.environ.get("SETTLED", "60"))
"""How long the replicas run after all pods are cached, before their memory is read."""
COMPONENT = os.environ.get("COMPONENT", "horizontal")
FLAGS = {
    "horizontal": ("--native-hpas", "--no-own-hpas"),
    "recommender": ("--components=recommender", "--recommender-interval=15s"),
}[COMPONENT]
_CACHED, _RECEIVED = "trimtab_cached_objects", "trimtab_cache_received_bytes_total"


def run() -> Rows:
    """Measure each number of replicas."""
    return [row for number in REPLICAS for row in asyncio.run(_measure(number))]


class ShardStandIn(StandIn):
    """A stand-in with Leases and namespaces, whose lists leave out the namespaces that a field selector names.

    Its VPAs have the targets of its HPAs, and all checkpoints that are written are taken and none is kept.
    """

    def __init__(self, hpas: int) -> None:
        super().__init__(hpas)
        self._leases: dict[str, Json] = {}
        apps, _ = self._items["deployments"]
        self._items |= {
            "replicasets": (apps, _replica_set_json),
            "verticalpodautoscalers": (apps, _vpa_json),
            "verticalpodautoscalercheckpoints": ([], _vpa_json),
            "events": ([], _vpa_json),
        }

    def _amounts(self, load: float) -> dict[str, str]:
        return {**super()._amounts(load), "memory": f"{round(1e8 * load)}"}

    def _written(self, path: str, body: bytes) -> bytes:
        parts = path.split("/")
        if parts[-1] != "status" or parts[-3] != "verticalpodautoscalers":
            return super()._written(path, body)
        whole = json.loads(_vpa_json(int(parts[-2].removeprefix("app-"))))
        status = next(change["value"] for change in json.loads(body) if change["path"] == "/status")
        return json.dumps({**whole, "status": status}).encode()

    async def __call__(self, scope: Json, receive: Callable[[], Awaitable[Json]], send: Send) -> None:
        """Answer one request."""
        if "/leases" not in scope["path"]:
            await super().__call__(scope, receive, send)
            return
        body = (await receive())["body"] if scope["method"] != "GET" else b""
        status, answer = self._answer_lease(scope["method"], scope["path"].rpartition("/")[2], body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answer_lease(self, method: str, name: str, body: bytes) -> tuple[int, Json]:
        if method == "GET" and name == "leases":
            return 200, {"metadata": {"resourceVersion": "1"}, "items": list(self._leases.values())}
        lease = json.loads(body) if body else {}
        name = lease.get("metadata", {}).get("name", name)
        known = self._leases.get(name)
        if method == "GET":
            return (200, known) if known else (404, {"kind": "Status", "code": 404, "reason": "NotFound"})
        versions = [(one or {}).get("metadata", {}).get("resourceVersion") for one in (known, lease)]
        if versions[0] != versions[1]:
            return 409, {"kind": "Status", "code": 409, "reason": "Conflict"}
        lease["metadata"] |= {"resourceVersion": str(int(versions[0] or 0) + 1), "uid": name}
        self._leases[name] = lease
        return 200, lease

    def _read(self, path: str, query: dict[str, str]) -> bytes:
        if path == "/api/v1/namespaces":
            items = [{"metadata": {"name": f"bench-{number}"}} for number in range(NAMESPACES)]
            return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
        plural, terms = path.rpartition("/")[2], query.get("fieldSelector", "").split(",")
        if plural not in self._items or not terms[0]:
            return super()._read(path, query)
        left_out = {int(term.rpartition("-")[2]) for term in terms if term.startswith("metadata.namespace")}
        numbers, make = self._items[plural]
        each = EACH if plural == "pods" else 1
        count = len(numbers)
        limit = int(query.get("limit", "0")) or count
        found: list[bytes] = []
        place = int(query.get("continue", "0"))
        while place < count and len(found) < limit:
            if (numbers[place] // each) % NAMESPACES not in left_out:
                found.append(make(numbers[place]))
            place += 1
        head = {"resourceVersion": str(VERSION), "continue": str(place) if place < count else ""}
        return b'{"metadata":' + json.dumps(head).encode() + b',"items":[' + b",".join(found) + b"]}"


def _replica_set_json(app: int) -> bytes:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{app}", "controller": True}
    owner["uid"] = _meta(app, "", "0000000b")["uid"]
    meta = _meta(app, f"app-{app}-{app:08x}", "0000000c", ownerReferences=[owner])
    return json.dumps({"metadata": meta, "spec": {"replicas": EACH}}).encode()


def _vpa_json(app: int) -> bytes:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{app}"}
    spec = {"targetRef": target, "updatePolicy": {"updateMode": "Off"}}
    return json.dumps({"metadata": _meta(app, f"app-{app}", "0000000d"), "spec": spec}).encode()


class Replica:
    """A process of `trimtab run`, and what its port says."""

    def __init__(self, kubeconfig: Path, *flags: str) -> None:
        self.port = free_port()
        command = [
            sys.executable, "-m", "trimtab", "run", f"--kubeconfig={kubeconfig}", f"--port={self.port}",
            "--leader-elect-resource-namespace=kube-system", *FLAGS, *flags,
        ]  # fmt: skip
        with (kubeconfig.parent / f"log-{self.port}").open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)

    def value(self, wanted: str, resource: str | None = "pods") -> float:
        """Return the value of a metric for a resource or for all, or 0 before it is served."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0
        found = series(text, wanted)
        return sum(value for _, labels, value in found if resource in (None, labels.get("resource")))

    def mib(self, what: str = "VmRSS") -> float:
        """Return the resident memory."""
        return _mib(self.process.pid, what)

    def end(self) -> None:
        """Stop the process."""
        self.process.terminate()
        self.process.wait(60)


async def _measure(number: int) -> Rows:
    standin = ShardStandIn(max(PODS // EACH, 1))
    flags = (f"--shards={number}",) if number > 1 else ()
    replicas: list[Replica] = []
    async with served(standin, "127.0.0.1", 0) as port:
        with tempfile.TemporaryDirectory(prefix="trimtab-shards-") as directory:
            kubeconfig = Path(directory) / "kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(port)))
            try:
                replicas += [Replica(kubeconfig, *flags) for _ in range(number)]
                await _until(lambda: sum(one.value(_CACHED) for one in replicas) >= PODS, every=1.0)
                await asyncio.sleep(SETTLED_SECONDS)
                row = await asyncio.to_thread(_row, f"{PODS:,} pods, replicas: {number}", replicas)
                if number == 1:
                    return [row]
                idle = Replica(kubeconfig, f"--shards={number + 1}")
                replicas.append(idle)
                await asyncio.sleep(SETTLED_SECONDS / 2)
                return [row, await asyncio.to_thread(_row, "without a shard", [idle])]
            finally:
                for replica in replicas:
                    replica.end()
                standin.closing.set()


def _row(stage: str, replicas: list[Replica]) -> Row:
    return {
        "stage": stage,
        "pods": " ".join(f"{one.value(_CACHED):,.0f}" for one in replicas),
        "MiB": " ".join(f"{one.mib():.1f}" for one in replicas),
        "peak MiB": " ".join(f"{one.mib('VmHWM'):.1f}" for one in replicas),
        "received MB": " ".join(f"{one.value(_RECEIVED, None) / 1e6:.1f}" for one in replicas),
        "of pods MB": " ".join(f"{one.value(_RECEIVED) / 1e6:.1f}" for one in replicas),
    }
