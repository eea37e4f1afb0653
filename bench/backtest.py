"""Backtest: a week of one workload by the command that users type, an HPA every 15 seconds and a VPA every minute."""

import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import Rows

_EXAMPLES = Path(__file__).parents[1] / "examples"
ROUNDS = 3
PODS = 10


def run() -> Rows:
    hpa = ["simulate-web.yaml", f"--trace={_EXAMPLES / 'traffic-week.csv'}", "--request=cpu=500m"]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "week.csv"
        trace.write_text("".join(_week()))
        size = ["--request=cpu=1", "--request=memory=2Gi", f"--replicas={PODS}"]
        vpa = ["simulate-one-vpa.yaml", f"--trace={trace}", *size]
        return [_row(hpa, ""), _row(vpa, f", a VPA of {PODS} pods")]


def _week() -> list[str]:
    """Return usage of all pods by the minute, which rises and falls each day."""
    rows = ["time,cpu,memory\n"]
    for minute in range(7 * 24 * 60):
        wave = math.sin(minute / 1440 * 2 * math.pi)
        rows.append(f"{minute * 60},{2 + 1.5 * wave:.3f},{8 + 2 * wave:.3f}Gi\n")
    return rows


def _row(arguments: list[str], about: str) -> dict[str, str | float]:
    file, *options = arguments
    command = [sys.executable, "-m", "trimtab", "simulate", str(_EXAMPLES / file), *options]
    wall, cpu, said = min(_once(command) for _ in range(ROUNDS))
    return {"what": said + about, "seconds": round(wall, 2), "CPU seconds": round(cpu, 2)}


def _once(command: list[str]) -> tuple[float, float, str]:
    """Return wall time, CPU time and the first line printed."""
    before, began = _children(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, _children() - before, done.stdout.splitlines()[0]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
