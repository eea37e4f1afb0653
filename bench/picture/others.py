"""Figures that need no API server: the pure cores, the backtest, the first run, the scorecard of faults."""

import re
import subprocess
import sys
from pathlib import Path

from bench import backtest as backtest_command
from bench import horizontal as horizontal_core
from bench import reaction
from bench import vertical as vertical_core
from bench.picture.api import Json

_ROOT = Path(__file__).parents[2]
_GROUP = re.compile(
    r"^(?P<title>[A-E] [\w, ]+?) {2,}(?P<survived>\d+) / +(?P<tried>\d+) of +(?P<all>\d+)", re.MULTILINE
)
_INPUTS = re.compile(
    r"^bad inputs refused clearly (?P<refused>\d+) / (?P<sent>\d+), slowest (?P<slowest>\d+) ms", re.MULTILINE
)
_SCALED = re.compile(r"first scaled workload (\d+(?:\.\d+)?) s")


def cores() -> Json:
    """Run the two micro benchmarks beside upstream's calculators and keep their rows."""
    return {"horizontal": list(horizontal_core.run()), "vertical": list(vertical_core.run())}


def backtest() -> Json:
    """Time a backtest of a week."""
    rows = list(backtest_command.run())
    return {"rows": rows, "seconds": rows[0]["seconds"]}


def first_scale() -> Json:
    """Time the way from a clone to a scaled workload."""
    said = _python("-m", "tools.first_scale", timeout=600)
    found = _SCALED.search(said)
    if found is None:
        raise RuntimeError(f"the first run did not say when it scaled: {said[-300:]}")
    return {"seconds": float(found[1]), "said": found.string.strip().splitlines()[0]}


def load_to_scale() -> Json:
    """Let ours and the peer follow loads that the real metrics-server measures."""
    return reaction.figures_of(reaction.measure(pairs=2))


def faults() -> Json:
    """Run the scorecard and read its groups."""
    said = _python("-m", "tests.scorecard", timeout=1200)
    groups, inputs = groups_of(said), inputs_of(said)
    if not groups or inputs is None:
        raise RuntimeError(f"the scorecard printed no groups or counted no bad inputs: {said[-500:]}")
    return {"groups": groups, "inputs": inputs}


def groups_of(scorecard: str) -> dict[str, list[int]]:
    """Return survived, tried and all faults of each group of a printed scorecard."""
    return {
        match["title"].strip(): [int(match["survived"]), int(match["tried"]), int(match["all"])]
        for match in _GROUP.finditer(scorecard)
    }


def inputs_of(scorecard: str) -> Json | None:
    """Return how many bad inputs were refused clearly, of how many, and the time that the slowest took."""
    found = _INPUTS.search(scorecard)
    if found is None:
        return None
    return {
        "refused": int(found["refused"]),
        "sent": int(found["sent"]),
        "slowest_ms": int(found["slowest"]),
    }


def _python(*arguments: str, timeout: float) -> str:
    run = subprocess.run(
        [sys.executable, *arguments], cwd=_ROOT, capture_output=True, text=True, check=False, timeout=timeout
    )
    return run.stdout + run.stderr
