"""A simulated kubelet for metrics-server: /metrics/resource of pods that run no program, over TLS on loopback.

The CPU counter of a pod grows with the usage that `use` sets, so that metrics-server computes rates from it as it does
from a real node. One kubelet reports the pods of all nodes.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Pod = tuple[str, str]
"""Namespace and name."""

_MEMORY_BYTES = 64 * 1024 * 1024


@dataclass
class Counter:
    """CPU seconds that grow at a rate."""

    seconds: float
    cores: float
    since: float

    def at(self, now: float) -> float:
        """Return the CPU seconds at that time."""
        return self.seconds + self.cores * (now - self.since)

    def run_at(self, cores: float, now: float) -> None:
        """Let it grow at another rate from now on."""
        self.seconds, self.cores, self.since = self.at(now), cores, now


class Usage:
    """What each pod uses, and how a kubelet reports it."""

    def __init__(self, container: str, clock: Callable[[], float] = time.time) -> None:
        self._container = container
        self._clock = clock
        self._started = clock() - 3600
        self._pods: dict[Pod, Counter] = {}
        self._lock = threading.Lock()

    def use(self, pods: Iterable[Pod], millicores: int) -> None:
        """Let pods use so much from now on. A pod that is new runs since an hour ago."""
        with self._lock:
            now = self._clock()
            for pod in pods:
                counter = self._pods.setdefault(pod, Counter(0.0, millicores / 1000, self._started))
                counter.run_at(millicores / 1000, now)

    def report(self) -> str:
        """Return the page that metrics-server scrapes."""
        with self._lock:
            now = self._clock()
            seconds = {pod: counter.at(now) for pod, counter in self._pods.items()}
        moment = int(now * 1000)
        lines = ["# TYPE container_cpu_usage_seconds_total counter"]
        lines += [
            f"container_cpu_usage_seconds_total{self._labels(pod)} {used:.6f} {moment}"
            for pod, used in seconds.items()
        ]
        lines.append("# TYPE container_memory_working_set_bytes gauge")
        lines += [
            f"container_memory_working_set_bytes{self._labels(pod)} {_MEMORY_BYTES} {moment}"
            for pod in seconds
        ]
        lines.append("# TYPE container_start_time_seconds gauge")
        lines += [f"container_start_time_seconds{self._labels(pod)} {self._started:.3f}" for pod in seconds]
        lines += [
            "# TYPE node_cpu_usage_seconds_total counter",
            f"node_cpu_usage_seconds_total {sum(seconds.values()) + now - self._started:.6f} {moment}",
            "# TYPE node_memory_working_set_bytes gauge",
            f"node_memory_working_set_bytes {_MEMORY_BYTES * (len(seconds) + 1)} {moment}",
        ]
        return "\n".join(lines) + "\n"

    def _labels(self, pod: Pod) -> str:
        namespace, name = pod
        return f'{{container="{self._container}",namespace="{namespace}",pod="{name}"}}'


class Kubelet:
    """Serves what pods use. It listens while the context is entered."""

    def __init__(self, usage: Usage, certificate: Path, key: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(usage))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake happens in the thread of the connection.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _handler(usage: Usage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            is_known = self.path.split("?")[0] == "/metrics/resource"
            body = usage.report().encode() if is_known else b""
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler
