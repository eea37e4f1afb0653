"""From load to the first scale with the real metrics-server: ours beside kube-controller-manager.

30 namespaces have one workload each. Their HPAs are created at random moments of one sync period, and later their load
doubles at other random moments. A watch notes when each Deployment is scaled first. Both contenders run at their
defaults with the same moments, in turn, on an idle machine and with every core busy. metrics-server scrapes every
15 s, so the wait for its next scrape is in both figures. `QUICK=1` plays one pair; `SEED` changes the moments.
"""

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import Row, Rows
from bench._kubelet import Pod, Usage
from bench._metrics_server import RESOLUTION, serving, wait_until_measured
from bench.picture import objects
from bench.picture.api import Api, Json
from bench.picture.contenders import (
    DEFAULTS,
    TRIMTAB,
    Contender,
    Running,
    account,
    horizontal_options,
    start_ours,
    start_peer,
)
from bench.picture.generator import Generator, Load
from bench.picture.horizontal import HIGH, LEVEL
from bench.picture.objects import Names
from bench.picture.watching import DEPLOYMENTS, Change, watching
from tools.peers import processes
from tools.peers.cluster import RealCluster

PERIOD = 15.0
LOAD = Load(30, 4, 30)
PAIRS = 3
_CONTAINER = "main"
_SETTLE = PERIOD + 5
_PATIENCE = 120.0
_SPIN = "while True: pass"


@dataclass(frozen=True)
class Moment:
    """When the load of one workload doubles, in seconds from the start of a round."""

    at: float
    names: Names


@dataclass
class Place:
    """The cluster with metrics-server, for both contenders."""

    cluster: RealCluster
    api: Api
    usage: Usage
    kubeconfig: Path
    has_hpas: bool = True

    def reset(self) -> None:
        """Bring usage and replicas back, and delete the HPAs.

        metrics-server goes on, so objects are written through the API server. It would miss what the generator
        writes to etcd.
        """
        self.usage.use(_pods(LOAD.names()), LEVEL)
        for names in LOAD.names():
            deployment = f"/apis/apps/v1/namespaces/{names.namespace}/deployments/{names.app}"
            self.api.merge(deployment, {"spec": {"replicas": LOAD.pods}}, "kubectl")
            if self.has_hpas:
                self.api.text(f"{_hpas(names)}/{names.app}", "DELETE")
        self.has_hpas = False

    def create_hpas(self, moments: Sequence[Moment]) -> None:
        """Create each HPA at its moment: kube-controller-manager reconciles it every 15 s from then on."""
        body = json.dumps(objects.hpa(LOAD.pods, LOAD.metrics))
        began = time.monotonic()
        for moment in moments:
            time.sleep(max(0.0, began + moment.at - time.monotonic()))
            names = moment.names
            self.api.create(_hpas(names), json.loads(body.replace(objects.SEED_APP, names.app)), "kubectl")
        self.has_hpas = True

    def start(self, who: Contender) -> Running:
        """Start a contender at its defaults."""
        if who.is_ours:
            return start_ours(self.cluster.directory, self.kubeconfig, *horizontal_options(PERIOD))
        return start_peer(self.cluster, who, PERIOD)


Found = dict[str, dict[str, list[float]]]
"""Seconds from load to first scale, by machine (idle or busy) and contender."""


def run() -> Rows:
    """Measure both contenders, idle and busy."""
    is_quick = os.environ.get("QUICK", "") not in {"", "0"}
    found = measure(1 if is_quick else PAIRS)
    return [row for machine, by_contender in found.items() for row in rows_of(machine, by_contender)]


def measure(pairs: int = PAIRS) -> Found:
    """Let both contenders take turns, and return how long each load took to be followed."""
    chance = random.Random(int(os.environ.get("SEED", "1")))
    found: Found = {}
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-reaction-", ignore_cleanup_errors=True) as name,
        _place(Path(name)) as place,
    ):
        for machine, spinners in (("idle", 0), ("busy", os.cpu_count() or 1)):
            seconds = found[machine] = {DEFAULTS.name: [], TRIMTAB.name: []}
            for _ in range(pairs):
                created, loaded = moments_of(LOAD, chance), moments_of(LOAD, chance)
                for who in (DEFAULTS, TRIMTAB):
                    with _busy(Path(name), spinners):
                        seconds[who.name] += _turn(place, who, created, loaded)
    return found


def figures_of(found: Found) -> Json:
    """Return the medians, their ratio and the number of loads, by machine."""
    figures: Json = {}
    for machine, seconds in found.items():
        ours, peer = seconds[TRIMTAB.name], seconds[DEFAULTS.name]
        if ours and peer:
            medians = statistics.median(ours), statistics.median(peer)
            figures[machine] = {
                "ours": medians[0],
                "peer": medians[1],
                "ratio": medians[0] / medians[1],
                "loads": [len(ours), len(peer)],
            }
    return figures


def moments_of(load: Load, chance: random.Random) -> list[Moment]:
    """Return a random moment within one period for each workload, in order."""
    moments = [Moment(chance.uniform(0, PERIOD), names) for names in load.names()]
    return sorted(moments, key=lambda moment: moment.at)


def rows_of(machine: str, found: dict[str, list[float]]) -> list[Row]:
    """Return one row per contender, the ratio in ours."""
    rows: list[Row] = []
    for who in (DEFAULTS, TRIMTAB):
        seconds, peer = found[who.name], found[DEFAULTS.name]
        row: dict[str, object] = {"machine": machine, "contender": who.label, "scaled": len(seconds)}
        for title, figure in (("median s", statistics.median), ("p90 s", _p90), ("mean s", statistics.fmean)):
            row[title] = f"{figure(seconds):.1f}" if seconds else "-"
        if who.is_ours and seconds and peer:
            row["ratio of medians"] = f"{statistics.median(seconds) / statistics.median(peer):.2f}"
            row["ratio of means"] = f"{statistics.fmean(seconds) / statistics.fmean(peer):.2f}"
        rows.append(row)
    return rows


def _p90(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(0.9 * (len(seconds) - 1))]


@contextmanager
def _place(directory: Path) -> Iterator[Place]:
    with RealCluster(directory) as cluster:
        api = Api(cluster.url, cluster.tokens["admin"])
        usage = Usage(_CONTAINER)
        usage.use(_pods(LOAD.names()), LEVEL)
        Generator(api, cluster.etcd).fill(LOAD)
        with serving(cluster, api, usage):
            yield Place(cluster, api, usage, account(api, cluster.kubeconfig))


@contextmanager
def _busy(directory: Path, spinners: int) -> Iterator[None]:
    """Keep so many cores busy."""
    command = [sys.executable, "-c", _SPIN]
    started = [processes.start(command, directory, directory / "spin.log") for _ in range(spinners)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def _turn(place: Place, who: Contender, created: Sequence[Moment], loaded: Sequence[Moment]) -> list[float]:
    """Let one contender follow all loads, and return how long each workload took to be scaled first."""
    place.reset()
    wait_until_measured(place.api, LOAD.namespaces)
    time.sleep(2 * RESOLUTION)  # the last turn's load is gone from two scrapes
    running = place.start(who)
    try:
        place.create_hpas(created)
        time.sleep(_SETTLE)
        if running.has_ended():
            raise RuntimeError(f"{who.label} ended by itself; see its log in {place.cluster.directory}")
        seconds = _follow(place, loaded)
    finally:
        running.stop()
    print(f"{who.label}: {len(seconds)} of {LOAD.workloads} scaled", file=sys.stderr, flush=True)
    return seconds


def _follow(place: Place, moments: Sequence[Moment]) -> list[float]:
    loaded: dict[str, float] = {}
    scaled: dict[str, float] = {}

    def note(change: Change) -> None:
        if change.key in loaded and change.replicas > LOAD.pods:
            scaled.setdefault(change.key, change.at - loaded[change.key])

    with watching(place.api, DEPLOYMENTS) as watch:
        began = time.monotonic()
        for moment in moments:
            for change in watch.until(began + moment.at):
                note(change)
            place.usage.use(_pods([moment.names]), HIGH)
            loaded[f"{moment.names.namespace}/{moment.names.app}"] = time.monotonic()
        for change in watch.until(time.monotonic() + _PATIENCE):
            note(change)
            if len(scaled) == len(moments):
                break
    return list(scaled.values())


def _pods(all_names: Sequence[Names]) -> list[Pod]:
    return [(names.namespace, names.pod(number)) for names in all_names for number in range(LOAD.pods)]


def _hpas(names: Names) -> str:
    return f"/apis/autoscaling/v2/namespaces/{names.namespace}/horizontalpodautoscalers"
