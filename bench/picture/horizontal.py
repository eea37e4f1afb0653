"""One turn of one contender on HPAs: start, steady windows, reactions of all to one change."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.picture import objects
from bench.picture.api import Json
from bench.picture.contenders import (
    Contender,
    Running,
    horizontal_options,
    start_ours,
    start_peer,
)
from bench.picture.generator import Load
from bench.picture.machine import peak_mb, resident_mb
from bench.picture.site import Site
from bench.picture.watching import Delays, follow

# Millicores per pod. Pods do not follow a scale (no ReplicaSet controller runs), so these ask for the same again and again.
LEVEL = objects.CPU_REQUEST * objects.CPU_TARGET // 100
HIGH, LOW = 2 * LEVEL, LEVEL // 2
_STATUS = "horizontalpodautoscalers/status"
_QUIET, _PATIENCE = 2, 60


@dataclass(frozen=True)
class Plan:
    """What a turn does; times in seconds."""

    period: float = 1
    refresh: float = 1
    jitter: float = 0.05
    settle: float = 5
    window: float = 20
    windows: int = 1
    rounds: int = 2
    gap: float = 3
    timeout: float = 180
    is_paced: bool = False
    """Count the cycles that were asked for, not the statuses that were written."""


def play(site: Site, who: Contender, load: Load, plan: Plan, say: Callable[[str], None]) -> Json:
    """Let one contender have its turn and return its figures."""
    rate = site.fill(load)
    say(f"filled, {rate:,.0f} pods/s")
    site.standin.use(cpu=HIGH, jitter=0, refresh=plan.refresh)
    started: list[Running] = []
    try:
        begun = follow(
            site.api, 2 * load.pods, lambda: started.append(_start(site, who, plan.period)), plan.timeout
        )
        turn = _Turn(site, started[0], load, plan)
        figures = turn.started(begun)
        say(f"started: first {_short(begun.at(0))}, all {_short(begun.at(1))}")
        site.standin.use(cpu=LEVEL, jitter=plan.jitter)
        time.sleep(plan.settle)
        if not plan.jitter:
            turn.wait_until_nothing_is_written()
        windows = [turn.window() for _ in range(plan.windows)]
        if windows:
            figures |= {name: _median([one[name] for one in windows]) for name in windows[0]}
            say(f"steady: {figures['cycles_per_s']:.0f} cycles/s, {figures['controller_ms']:.2f} ms each")
        site.standin.use(cpu=LEVEL, jitter=0)
        time.sleep(2 if plan.rounds else 0)
        figures |= turn.reactions(say)
        return figures | {"peak_mb": peak_mb(started[0].pid), "fill_pods_per_s": rate}
    finally:
        for one in started:
            one.stop()


def _start(site: Site, who: Contender, period: float) -> Running:
    if who.is_ours:
        return start_ours(site.directory, site.kubeconfig, *horizontal_options(period), *who.options)
    return start_peer(site.cluster, who, period)


@dataclass(frozen=True)
class _Turn:
    site: Site
    running: Running
    load: Load
    plan: Plan

    def started(self, begun: Delays) -> Json:
        if self.running.has_ended():
            raise RuntimeError(f"the controller ended by itself; {self.site.last_words()}")
        spent = self.site.reading(self.running.pid).processes["controller"]
        return {f"start_{name}": value for name, value in begun.figures().items()} | {"start_cpu_s": spent}

    def wait_until_nothing_is_written(self) -> None:
        """Let the statuses and events of the start be written, which takes long on a busy machine."""
        deadline = time.monotonic() + _PATIENCE
        before = -1.0
        while (now := _writes(self.site.requests())) != before and time.monotonic() < deadline:
            before = now
            time.sleep(_QUIET)

    def window(self) -> Json:
        """Measure a steady stretch: usage moves inside the tolerance, so that a cycle shows as a write of status."""
        site, pid = self.site, self.running.pid
        asked, made = site.requests(), self.running.reconciles()
        before = site.reading(pid)
        time.sleep(self.plan.window)
        spent = site.reading(pid).since(before)
        made = self.running.reconciles() - made
        kinds = {kind: count - asked.get(kind, 0.0) for kind, count in site.requests().items()}
        kinds = {kind: count for kind, count in kinds.items() if count > 0}
        cycles = self._cycles(kinds, spent.seconds)
        return {
            "cycles_per_s": cycles / spent.seconds,
            "reconciles_per_s": made / spent.seconds,
            "controller_ms": 1000 * spent.cpu["controller"] / cycles,
            "apiserver_ms": 1000 * spent.cpu["kube-apiserver"] / cycles,
            "etcd_ms": 1000 * spent.cpu["etcd"] / cycles,
            "server_ms": 1000 * (spent.cpu["kube-apiserver"] + spent.cpu["etcd"]) / cycles,
            "requests": sum(kinds.values()) / cycles,
            "status_writes": _status_writes(kinds) * 3600 / spent.seconds / self.load.workloads,
            "by_kind": {kind: round(count / cycles, 4) for kind, count in kinds.items()},
            "resident_mb": resident_mb(pid),
            "other_cpu": spent.other_cpu,
        }

    def _cycles(self, kinds: Json, seconds: float) -> float:
        if self.plan.jitter and not self.plan.is_paced:
            return max(_status_writes(kinds), 1.0)
        # Nothing is written when nothing changes: count the cycles that were asked for.
        return self.load.workloads * seconds / self.plan.period

    def reactions(self, say: Callable[[str], None]) -> Json:
        """Change usage of everyone at once, down and up in turn, and take the median of each figure."""
        found: list[Json] = []
        for number in range(self.plan.rounds):
            delays, spent = self._reaction(*self._change(number))
            found.append(delays.figures() | {"cpu_s": spent})
            say(f"reacted: p50 {_short(delays.at(0.5))}, p99 {_short(delays.at(0.99))}")
            time.sleep(self.plan.gap)
        return {
            f"react_{name}": _median([one[name] for one in found]) for name in (found[0] if found else ())
        }

    def _change(self, number: int) -> tuple[int, int]:
        """Return the usage to set, and the replicas that must follow."""
        return (LOW, self.load.pods // 2) if number % 2 == 0 else (HIGH, 2 * self.load.pods)

    def _reaction(self, cpu: int, wanted: int) -> tuple[Delays, float]:
        before = self.site.reading(self.running.pid)
        delays = follow(self.site.api, wanted, lambda: self.site.standin.use(cpu=cpu), self.plan.timeout)
        return delays, self.site.reading(self.running.pid).since(before).cpu["controller"]


def _status_writes(kinds: Json) -> float:
    return float(sum(count for kind, count in kinds.items() if _STATUS in kind))


def _writes(requests: Json) -> float:
    verbs = ("POST", "PUT", "PATCH", "DELETE", "APPLY")
    return float(sum(count for kind, count in requests.items() if kind.startswith(verbs)))


def _median(values: list[object]) -> object:
    numbers = [value for value in values if isinstance(value, int | float)]
    if numbers:
        return statistics.median(numbers)
    return values[0] if values else None


def _short(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.2f} s"
