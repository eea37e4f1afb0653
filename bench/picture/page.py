"""docs/performance.md: the measured part between its markers, and the history of the releases."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.picture import machine, tables
from bench.picture.drawing import draw
from bench.picture.results import Results
from tools.peers import build, releases
from trimtab import __version__

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
HISTORY = ROOT / "bench" / "history" / "releases.jsonl"
BEGIN, END = "<!-- measured: begin; written by make bench -->", "<!-- measured: end -->"


def write(results: Results) -> None:
    """Write pictures, history and the measured part of the page."""
    pictures = draw(results)
    history = remember(results)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{PAGE} has lost its markers {BEGIN!r} and {END!r}; put them back")
    PAGE.write_text(
        before + BEGIN + "\n" + measured(results, pictures, history) + END + after, encoding="utf-8"
    )


def measured(results: Results, pictures: Sequence[str], history: Sequence[dict[str, object]]) -> str:
    """Return the measured part."""
    runs = results.runs()
    when = f"{runs[0]} to {runs[-1]} UTC" if runs else "never"
    versions = f"Kubernetes v{releases.chosen()}, etcd {build.ETCD} and VPA {build.VPA}"
    head = f"Measured {when}, Trimtab {_version()}, beside {versions}; {machine.describe()}. {_quietness(results)}"
    sections = [
        head,
        "### Goals\n\n" + markdown(tables.goal_table(results)),
        *(f"![{name.removesuffix('.svg').replace('-', ' ')}](images/{name})" for name in pictures),
        "### HPAs: medians per cycle\n\n" + markdown(tables.horizontal_table(results)),
        "### VPAs: medians per loop\n\n" + markdown(tables.vertical_table(results)),
        "### Requests per cycle (VPAs: per loop), by kind\n\n" + markdown(tables.request_table(results)),
        "### Memory\n\n" + markdown(tables.memory_table(results)),
    ]
    for name, table in tables.core_tables(results).items():
        sections.append(f"### The {name} core alone\n\n" + markdown(table))
    failed = tables.error_table(results)
    if failed:
        sections.append("### Not measured, and why\n\n" + markdown(failed))
    sections.append("### Release by release\n\n" + markdown(tables.history_table(history)))
    return "\n".join(f"{section}\n" for section in sections)


def markdown(table: tables.Table) -> str:
    """Return a table as Markdown."""
    head, *rows = table
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def remember(results: Results) -> list[dict[str, object]]:
    """Keep the ratios of this version in the history and return all of it, oldest first."""
    lines = HISTORY.read_text(encoding="utf-8").splitlines() if HISTORY.exists() else []
    history: list[dict[str, object]] = [json.loads(line) for line in lines]
    runs = results.runs()
    if runs:
        entry: dict[str, object] = {
            "version": __version__,
            "date": runs[-1].split(" ")[0],
            "ratios": tables.ratios(results),
        }
        history = [one for one in history if one["version"] != __version__] + [entry]
        HISTORY.parent.mkdir(parents=True, exist_ok=True)
        HISTORY.write_text("".join(json.dumps(one) + "\n" for one in history), encoding="utf-8")
    return history


def _version() -> str:
    run = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = run.stdout.strip()
    return f"{__version__} ({commit})" if commit else __version__


def _quietness(results: Results) -> str:
    others = [
        float(one.figures["other_cpu"])
        for scenario in (*tables.HORIZONTAL, *tables.VERTICAL)
        for one in results.of(scenario)
        if "other_cpu" in one.figures
    ]
    if not others:
        return ""
    return f"Everything else on the machine took {min(others):.2f} to {max(others):.2f} cores meanwhile."
