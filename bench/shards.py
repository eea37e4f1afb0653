"""Shards: what one replica and each of four hold and receive, and how long a takeover takes, on the real API server.

`PODS` in the environment chooses how many pods (default 20,000; 200,000 need 8 GB), `EACH` how many belong to one HPA,
`SPACES` how many namespaces there are, and `REPLICAS` which numbers of replicas are measured. Each replica has one shard.
Another one stands by, holds none, and shows the memory of an empty process. Then every pod changes once, in a window of
`WINDOW` seconds, the same for all numbers of replicas, so that each has decided as often.
`COMPONENT=recommender` measures recommenders, with a VPA in place of each HPA.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import Row, Rows
from bench.picture import objects
from bench.picture.api import series
from bench.picture.generator import Load
from bench.picture.machine import cpu_seconds, peak_mb, resident_mb
from bench.picture.site import Site, put_up
from tools.peers.cluster import free_port

PODS = int(os.environ.get("PODS", "20000"))
EACH = int(os.environ.get("EACH", "10"))
SPACES = int(os.environ.get("SPACES", "100"))
REPLICAS = [int(text) for text in os.environ.get("REPLICAS", "1,4").split(",")]
WINDOW = int(os.environ.get("WINDOW", str(max(120, PODS // 500))))
PERIOD = 15
COMPONENT = os.environ.get("COMPONENT", "horizontal")
FLAGS, AUTOSCALER = {
    "horizontal": (
        ("--native-hpas", "--no-own-hpas", f"--horizontal-pod-autoscaler-sync-period={PERIOD}s"),
        "hpa",
    ),
    "recommender": (
        ("--components=recommender", "--native-vpas", f"--recommender-interval={PERIOD}s"),
        "vpa",
    ),
}[COMPONENT]
_PATIENCE = 1200
_EVENT = 4000
"""The least bytes of an event about a pod."""


def run() -> Rows:
    """Measure each number of replicas on the same objects."""
    load = Load(max(PODS // EACH, 1), EACH, SPACES, autoscaler=AUTOSCALER)
    with tempfile.TemporaryDirectory(prefix="trimtab-shards-") as directory, put_up(Path(directory)) as site:
        if AUTOSCALER == "vpa":
            site.define_vpas()
        site.fill(load)
        site.standin.use(cpu=objects.CPU_REQUEST * objects.CPU_TARGET // 100, jitter=0.05, refresh=PERIOD)
        return [_shown(row) for number in REPLICAS for row in _measure(site, load, number)]


def _shown(row: Row) -> Row:
    """Print a row at once: a run with many pods takes long, and what was measured counts if a later stage fails."""
    print(" | ".join(f"{name}: {value}" for name, value in row.items()), file=sys.stderr, flush=True)
    return row


class Replica:
    """A process of `trimtab run`, and what its port says."""

    def __init__(self, site: Site, number: int, *flags: str) -> None:
        self.port = free_port()
        command = [
            sys.executable, "-m", "trimtab", "run", f"--kubeconfig={site.kubeconfig}", f"--port={self.port}",
            "--leader-elect-resource-namespace=kube-system", *FLAGS, *flags,
        ]  # fmt: skip
        with (site.directory / f"replica-{number}.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def totals(self) -> dict[str, float]:
        """Return cached pods, received bytes of pods and in all, dropped objects, owned HPAs and held shards."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        except OSError:
            return {}
        found: dict[str, float] = {}
        for name, labels, value in series(text, *_NAMES):
            found[name] = found.get(name, 0.0) + value
            if labels.get("resource") == "pods":
                found[f"{name} of pods"] = value
        return found

    def end(self) -> None:
        """Stop the process."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


_CACHED, _RECEIVED = "trimtab_cached_objects of pods", "trimtab_cache_received_bytes_total"
_DROPPED, _DECIDED = "trimtab_cache_dropped_objects_total", "trimtab_status_writes_total"
_NAMES = (
    "trimtab_cached_objects",
    _RECEIVED,
    _DROPPED,
    _DECIDED,
    "trimtab_shards_held",
    {
        "hpa": "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
        "vpa": "vpa_recommender_vpa_objects_count",
    }[AUTOSCALER],
)


def _measure(site: Site, load: Load, number: int) -> Iterator[Row]:
    pods = load.workloads * load.pods
    flags = (f"--shards={number}",) if number > 1 else ()
    replicas = [Replica(site, place, *flags) for place in range(number)]
    began = time.monotonic()
    try:
        took = _until(lambda: sum(_cached(replicas)) >= pods and all(_cached(replicas)), began)
        yield _row(f"{number}: all pods cached", took, replicas, {})
        time.sleep(2 * PERIOD)
        before = {replica.port: replica.totals() for replica in replicas}
        spent = {replica.port: cpu_seconds(replica.process.pid) for replica in replicas}
        server = cpu_seconds(site.cluster.pids["kube-apiserver"])
        started = time.monotonic()
        site.generator.touch(load)
        _wait_delivered(replicas, pods, before)
        delivered = time.monotonic() - started
        time.sleep(max(0.0, WINDOW - delivered))
        window = f"{number}: each pod changed once (CPU of {max(WINDOW, delivered):.0f} s)"
        row = _row(window, delivered, replicas, before, spent)
        used = cpu_seconds(site.cluster.pids["kube-apiserver"]) - server
        held = resident_mb(site.cluster.pids["kube-apiserver"])
        yield {**row, "server CPU s": f"{used:.1f}", "server MB": f"{held:,.0f}"}
        if number > 1:
            # Of another layout: with the same one it might take a shard from another replica.
            idle = Replica(site, number, f"--shards={number + 1}")
            replicas.append(idle)
            time.sleep(PERIOD)
            yield {"stage": "stands by", "MB": f"{resident_mb(idle.process.pid):.0f}"}
            replicas.remove(idle)
            idle.end()
            yield _take_over(replicas, pods)
    finally:
        for replica in replicas:
            replica.end()


def _wait_delivered(replicas: list[Replica], pods: int, before: dict[int, dict[str, float]]) -> None:
    """Wait until the events of all pods have arrived, as far as their bytes show, and no more do."""
    name, last, began = f"{_RECEIVED} of pods", -1.0, time.monotonic()
    while time.monotonic() - began < _PATIENCE:
        now = sum(one.totals().get(name, 0.0) - before[one.port].get(name, 0.0) for one in replicas)
        if now == last and now > pods * _EVENT:
            return
        last = now
        time.sleep(3)


def _take_over(replicas: list[Replica], pods: int) -> Row:
    victim, *others = replicas
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    began = time.monotonic()
    took = _until(lambda: sum(_cached(others)) >= pods, began)
    return _row("after one was killed: all pods cached again", took, others, {})


def _cached(replicas: list[Replica]) -> list[float]:
    return [replica.totals().get(_CACHED, 0.0) for replica in replicas]


def _row(
    stage: str,
    seconds: float,
    replicas: list[Replica],
    before: dict[int, dict[str, float]],
    spent: dict[int, float] | None = None,
) -> Row:
    """Return a row with a figure for each replica."""
    totals = [(replica, replica.totals(), before.get(replica.port, {})) for replica in replicas]

    def each(name: str, unit: float = 1.0) -> str:
        return " ".join(
            f"{(now.get(name, 0.0) - then.get(name, 0.0)) / unit:,.1f}" for _, now, then in totals
        )

    pids = [replica.process.pid for replica in replicas]
    used = [
        cpu_seconds(pid) - (spent or {}).get(replica.port, 0.0)
        for pid, replica in zip(pids, replicas, strict=True)
    ]
    return {
        "stage": stage,
        "s": f"{seconds:.1f}",
        "pods": " ".join(f"{now.get(_CACHED, 0.0):,.0f}" for _, now, _ in totals),
        f"{AUTOSCALER.upper()}s": " ".join(f"{now.get(_NAMES[-1], 0.0):,.0f}" for _, now, _ in totals),
        "MB": " ".join(f"{resident_mb(pid):.0f}" for pid in pids),
        "peak MB": " ".join(f"{peak_mb(pid):.0f}" for pid in pids),
        "received MB": each(_RECEIVED, 1e6),
        "of pods MB": each(f"{_RECEIVED} of pods", 1e6),
        "dropped": each(_DROPPED),
        "CPU s": " ".join(f"{one:.1f}" for one in used),
    }


def _until(is_so: Callable[[], bool], began: float) -> float:
    while not is_so():
        if time.monotonic() - began > _PATIENCE:
            raise RuntimeError("it did not come to that in time")
        time.sleep(0.25)
    return time.monotonic() - began
