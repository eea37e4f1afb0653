"""When each object changed: a watch of the harness's own, read by a thread."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException

import msgspec

from bench.picture.api import Api

DEPLOYMENTS = "/apis/apps/v1/deployments"
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"


class _Meta(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = _Spec()


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[_Object]


class _Event(msgspec.Struct):
    type: str
    object: _Object


@dataclass(frozen=True)
class Change:
    """One object as it became, and when the harness saw it."""

    at: float
    key: str
    replicas: int


@dataclass
class Watch:
    """What a kind was when the watch began, and its changes since."""

    replicas: dict[str, int]
    changes: queue.SimpleQueue[Change]

    def until(self, deadline: float) -> Iterator[Change]:
        """Yield changes as they come, up to a moment of the monotonic clock."""
        while (left := deadline - time.monotonic()) > 0:
            with suppress(queue.Empty):
                yield self.changes.get(timeout=min(left, 0.5))


@contextmanager
def watching(api: Api, path: str) -> Iterator[Watch]:
    """Watch all objects of a path until the block ends."""
    first = msgspec.json.decode(api.text(f"{path}?resourceVersion=0"), type=_List)
    connection, response = api.open_watch(path, first.metadata.resource_version)
    watch = Watch({_key(one): one.spec.replicas for one in first.items}, queue.SimpleQueue())
    decode = msgspec.json.Decoder(_Event).decode

    def read() -> None:
        with suppress(OSError, ValueError, HTTPException):  # the block ended and took the connection with it
            for line in response:
                event = decode(line)
                watch.changes.put(Change(time.monotonic(), _key(event.object), event.object.spec.replicas))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield watch
    finally:
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        reader.join(timeout=5)
        connection.close()


def _key(one: _Object) -> str:
    return f"{one.metadata.namespace}/{one.metadata.name}"


@dataclass(frozen=True)
class Delays:
    """How long each workload took to follow."""

    wanted: int
    seconds: Sequence[float]

    def at(self, share: float) -> float | None:
        """Return a quantile; None where not everyone came."""
        if not self.seconds or len(self.seconds) < self.wanted * min(share + 0.01, 1.0):
            return None
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]

    def figures(self) -> dict[str, float | None]:
        """Return what is kept of them."""
        places = {"first": 0.0, "p50": 0.5, "p99": 0.99, "last": 1.0}
        return {name: self.at(share) for name, share in places.items()} | {
            "followed": len(self.seconds),
            "wanted": self.wanted,
        }


def follow(api: Api, wanted: int, start: Callable[[], None], timeout: float) -> Delays:
    """Start something and note when each Deployment reaches `wanted` replicas."""
    with watching(api, DEPLOYMENTS) as watch:
        pending = {key for key, replicas in watch.replicas.items() if replicas != wanted}
        total, delays = len(pending), []
        began = time.monotonic()
        start()
        for change in watch.until(began + timeout):
            if change.replicas == wanted and change.key in pending:
                pending.remove(change.key)
                delays.append(change.at - began)
            if not pending:
                break
    return Delays(total, delays)
