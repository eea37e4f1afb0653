"""Vertical core: one usage sample, one recommendation, one aggregate; upstream's Go core in the same run."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count as count_from
from pathlib import Path
from typing import Any

import numpy as np

from bench import Rows, best_seconds
from tests.unit.decide.vertical.samples import UsageBatch, add_usage
from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.containers import ContainerTable, UsageRows
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerToRecommend,
    RecommenderSettings,
    recommend_rows,
)
from trimtab.model.times import SECOND_NS, parse_ns

SIZES = (1_000, 100_000)
ROUNDS = {1_000: 60, 100_000: 10}
START_NS = parse_ns("2026-01-15T12:00:00Z")
PEER = Path(__file__).parent / "go" / "vpa"


def usage(count: int, scrape: int) -> tuple[np.ndarray, np.ndarray]:
    """Return millicores and bytes: a spread of about a decade, each container moving a little."""
    number = np.arange(count)
    millicores = 50 + (number * 7 + scrape * 13) % 1000
    memory = (100 + (number * 11 + scrape * 3) % 2000) << 20
    return millicores, memory


def core(count: int) -> dict[str, float]:
    """Measure samples by row number, as a scrape delivers them once its names are resolved."""
    before = resident_bytes()
    aggregates = AggregateTable()
    containers = ContainerTable(aggregates)
    rows = np.array([containers.allocate() for _ in range(count)])
    containers.aggregate[rows] = [aggregates.allocate() for _ in range(count)]
    scrapes = count_from(0)

    def scrape() -> None:
        number = next(scrapes)
        times = np.full(count, START_NS + number * 60 * SECOND_NS)
        millicores, memory = usage(count, number)
        containers.add_cpu(UsageRows(rows, millicores, times))
        containers.add_memory(UsageRows(rows, memory, times))

    sample = best_seconds(scrape, ROUNDS.get(count, 1))
    held = resident_bytes() - before
    wanted = [ContainerToRecommend(int(row), "app", (25, 262_144_000)) for row in containers.aggregate[rows]]
    settings = RecommenderSettings()

    def recommend() -> None:
        found = recommend_rows(aggregates, wanted, settings)
        # All six amounts of every container as plain numbers, which is what upstream's call returns.
        assert all(len(batch.listed[0]) == count for batch in found.estimates[0].values())

    recommendation = best_seconds(recommend, ROUNDS.get(count, 1) // 2 or 1)
    return {
        "sampleNs": sample / (2 * count) * 1e9,
        "recommendationNs": recommendation / count * 1e9,
        "aggregateBytes": held / count,
    }


def model(count: int) -> dict[str, float]:
    """Measure samples by name through the whole cluster model, refusals included."""
    state = ClusterState()
    names = [ContainerId(PodId(f"ns-{number % 100}", f"pod-{number}"), "app") for number in range(count)]
    for number, name in enumerate(names):
        state.add_or_update_pod(name.pod, {"app": f"app-{number}"}, "Running", START_NS)
        state.add_or_update_container(name, 100, 2**27, START_NS)
    scrapes = count_from(0)

    def scrape() -> None:
        number = next(scrapes)
        now_ns = START_NS + number * 60 * SECOND_NS
        for resource, amounts in zip(("cpu", "memory"), usage(count, number), strict=True):
            batch = UsageBatch(names, amounts.tolist(), [now_ns] * count)
            add_usage(state, resource, batch, now_ns)

    return {"sampleNs": best_seconds(scrape, ROUNDS[count] // 2) / (2 * count) * 1e9}


def resident_bytes() -> int:
    """Return the memory that this process really holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def peer() -> Iterator[dict[str, Any]]:
    """Run upstream's core; say why not where it cannot be run."""
    if shutil.which("go") is None:
        sys.stderr.write("bench vertical: no `go` here, so upstream's core is not measured\n")
        return
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "vpa"
        try:
            subprocess.run(
                ["go", "build", "-o", program, "."], cwd=PEER, check=True, capture_output=True, timeout=900
            )
            run = subprocess.run([program, *map(str, SIZES)], check=True, capture_output=True, timeout=300)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            sys.stderr.write(f"bench vertical: upstream's core is not measured: {error}\n")
            return
    yield from (json.loads(line) for line in run.stdout.splitlines())


def row(name: str, count: int, figures: dict[str, float]) -> dict[str, object]:
    return {
        "what": name,
        "aggregates": f"{count:,}",
        "ns per sample": _shown(figures.get("sampleNs")),
        "ns per recommendation": _shown(figures.get("recommendationNs")),
        "bytes per aggregate": _shown(figures.get("aggregateBytes")),
    }


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}"


def run() -> Rows:
    rows: list[dict[str, object]] = []
    core(100)  # imports and first allocations are nobody's samples
    mine = {count: core(count) for count in SIZES}
    theirs = {line["aggregates"]: line for line in peer()}
    for count, ours in mine.items():
        rows += [row("ours", count, ours), row("ours, by name, whole model", count, model(count))]
        if count in theirs:
            rows.append(row("upstream's Go core", count, theirs[count]))
            rows.append(_ratio(count, ours, theirs[count]))
    return rows


def _ratio(count: int, ours: dict[str, float], theirs: dict[str, float]) -> dict[str, object]:
    times = {name: f"{theirs[name] / ours[name]:.2f}x" for name in ours}
    return {
        "what": "upstream / ours",
        "aggregates": f"{count:,}",
        "ns per sample": times["sampleNs"],
        "ns per recommendation": times["recommendationNs"],
        "bytes per aggregate": times["aggregateBytes"],
    }
