"""Write thousands of objects per second: let the API server store one of each kind, then multiply the stored bytes.

A clone is its seed with names, uids and addresses replaced by others of the same length, so that the stored protobuf
stays well-formed without being understood. Clones go into etcd by its JSON gateway, a hundred in a transaction; the
API server sees them by its own watch, as it would see those of another API server.
"""

import base64
import json
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from bench.picture import objects
from bench.picture.api import Api, Json, series
from bench.picture.objects import Names

_VPA_GROUP = "autoscaling.k8s.io"
_BENCH = "bench-"
_KINDS = (
    "pods", "replicasets", "deployments", "horizontalpodautoscalers", "events", "namespaces",
    f"{_VPA_GROUP}/verticalpodautoscalers", f"{_VPA_GROUP}/verticalpodautoscalercheckpoints",
)  # fmt: skip
_BATCH = 100
_WRITERS = 4
_AHEAD = 100
"""How many batches a change of all pods may be ahead of the API server's cache."""
_PATIENCE = 180


@dataclass(frozen=True)
class Load:
    """How much there is to look after."""

    workloads: int
    pods: int
    namespaces: int
    metrics: tuple[str, ...] = ("cpu",)
    autoscaler: str = "hpa"
    annotations: tuple[tuple[str, str], ...] = ()
    """Of each HPA."""

    def names(self) -> list[Names]:
        """Return the names of all workloads."""
        return [Names(number, self.namespaces) for number in range(self.workloads)]

    def __str__(self) -> str:
        kind = self.autoscaler.upper() + "s"
        return f"{self.workloads:,} {kind} × {self.pods} pods / {self.namespaces} namespaces"


@dataclass(frozen=True)
class Seed:
    """What the API server stored for one object, and which uids it carries."""

    key: str
    value: bytes
    uid: bytes


class Etcd:
    """The few calls of etcd's JSON gateway that are needed."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        found = self._call("range", {"key": _encoded(key.encode())})["kvs"]
        return base64.b64decode(found[0]["value"])

    def put(self, pairs: Iterable[tuple[str, bytes]]) -> int:
        """Write all pairs in one transaction and return its revision."""
        puts = [
            {"requestPut": {"key": _encoded(key.encode()), "value": _encoded(value)}} for key, value in pairs
        ]
        return int(self._call("txn", {"success": puts})["header"]["revision"])

    def delete_all(self, prefix: str) -> int:
        """Delete every key with a prefix and return how many there were."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        span = {"key": _encoded(prefix.encode()), "range_end": _encoded(end.encode())}
        return int(self._call("deleterange", span).get("deleted", 0))

    def _call(self, name: str, body: Json) -> Json:
        data = json.dumps(body).encode()
        with urllib.request.urlopen(f"{self._url}/v3/kv/{name}", data=data, timeout=60) as answer:
            result: Json = json.load(answer)
            return result


class Generator:
    """Fills and empties one cluster."""

    def __init__(self, api: Api, etcd: str) -> None:
        self._api = api
        self._etcd = Etcd(etcd)
        self._seeds: dict[str, Seed] = {}

    def fill(self, load: Load) -> float:
        """Write all objects, wait until the API server has seen them, and return the pods written per second."""
        seeds = self._seeds = self._plant(load)
        self.clean()
        began = time.monotonic()
        with ThreadPoolExecutor(_WRITERS) as writers:
            for revision in writers.map(self._etcd.put, _batches(clones(load, seeds))):
                assert revision
        rate = load.workloads * load.pods / (time.monotonic() - began)
        self._wait_seen(load)
        return rate

    def touch(self, load: Load) -> None:
        """Write every pod once more, so that each watch of pods gets an event about it.

        etcd takes pods faster than the API server passes them on. What waits there would fill the machine's memory.
        """
        pods = (pair for pair in clones(load, self._seeds) if pair[0].startswith("/registry/pods/"))
        for number, batch in enumerate(_batches(pods), 1):
            revision = self._etcd.put(batch)
            if number % _AHEAD == 0:
                self._wait_cached(revision)

    def clean(self) -> None:
        """Remove everything that was ever written here, and wait until the API server knows."""
        for kind in _KINDS:
            self._etcd.delete_all(f"/registry/{kind}/{_BENCH}")
        self._wait_count("/api/v1/pods", 0)

    def _plant(self, load: Load) -> dict[str, Seed]:
        """Create one of each kind through the API and read what was stored."""
        api, space = self._api, f"/namespaces/{objects.SEED_NAMESPACE}"
        name, stem = objects.SEED_APP, f"{objects.SEED_APP}-{objects.SEED_HASH}"
        controllers = "kube-controller-manager"
        made = {
            "namespaces": api.create(
                "/api/v1/namespaces", {"metadata": {"name": objects.SEED_NAMESPACE}}, "kubectl"
            )
        }
        apps = f"/apis/apps/v1{space}"
        made["deployments"] = api.create(f"{apps}/deployments", objects.deployment(load.pods), "kubectl")
        api.merge(f"{apps}/deployments/{name}/status", objects.counts(load.pods), controllers)
        owned = objects.replica_set(load.pods, made["deployments"])
        made["replicasets"] = api.create(f"{apps}/replicasets", owned, controllers)
        api.merge(f"{apps}/replicasets/{stem}/status", objects.counts(load.pods), controllers)
        made["pods"] = api.create(f"/api/v1{space}/pods", objects.pod(made["replicasets"]), controllers)
        api.merge(f"/api/v1{space}/pods/{stem}-{objects.SEED_POD}/status", objects.running(), "kubelet")
        if load.autoscaler == "hpa":
            path, body = (
                f"/apis/autoscaling/v2{space}/horizontalpodautoscalers",
                objects.hpa(load.pods, load.metrics, dict(load.annotations)),
            )
        else:
            path, body = f"/apis/{_VPA_GROUP}/v1{space}/verticalpodautoscalers", objects.vpa()
        made["autoscaler"] = api.create(path, body, "kubectl")
        return {kind: self._stored(kind, one, load) for kind, one in made.items()}

    def _stored(self, kind: str, made: Json, load: Load) -> Seed:
        resource = kind
        if kind == "autoscaler":
            resource = _KINDS[3] if load.autoscaler == "hpa" else _KINDS[6]
        meta = made["metadata"]
        place = "/".join(part for part in (meta.get("namespace"), meta["name"]) if part)
        key = f"/registry/{resource}/{place}"
        return Seed(key, self._etcd.get(key), meta["uid"].encode())

    def _wait_seen(self, load: Load) -> None:
        self._wait_count("/api/v1/pods", load.workloads * load.pods)
        for path in (
            "/apis/apps/v1/deployments",
            "/apis/autoscaling/v2/horizontalpodautoscalers"
            if load.autoscaler == "hpa"
            else f"/apis/{_VPA_GROUP}/v1/verticalpodautoscalers",
        ):
            self._wait_count(path, load.workloads)
        # Counts are read from etcd while the cache lags.
        self._wait_cached(int(self._api.get("/api/v1/pods?limit=1")["metadata"]["resourceVersion"]))

    def _wait_cached(self, version: int) -> None:
        """Wait until the API server's cache of pods has reached a version."""
        deadline = time.monotonic() + _PATIENCE
        while _cache_version(self._api.text("/metrics")) < version:
            if time.monotonic() > deadline:
                raise RuntimeError("the API server's cache of pods lags behind etcd")
            time.sleep(0.5)

    def _wait_count(self, path: str, wanted: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while (seen := self._api.count(path)) != wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the API server sees {seen} of {wanted} {path}")
            time.sleep(0.2)


def _cache_version(metrics: str) -> float:
    found = series(metrics, "apiserver_watch_cache_resource_version")
    return max((value for _, labels, value in found if labels.get("resource") == "pods"), default=0.0)


def clones(load: Load, seeds: Mapping[str, Seed]) -> Iterator[tuple[str, bytes]]:
    """Yield key and value of every object of a load."""
    for number in range(load.namespaces):
        name = f"bench-{number:04}".encode()
        yield _clone(
            seeds["namespaces"], {objects.SEED_NAMESPACE.encode(): name}, {"namespaces": number}, seeds
        )
    for names in load.names():
        yield from _workload(load, names, seeds)


def _workload(load: Load, names: Names, seeds: Mapping[str, Seed]) -> Iterator[tuple[str, bytes]]:
    number = names.number
    common = {
        objects.SEED_APP.encode(): names.app.encode(),
        objects.SEED_HASH.encode(): names.hash.encode(),
        objects.SEED_NAMESPACE.encode(): names.namespace.encode(),
    }
    owners = {"deployments": number, "replicasets": number, "autoscaler": number}
    for kind in ("deployments", "replicasets", "autoscaler"):
        yield _clone(seeds[kind], common, owners, seeds)
    for pod in range(load.pods):
        place = number * load.pods + pod
        address = f"10.{100 + place // 10_000 % 100}.{100 + place // 100 % 100}.{100 + place % 100}"
        words = common | {
            objects.SEED_POD.encode(): f"{pod:05}".encode(),
            objects.SEED_IP.encode(): address.encode(),
            objects.SEED_NODE.encode(): f"node-{place % objects.NODES:03}".encode(),
        }
        yield _clone(seeds["pods"], words, owners | {"pods": place}, seeds)


def _clone(
    seed: Seed, words: Mapping[bytes, bytes], numbers: Mapping[str, int], seeds: Mapping[str, Seed]
) -> tuple[str, bytes]:
    key, value = seed.key.encode(), seed.value
    for old, new in words.items():
        key, value = key.replace(old, new), value.replace(old, new)
    for place, (kind, one) in enumerate(seeds.items(), 1):
        if kind in numbers:
            value = value.replace(one.uid, f"{place:08x}-0000-4000-8000-{numbers[kind]:012x}".encode())
    return key.decode(), value


def _batches(pairs: Iterator[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    while batch := list(islice(pairs, _BATCH)):
        yield batch


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
