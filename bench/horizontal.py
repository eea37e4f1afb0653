"""Horizontal decisions: one whole decision for 1, 10 and 100 pods; upstream's Go calculator in the same run.

Ours is the whole decision: selection, metric, tolerance, windows, limits, conditions, status, reasons. The peer's
figure is its replica calculation alone, without conditions, status or windows, which nothing lets one call apart.
The opcode count is deterministic: it tells a change of ours from a change of the machine.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from bench import Rows, best_seconds
from trimtab.decide.horizontal import (
    Observation,
    PodSamples,
    PodSnapshot,
    Sample,
    decide,
)
from trimtab.decide.horizontal.observation.requests import ContainerRequests
from trimtab.model.core.meta import CrossVersionObjectReference, ObjectMeta, OwnerReference
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)

SIZES = (1, 10, 100)
NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
PEER = Path(__file__).parent / "go" / "hpa"
ROUNDS = 25
OWNER = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid="uid-of-web")


def observed(count: int, strategy: str | None = None) -> Observation:
    """Return a steady workload of `count` ready pods at their CPU target, as the second sync finds it."""
    moment = NOW.timestamp()
    cpu = {"cpu": 100}
    pods = tuple(
        PodSnapshot(
            name=f"web-{number:05}",
            labels={"app": "web"},
            phase="Running",
            ready="True",
            ready_since=moment - 3600,
            started=moment - 3600,
            requests=cpu,
            containers=(ContainerRequests(name="main", requests=cpu),),
            owners=(OWNER,),
        )
        for number in range(count)
    )
    target = MetricTarget(type="Utilization", average_utilization=100)
    hpa = HorizontalPodAutoscaler(
        metadata=ObjectMeta(name="web", namespace="shop", uid="uid-of-hpa", generation=1),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=CrossVersionObjectReference(
                api_version="apps/v1", kind="Deployment", name="web"
            ),
            min_replicas=1,
            max_replicas=10 * count,
            metrics=(MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target)),),
            selection_strategy=strategy,
        ),
    )
    samples = {pod.name: Sample(100 + number % 7, moment - 20, 15.0) for number, pod in enumerate(pods)}
    first = Observation(
        hpa=hpa,
        gates=FeatureGates(hpa_selection_strategy=True),
        scale=Scale(
            metadata=ObjectMeta(uid="uid-of-web"),
            spec=ScaleSpec(replicas=count),
            status=ScaleStatus(replicas=count, selector="app=web"),
        ),
        pods=pods,
        samples=(PodSamples(samples=samples, timestamp=moment - 20),),
    )
    decision = decide(first, NOW)
    return msgspec.structs.replace(
        first, hpa=msgspec.structs.replace(hpa, status=decision.status), memory=decision.memory
    )


def microseconds(seen: Observation, count: int) -> float:
    """Return the time of one decision."""
    calls = 2_000 // count + 50

    def decide_often() -> None:
        for _ in range(calls):
            decide(seen, NOW)

    return best_seconds(decide_often, ROUNDS) / calls * 1e6


def opcodes(seen: Observation) -> int:
    """Count the bytecodes that one decision runs."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    decide(seen, NOW)
    sys.settrace(trace)
    try:
        decide(seen, NOW)
    finally:
        sys.settrace(None)
    return count


def peer() -> Iterator[tuple[int, float]]:
    """Run upstream's calculator and yield its time by number of pods; say why not where it cannot be run."""
    if shutil.which("go") is None:
        sys.stderr.write("bench horizontal: no `go` here, so upstream's calculator is not measured\n")
        return
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "hpa"
        try:
            subprocess.run(
                ["go", "build", "-o", program, "."], cwd=PEER, check=True, capture_output=True, timeout=900
            )
            run = subprocess.run([program, *map(str, SIZES)], check=True, capture_output=True, timeout=300)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            sys.stderr.write(f"bench horizontal: upstream's calculator is not measured: {error}\n")
            return
    for line in map(json.loads, run.stdout.splitlines()):
        yield int(line["pods"]), line["us"]


def run() -> Rows:
    theirs = dict(peer())
    rows = []
    for count in SIZES:
        seen = observed(count)
        ours, calculator = microseconds(seen, count), theirs.get(count)
        rows.append(
            {
                "pods": count,
                "us per decision": f"{ours:.1f}",
                "by OwnerReference": f"{microseconds(observed(count, 'OwnerReference'), count):.1f}",
                "opcodes": f"{opcodes(seen):,}",
                "upstream's calculator alone": "" if calculator is None else f"{calculator:.1f}",
                "ratio": "" if calculator is None else f"{ours / calculator:.2f}",
            }
        )
    return rows
