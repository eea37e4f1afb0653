"""One turn of one contender on VPAs: first recommendations, then whole loops in the steady state."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from bench.picture.api import Json, series
from bench.picture.contenders import (
    Contender,
    Running,
    start_ours,
    start_recommender,
    vertical_options,
)
from bench.picture.generator import Load
from bench.picture.machine import peak_mb
from bench.picture.site import Site

_VPAS = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
_POLL = 1.0
_LOOP = "vpa_recommender_execution_latency_seconds"


class _Status(msgspec.Struct):
    recommendation: Json | None = None


class _Vpa(msgspec.Struct):
    status: _Status | None = None


class _Vpas(msgspec.Struct):
    items: list[_Vpa]


@dataclass(frozen=True)
class Plan:
    """What a turn does; times in seconds. A loop that takes longer than the period is counted for what it took."""

    period: float = 20
    refresh: float = 15
    jitter: float = 0.05
    settle: float = 5
    loops: int = 3
    timeout: float = 150


def play(site: Site, who: Contender, load: Load, plan: Plan, say: Callable[[str], None]) -> Json:
    """Let one contender have its turn and return its figures, per loop."""
    rate = site.fill(load)
    say(f"filled, {rate:,.0f} pods/s")
    site.standin.use(cpu=60, jitter=plan.jitter, refresh=plan.refresh)
    began = time.monotonic()
    running = _start(site, who, plan.period)
    try:
        figures = _wait_recommended(site, running, load, began + plan.timeout)
        say(f"all recommended after {figures['start_all']:.1f} s")
        time.sleep(plan.settle)
        figures |= _loops(site, running, plan)
        say(f"steady: {figures['controller_s']:.2f} CPU-s per loop, server {figures['server_s']:.2f}")
        return figures | {"peak_mb": peak_mb(running.pid), "fill_pods_per_s": rate}
    finally:
        running.stop()


def _start(site: Site, who: Contender, period: float) -> Running:
    if who.is_ours:
        return start_ours(site.directory, site.kubeconfig, *vertical_options(period))
    return start_recommender(site.directory, site.kubeconfig, period)


def _wait_recommended(site: Site, running: Running, load: Load, deadline: float) -> Json:
    began = time.monotonic()
    while time.monotonic() < deadline:
        if running.has_ended():
            raise RuntimeError(f"the recommender ended by itself; {site.last_words()}")
        vpas = msgspec.json.decode(site.api.text(f"{_VPAS}?resourceVersion=0"), type=_Vpas).items
        done = sum(1 for one in vpas if one.status and one.status.recommendation)
        if done >= load.workloads:
            spent = site.reading(running.pid).processes["controller"]
            return {"start_all": time.monotonic() - began, "start_cpu_s": spent}
        time.sleep(_POLL)
    raise RuntimeError(f"only {done} of {load.workloads} VPAs had a recommendation in time")


def _loops(site: Site, running: Running, plan: Plan) -> Json:
    asked, timed = site.requests(), _timed(running)
    before = site.reading(running.pid)
    time.sleep(plan.period * plan.loops)
    spent = site.reading(running.pid).since(before)
    each = _seconds_each(timed, _timed(running))
    # A loop that takes longer than the period is followed by the next at once.
    loops = spent.seconds / max(plan.period, each)
    kinds = {kind: (count - asked.get(kind, 0.0)) / loops for kind, count in site.requests().items()}
    return {
        "loop_seconds": each,
        "controller_s": spent.cpu["controller"] / loops,
        "apiserver_s": spent.cpu["kube-apiserver"] / loops,
        "etcd_s": spent.cpu["etcd"] / loops,
        "server_s": (spent.cpu["kube-apiserver"] + spent.cpu["etcd"]) / loops,
        "requests": sum(kinds.values()),
        "by_kind": {kind: round(count, 1) for kind, count in kinds.items() if count >= 0.1},
        "other_cpu": spent.other_cpu,
    }


def _timed(running: Running) -> tuple[float, float]:
    """Return how many loops it has made, and their seconds; both recommenders tell it under one name."""
    found = {
        name.rpartition("_")[2]: value
        for name, labels, value in series(running.page(), f"{_LOOP}_sum", f"{_LOOP}_count")
        if labels.get("step") == "total"
    }
    return found.get("count", 0.0), found.get("sum", 0.0)


def _seconds_each(before: tuple[float, float], after: tuple[float, float]) -> float:
    """Return how long a loop took of late; if none has ended, how long they took in all."""
    loops, seconds = after[0] - before[0], after[1] - before[1]
    if not loops:
        loops, seconds = after
    return seconds / loops if loops else 0.0
