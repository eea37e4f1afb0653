"""Command line of the mutation run; `make mutants` calls it."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.mutants import catalogue
from tools.mutants.catalogue import Mutant
from tools.mutants.line_map import LineMap, RecordedTest, Store, load_map, ordered, reached_sources
from tools.mutants.probes import blocks_of
from tools.mutants.report import BROKEN, EQUIVALENT, KILLED, SURVIVED, UNCOVERED, Verdict, print_report
from tools.mutants.uses import Uses, uses_in

CACHE = Path(".mutants")
EQUIVALENT_FILE = Path(__file__).with_name("equivalent.toml")
TESTS = ("tests/unit", "tests/scenarios", "tests/faults", "tests/conformance")
WITHOUT = tuple(
    f"tests/unit/{name}"
    for name in ("adapter", "bench", "docs", "install", "lab", "mutants", "test_watchdog")
)
"""Tests of packages that are not mutated by default, of texts, and of this tool."""

COLD_FILES = 15
"""Test files that are collected for one mutant of a definition."""


@dataclass
class Run:
    """The mutants of one run with the tests that may kill each."""

    line_map: LineMap
    budget: float
    jobs: int
    verdicts: list[Verdict] = field(default_factory=list)
    uses: Uses | None = None

    def tests_of(self, mutant: Mutant) -> list[RecordedTest]:
        """Return the tests that execute the mutated block, in the order to try."""
        block = blocks_of(Path(mutant.file).read_bytes()).by_line.get(mutant.edit.statement_line)
        found = self.line_map.by_block.get((mutant.file, block), []) if block is not None else []
        return list(ordered(found, self.budget, home_of(mutant)))

    def tests_using(self, mutant: Mutant) -> list[RecordedTest]:
        """Return the tests that use a mutated definition, its folder's tests that import it, and those of its file.

        What a function computes while modules are imported, such as a field of a dataclass, is used by tests that
        execute nothing of it. The tests of its folder are the nearest of them.
        """
        if self.uses is None:
            self.uses = uses_in(sorted(catalogue.SOURCE.rglob("*.py")))
        names = mutant.edit.names or (mutant.edit.function.rpartition(".")[2],)
        blocks = self.uses.blocks_using(names)
        found = {test for block in blocks for test in self.line_map.by_block.get(block, ())}
        home = home_of(mutant)
        found |= self.line_map.by_import[mutant.file]
        root = Path.cwd()
        near = {
            test
            for test in self.line_map.tests
            if test.file.startswith(f"{home}/") and mutant.file in reached_sources(root, test.file)
        }
        groups = (found, near - found, self.line_map.by_file[mutant.file] - found - near)
        nearest = [test for group in groups for test in ordered(group, self.budget, home)]
        files = list(dict.fromkeys(test.file for test in nearest))[:COLD_FILES]
        return [test for test in nearest if test.file in files]

    def is_at_import(self, mutant: Mutant) -> bool:
        """Return whether the mutated line also runs while modules and tests are imported."""
        block = blocks_of(Path(mutant.file).read_bytes()).by_line.get(mutant.edit.statement_line, -1)
        return (mutant.file, block) in self.line_map.at_import

    def execute(self, mutants: list[Mutant]) -> None:
        """Run all mutants: functions first, then definitions and what only runs at import."""
        known = catalogue.equivalents(EQUIVALENT_FILE)
        self.verdicts += [Verdict(mutant, EQUIVALENT) for mutant in mutants if mutant.key in known]
        rest = [mutant for mutant in mutants if mutant.key not in known]
        functions = [
            (mutant, tests) for mutant in rest if mutant.edit.function and (tests := self.tests_of(mutant))
        ]
        results = self.start("warm", functions)
        cold = [mutant for mutant in rest if not mutant.edit.function]
        for mutant in rest:
            result = results.get(mutant.key)
            if "error" in (result or {}) or (
                self.is_at_import(mutant) and "survived" in (result or {"survived": 0})
            ):
                cold.append(mutant)
            elif mutant.edit.function:
                self.judge(mutant, result)
        cold = list({mutant.key: mutant for mutant in cold}.values())
        results = self.start(
            "cold", [(mutant, tests) for mutant in cold if (tests := self.tests_using(mutant))]
        )
        for mutant in cold:
            self.judge(mutant, results.get(mutant.key))

    def judge(self, mutant: Mutant, result: dict[str, Any] | None) -> None:
        """Turn the result of a mutant into a verdict."""
        if result is None:
            verdict = Verdict(mutant, UNCOVERED, "no recorded test executes it")
        elif "killed_by" in result:
            verdict = Verdict(mutant, KILLED, result["killed_by"])
        elif "survived" in result:
            verdict = Verdict(mutant, SURVIVED, f"{result['survived']} tests passed")
        else:
            verdict = Verdict(mutant, BROKEN, str(result.get("error", result)).strip().rpartition("\n")[2])
        self.verdicts.append(verdict)

    def start(self, kind: str, chosen: list[tuple[Mutant, list[RecordedTest]]]) -> dict[Any, dict[str, Any]]:
        """Run mutants in a process of their own and return the result of each by its key."""
        if not chosen:
            return {}
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "results.jsonl"
            out.touch()
            jobs = [_job(number, mutant, tests) for number, (mutant, tests) in enumerate(chosen)]
            files = sorted({test.file for _, tests in chosen for test in tests})
            run_part(kind, {"jobs": jobs, "files": files, "parallel": self.jobs, "out": str(out)}, directory)
            lines = [json.loads(line) for line in out.read_text().splitlines()]
        if len(lines) < len(chosen):
            sys.stderr.write(f"mutants: {len(chosen) - len(lines)} of {len(chosen)} mutants have no result\n")
        return {chosen[line["number"]][0].key: line["result"] for line in lines}


def home_of(mutant: Mutant) -> str:
    """Return the folder of the unit tests of a mutant's package."""
    return f"tests/unit/{Path(mutant.file).parent.relative_to(catalogue.SOURCE)}"


def _job(number: int, mutant: Mutant, tests: list[RecordedTest]) -> dict[str, Any]:
    return {
        "number": number,
        "path": str(Path(mutant.file).resolve()),
        "source": catalogue.mutated(mutant).decode(),
        "tests": [(test.name, test.seconds) for test in tests],
        "files": sorted({test.file for test in tests}),
    }


class PartFailedError(Exception):
    """A session of this tool ended without having done its work."""


def run_part(kind: str, job: dict[str, Any], directory: str) -> None:
    """Run a session of this tool in a fresh interpreter, with compiled files beside the map.

    Raise PartFailedError if it fails: a score without its results would mean nothing.
    """
    path = Path(directory) / f"{kind}.json"
    path.write_text(json.dumps(job))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {
        "PYTHONPYCACHEPREFIX": str((CACHE / "pycache").resolve()),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(directory) / "hypothesis"),
    }
    command = [sys.executable, "-m", f"tools.mutants.{kind}", str(path)]
    status = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode
    if status:
        reason = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise PartFailedError(
            f"tools.mutants.{kind} ended with {reason}; mend what the lines above name, or run it again"
        )


def test_files() -> list[str]:
    """Return the test files that take part."""
    found = (str(path) for place in TESTS for path in Path(place).rglob("test_*.py"))
    return sorted(name for name in found if not name.startswith(WITHOUT))


def current_map(jobs: int, mode: str) -> LineMap:
    """Return the map of tests to lines, after recording the test files that changed."""
    store = Store(Path.cwd(), CACHE / "map")
    files = test_files()
    line_map, stale = load_map(store, files, keep_stale=mode != "renew")
    if stale and mode != "frozen":
        sys.stderr.write(f"recording which lines the tests of {len(stale)} files execute\n")
        with tempfile.TemporaryDirectory() as directory:
            run_part("record", {"map": str(store.directory), "jobs": jobs, "files": stale}, directory)
        line_map, _ = load_map(store, files, keep_stale=mode != "renew")
    for folder in line_map.silent_folders:
        sys.stderr.write(
            f"warning: the tests of {folder} executed nothing of the package; was it imported too early?\n"
        )
    if line_map.failed:
        sys.stderr.write(f"warning: {len(line_map.failed)} tests fail without a mutant and are not used\n")
    return line_map


def main(arguments: Iterable[str] | None = None) -> int:
    """Sample mutants, run them, print the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--seed", default="1", help="which mutants are drawn (default 1)")
    parser.add_argument("--count", type=int, default=200, help="how many (default 200)")
    parser.add_argument(
        "--package", action="append", default=[], help="packages, folders or modules below src/trimtab"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)"
    )
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant (default 20)")
    parser.add_argument(
        "--map",
        choices=("renew", "keep", "frozen"),
        default="renew",
        help="keep: record only changed tests; frozen: record nothing",
    )
    parser.add_argument(
        "--operator", action="append", default=[], help="only these, such as boundary or drop call"
    )
    parser.add_argument("--json", type=Path, help="also write the verdicts to this file")
    options = parser.parse_args(None if arguments is None else list(arguments))
    packages = [name for text in options.package for name in text.split(",") if name] or list(
        catalogue.PACKAGES
    )

    started = time.monotonic()
    mutants = catalogue.sample(packages, options.count, options.seed, options.operator)
    try:
        run = Run(current_map(options.jobs, options.map), options.budget, options.jobs)
        mapped = time.monotonic()
        run.execute(mutants)
    except PartFailedError as error:
        sys.stderr.write(f"mutants: {error}\n")
        return 1
    print_report(run.verdicts, sys.stdout)
    print(
        f"\nseed {options.seed}: {len(mutants)} mutants in {time.monotonic() - mapped:.0f} s, map in {mapped - started:.0f} s"
    )
    if options.json:
        options.json.write_text(json.dumps([_row(verdict) for verdict in run.verdicts], indent=1))
    return 0


def _row(verdict: Verdict) -> dict[str, Any]:
    file, function, operator, before, after = verdict.mutant.key
    return {
        "file": file,
        "line": verdict.mutant.edit.line,
        "function": function,
        "operator": operator,
        "before": before,
        "after": after,
        "outcome": verdict.outcome,
        "detail": verdict.detail,
    }


if __name__ == "__main__":
    sys.exit(main())
