"""How many HPAs one process on one core keeps at their period: the gaps between the decisions of each."""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from bench.picture.api import Json
from bench.picture.contenders import horizontal_options, start_ours
from bench.picture.generator import Load
from bench.picture.horizontal import LEVEL
from bench.picture.machine import peak_mb
from bench.picture.site import Site
from bench.picture.watching import HPAS, Watch, watching

PERIOD = 15
LONGEST = 16.5
# At a refresh of 5 s and this jitter, usage that never repeats differs between any two decisions 10 to 20 s apart.
_REFRESH, _JITTER = 5, 0.08
_SETTLE = 5
_TIMEOUT = 120


@dataclass(frozen=True)
class Plan:
    """How long the gaps are watched, in periods."""

    periods: int = 4


def play(site: Site, load: Load, plan: Plan, say: Callable[[str], None]) -> Json:
    """Run ours on the last core and return the gaps."""
    site.fill(load)
    site.standin.use(cpu=LEVEL, jitter=_JITTER, refresh=_REFRESH, never_repeats=1)
    options = horizontal_options(PERIOD)
    with watching(site.api, HPAS) as watch:
        running = start_ours(site.directory, site.kubeconfig, *options, core=(os.cpu_count() or 1) - 1)
        try:
            _until_all_decided(watch, load.workloads)
            time.sleep(_SETTLE)
            before = site.reading(running.pid)
            began = time.monotonic()
            gaps = _gaps(watch, load.workloads, began, plan.periods * PERIOD)
            spent = site.reading(running.pid).since(before)
            figures = {
                "hpas": load.workloads,
                "p99_gap": gaps[int(0.99 * (len(gaps) - 1))],
                "longest_gap": gaps[-1],
                "decisions": len(gaps),
                "cores": spent.cpu["controller"] / spent.seconds,
                "server_cores": (spent.cpu["kube-apiserver"] + spent.cpu["etcd"]) / spent.seconds,
                "other_cpu": spent.other_cpu,
                "peak_mb": peak_mb(running.pid),
            }
        finally:
            running.stop()
    say(f"p99 gap {figures['p99_gap']:.2f} s, {figures['cores']:.2f} cores")
    return figures


def _until_all_decided(watch: Watch, wanted: int) -> None:
    seen: set[str] = set()
    for change in watch.until(time.monotonic() + _TIMEOUT):
        seen.add(change.key)
        if len(seen) >= wanted:
            return
    raise RuntimeError(f"only {len(seen)} of {wanted} HPAs were decided within {_TIMEOUT} s")


def _gaps(watch: Watch, wanted: int, began: float, seconds: float) -> list[float]:
    """Return the gaps in order; an HPA that was silent counts with the whole time."""
    moments: dict[str, list[float]] = defaultdict(list)
    for change in watch.until(began + seconds):
        moments[change.key].append(change.at)
    gaps = [seconds] * (wanted - len(moments))
    for times in moments.values():
        # Two writes in one decision (a scale has its own status write) are one moment.
        steps = [later - earlier for earlier, later in pairwise(times)]
        gaps += [step for step in steps if step > 1] or [seconds]
        silence = began + seconds - times[-1]
        gaps += [silence] if silence > LONGEST else []  # a gap that was not over is at least this long
    return sorted(gaps)
