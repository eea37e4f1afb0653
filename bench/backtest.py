"""Backtest: a week of one workload, a decision every 15 seconds, by the command that users type."""

import resource
import subprocess
import sys
import time
from pathlib import Path

from bench import Rows

_EXAMPLES = Path(__file__).parents[1] / "examples"
ROUNDS = 3


def run() -> Rows:
    command = [
        sys.executable, "-m", "trimtab", "simulate", str(_EXAMPLES / "simulate-web.yaml"),
        f"--trace={_EXAMPLES / 'traffic-week.csv'}", "--request=cpu=500m",
    ]  # fmt: skip
    taken = [_once(command) for _ in range(ROUNDS)]
    wall, cpu, said = min(taken)
    return [{"what": said, "seconds": round(wall, 2), "CPU seconds": round(cpu, 2)}]


def _once(command: list[str]) -> tuple[float, float, str]:
    """Return wall time, CPU time and the first line printed."""
    before, began = _children(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, _children() - before, done.stdout.splitlines()[0]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
