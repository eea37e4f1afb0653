"""Cluster port: lists, caches and watches of pods, beside the official client."""

import asyncio
import gc
import importlib
import json
import random
import tracemalloc
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import process_time

from bench import Row, Rows
from trimtab.clock import SystemClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import KeyIndex, by_owner
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import decode_page, event_decoder
from trimtab.cluster.resource import PODS
from trimtab.cluster.transport import Request, Response
from trimtab.model.core.pod import Pod

PODS_CACHED = 20_000
PODS_BY_OFFICIAL_CLIENT = 500
EVENTS = 20_000
PAGE = 500


def pod_json(number: int, version: int) -> bytes:
    """Return a pod as a kube-apiserver sends it: about 7 KB, a third of it managedFields."""
    name = f"web-{number // 10:05d}-{number:06d}"
    container = {
        "name": "app",
        "image": "registry.example/team/app:1.2.3",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}"} for index in range(12)],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
        "terminationMessagePath": "/dev/termination-log",
    }
    fields: dict[str, object] = {
        f"f:field{index}": {"f:inner": {}, f'k:{{"name":"{index}"}}': {".": {}, "f:value": {}}}
        for index in range(24)
    }
    managed = [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"web-{number // 10}",
        "uid": f"rs-{number // 10}",
    }
    condition = {"status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return json.dumps(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "generateName": f"web-{number // 10:05d}-",
                "namespace": f"team-{number % 100:03d}",
                "uid": f"00000000-0000-4000-8000-{number:012d}",
                "resourceVersion": str(version),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "app": f"web-{number // 10}",
                    "pod-template-hash": f"{number // 10:05d}",
                    "team": "shop",
                },
                "annotations": {"example/config-hash": "0" * 64},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                "managedFields": managed * 2,
            },
            "spec": {
                "containers": [container, {**container, "name": "proxy"}] if number % 2 else [container],
                "volumes": [
                    {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
                ],
                "nodeName": f"node-{number % 200}",
                "restartPolicy": "Always",
                "serviceAccountName": "default",
                "tolerations": [
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
                ]
                * 2,
            },
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": kind, **condition}
                    for kind in ("Ready", "Initialized", "ContainersReady", "PodScheduled")
                ],
                "podIP": "10.0.0.1",
                "startTime": "2026-01-01T00:00:00Z",
                "containerStatuses": [
                    {
                        "name": "app",
                        "ready": True,
                        "restartCount": 0,
                        "state": state,
                        "image": "x",
                        "imageID": "y",
                    }
                ],
            },
        },
        separators=(",", ":"),
    ).encode()


def list_body(pods: list[bytes], version: int, token: str) -> bytes:
    head = f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":['
    return head.encode() + b",".join(pods) + b"]}"


class Canned:
    """A transport that serves a fixed list in pages, then one watch with many events; it costs next to nothing."""

    def __init__(self, pods: int, events: int) -> None:
        self.pods = pods
        self.lines = [
            b'{"type":"MODIFIED","object":' + pod_json(number % pods, pods + number + 1) + b"}\n"
            for number in range(events)
        ]
        self.done = asyncio.Event()

    async def request(self, request: Request) -> Response:
        query = dict(request.query)
        start = int(query.get("continue") or 0)
        end = min(start + PAGE, self.pods)
        body = list_body(
            [pod_json(number, number + 1) for number in range(start, end)],
            self.pods,
            str(end) if end < self.pods else "",
        )
        return Response(200, {}, body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["Canned"]:
        yield self

    async def close(self) -> None:
        return

    @property
    def status(self) -> int:
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        return {}

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.lines), 8):
            yield b"".join(self.lines[start : start + 8])
            await asyncio.sleep(0)
        self.done.set()
        await asyncio.Event().wait()


def decoding() -> Row:
    body = list_body([pod_json(number, number + 1) for number in range(PAGE)], 1, "")
    decode_page("warming up", body, Pod)
    begun = process_time()
    rounds = 10
    for _ in range(rounds):
        decode_page("measuring", body, Pod)
    ours = (process_time() - begun) / rounds / PAGE * 1e6
    return {
        "what": f"list + decode, one page of {PAGE}",
        "measured": f"{ours:.1f} µs/pod",
        "note": f"{len(body) // PAGE} B/pod on the wire",
    }


def official() -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = importlib.import_module("kubernetes.client")
    body = list_body([pod_json(number, number + 1) for number in range(PODS_BY_OFFICIAL_CLIENT)], 1, "")

    class Answer:
        data = body.decode()

    api = client.ApiClient()

    def decode() -> object:
        try:
            return api.deserialize(Answer, "V1PodList")
        except TypeError:
            return api.deserialize(Answer.data, "V1PodList", "application/json")

    gc.collect()
    tracemalloc.start()
    kept = decode()
    retained = tracemalloc.get_traced_memory()[0] / PODS_BY_OFFICIAL_CLIENT
    tracemalloc.stop()
    begun = process_time()
    decode()
    spent = (process_time() - begun) / PODS_BY_OFFICIAL_CLIENT * 1e6
    del kept
    return {
        "what": "the same, official client",
        "measured": f"{spent:.0f} µs/pod",
        "note": f"{retained:,.0f} B/pod kept",
    }


async def caching() -> list[Row]:
    transport = Canned(PODS_CACHED, 0)
    client = Client(SystemClock(), transport)
    informer = Informer(client, PODS)
    owners: KeyIndex[Pod, str] = by_owner()
    informer.add_index(owners)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    gc.collect()
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    task.cancel()
    per_pod = (now - before) / PODS_CACHED
    return [
        {
            "what": f"cache of {PODS_CACHED:,} pods with an owner index",
            "measured": f"{per_pod:,.0f} B/pod",
            "note": f"peak {peak / 1e6:.0f} MB",
        }
    ]


async def watching() -> Row:
    transport = Canned(2_000, EVENTS)
    informer = Informer(Client(SystemClock(), transport), PODS)
    informer.add_index(by_owner())
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    begun = process_time()
    await transport.done.wait()
    spent = process_time() - begun
    task.cancel()
    assert informer.counts.events == EVENTS, informer.counts
    return {
        "what": "watch events into an indexed cache",
        "measured": f"{EVENTS / spent:,.0f} events/s",
        "note": f"{spent / EVENTS * 1e6:.1f} µs each",
    }


def event_decoding() -> Row:
    decode = event_decoder(Pod)
    jitter = random.Random(1)
    lines = [
        b'{"type":"MODIFIED","object":' + pod_json(jitter.randrange(1000), number) + b"}"
        for number in range(2000)
    ]
    begun = process_time()
    for line in lines:
        decode(line)
    return {
        "what": "decode one watch event",
        "measured": f"{(process_time() - begun) / len(lines) * 1e6:.1f} µs",
    }


def run() -> Rows:
    return [decoding(), official(), event_decoding(), *asyncio.run(caching()), asyncio.run(watching())]
