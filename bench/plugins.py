"""The cost of a pod filter: CPU of the operator per decision with its status write, with the filter and without it.

1,000 HPAs of 10 pods each on the real API server. Usage moves inside the tolerance, so that each sync decides and writes the
status of every HPA. Both take turns in the same run, and the ratio of each pair is the result. The pods stay the same, as they
do between rollouts. `QUICK=1` plays one pair of 200 HPAs.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench import Rows
from bench.picture.contenders import TRIMTAB, Contender
from bench.picture.generator import Load
from bench.picture.horizontal import Plan, play
from bench.picture.site import Site, put_up
from trimtab.model.hpa.selection_strategy import ANNOTATION

NAME = "bench.example.com/NotDeleted"
FILTER = """
def plugin(seen):
    return {pod.name: "it is being deleted" for pod in seen.pods if pod.is_deleted}
"""
GATE = "--feature-gates=HPASelectionStrategy=true"
WITHOUT = Contender(TRIMTAB.name, "without a filter", options=(GATE,))
WITH = Contender(TRIMTAB.name, "with a filter", options=(GATE, f"--plugins={NAME}"))
PAIRS = 3
PLAN = Plan(rounds=0, windows=2, window=15)


def run() -> Rows:
    """Let both take turns, and return CPU per decision and the ratios."""
    is_quick = os.environ.get("QUICK", "") not in {"", "0"}
    plain = Load(200, 10, 10) if is_quick else Load(1000, 10, 50)
    filtered = Load(plain.workloads, plain.pods, plain.namespaces, annotations=((ANNOTATION, NAME),))
    found: dict[str, list[float]] = {WITHOUT.label: [], WITH.label: []}
    with tempfile.TemporaryDirectory() as directory:
        _install(Path(directory))
        with put_up(Path(directory)) as site:
            for pair in range(1 if is_quick else PAIRS):
                turns = [(WITHOUT, plain), (WITH, filtered)]
                for who, load in turns if pair % 2 == 0 else reversed(turns):
                    found[who.label].append(_milliseconds(site, who, load))
    ratios = [after / before for before, after in zip(*found.values(), strict=True)]
    return [
        *({"what": label, "ms of CPU per decision with its write": f"{statistics.median(spent):.3f}", "of each turn": _list(spent)}
          for label, spent in found.items()),
        {"what": "ratio", "ms of CPU per decision with its write": f"{statistics.median(ratios):.3f}", "of each turn": _list(ratios)},
    ]  # fmt: skip


def _milliseconds(site: Site, who: Contender, load: Load) -> float:
    figures = play(site, who, load, PLAN, lambda text: print(f"{who.label}: {text}", file=sys.stderr))
    return float(figures["controller_ms"])


def _install(folder: Path) -> None:
    """Lay out the package of the filter as an installer does, where the operator finds it."""
    (folder / "bench_filter.py").write_text(FILTER)
    info = folder / "bench_filter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-filter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[trimtab.pod_filters]\n{NAME} = bench_filter:plugin\n")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def _list(numbers: list[float]) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)
