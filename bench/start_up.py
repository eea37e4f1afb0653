"""Start of one replica: first decision, all pods cached, all HPAs decided, and peak memory, on the real API server.

`PODS` in the environment chooses how many pods (default 20,000), `EACH` how many belong to one HPA, and `SPACES` how
many namespaces there are, separated by commas to measure several. Seconds are since the process was started.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import Row, Rows
from bench.picture import objects
from bench.picture.generator import Load
from bench.picture.machine import cpu_seconds, peak_mb
from bench.picture.site import Site, put_up
from bench.shards import Replica

PODS = int(os.environ.get("PODS", "20000"))
EACH = int(os.environ.get("EACH", "50"))
SPACES = [int(text) for text in os.environ.get("SPACES", "100").split(",")]
SYNCS = 4
PERIOD = 15
_PATIENCE = 300
_CACHED, _WRITTEN = "trimtab_cached_objects of pods", "trimtab_status_writes_total"


def run() -> Rows:
    """Measure each number of namespaces on objects of its own."""
    with tempfile.TemporaryDirectory(prefix="trimtab-start-") as directory, put_up(Path(directory)) as site:
        return [row for spaces in SPACES for row in _measure(site, Load(max(PODS // EACH, 1), EACH, spaces))]


def _measure(site: Site, load: Load) -> Rows:
    site.fill(load)
    site.standin.use(cpu=objects.CPU_REQUEST * objects.CPU_TARGET // 100, jitter=0.05, refresh=PERIOD)
    server = cpu_seconds(site.cluster.pids["kube-apiserver"])
    began = time.monotonic()
    replica = Replica(site, 0, "--no-leader-elect")
    rows: list[Row] = []

    def note(stage: str) -> None:
        pid = replica.process.pid
        rows.append(
            {
                "stage": f"{load}: {stage}",
                "s": f"{time.monotonic() - began:.1f}",
                "CPU s": f"{cpu_seconds(pid):.1f}",
                "peak MB": f"{peak_mb(pid):.0f}",
                "server CPU s": f"{cpu_seconds(site.cluster.pids['kube-apiserver']) - server:.1f}",
            }
        )

    pods = load.workloads * load.pods
    try:
        for stage, is_reached in (
            ("first decision", lambda totals: totals.get(_WRITTEN, 0) > 0),
            ("all pods cached", lambda totals: totals.get(_CACHED, 0) >= pods),
            ("all HPAs decided", lambda totals: totals.get(_WRITTEN, 0) >= load.workloads),
        ):
            _wait(replica, is_reached)
            note(stage)
        time.sleep(SYNCS * PERIOD)
        note(f"after {SYNCS} syncs")
    finally:
        replica.end()
    return rows


def _wait(replica: Replica, is_reached: Callable[[dict[str, float]], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not is_reached(replica.totals()):
        if time.monotonic() > deadline:
            raise RuntimeError("it did not come to that in time")
        time.sleep(0.1)
