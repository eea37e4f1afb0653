"""Run mutants of definitions: a fork imports the mutated module and whatever uses it from the beginning.

The value of a constant, a default or a field is copied into other modules when they are imported. So a fork of a
process that has loaded only other people's packages collects the tests anew.
"""

import functools
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tools.mutants.forks import Forks, limit_next_test
from tools.mutants.probes import Finder
from tools.mutants.record import OPTIONS

PRELOADED = [
    "_pytest.pytester",
    "asyncio",
    "aiohttp",
    "click",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "cryptography.x509",
    "httptools",
    "hypothesis.strategies",
    "msgspec.json",
    "msgspec.structs",
    "numpy",
    "prometheus_client",
    "pytest_asyncio.plugin",
    "rich.console",
    "rich.table",
    "uvicorn",
    "uvloop",
    "yaml",
    "celpy",
    "trustme",
]


class ColdPlugin:
    """Selects and orders the tests of one mutant, and notes which of them failed."""

    def __init__(self, tests: Sequence[tuple[str, float]]) -> None:
        self.seconds = dict(tests)
        self.order = {name: place for place, (name, _) in enumerate(tests)}
        self.ran = 0
        self.killed_by = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests, in their order."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a test file that cannot be imported any more."""
        if report.failed:
            self.killed_by = self.killed_by or f"importing {report.nodeid}"

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Limit the time of the test that begins."""
        limit_next_test(self.seconds[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first test that failed."""
        if report.failed:
            self.killed_by = self.killed_by or report.nodeid
        self.ran += report.when == "call"


def run(path: Path, source: bytes | None, tests: list[tuple[str, float]], files: list[str]) -> Any:
    """Collect and run tests with one module mutated, in the fork; without a source as they are."""

    def compile_mutant(_: bytes, place: Path) -> CodeType:
        return compile(source or b"", str(place), "exec", dont_inherit=True)

    if source is not None:
        Finder(compile_mutant, only=path).install()
    plugin = ColdPlugin(tests)
    options = [*OPTIONS, "-x", "-p", "no:faulthandler", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    status = pytest.main([*options, *files], plugins=[plugin])
    if plugin.killed_by:
        return {"killed_by": plugin.killed_by}
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return {"killed_by": f"pytest exit status {int(status)}"}
    return {"survived": plugin.ran}


class ColdRunner:
    """Runs each job in a fork. A kill counts once its test passed in a fork without the mutant."""

    def __init__(self, jobs: list[dict[str, Any]], parallel: int) -> None:
        self.waiting = list(jobs)
        self.forks = Forks(parallel)
        self.trusted: set[str] = {"time limit"}
        self.unreliable: set[str] = set()

    def results(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield each job with its result."""
        while self.waiting or self.forks.running:
            while self.waiting and not self.forks.is_full:
                self.start(self.waiting.pop(0))
            for (job, result), found in self.forks.wait():
                if result is not None:
                    (self.trusted if found and "survived" in found else self.unreliable).add(
                        result["killed_by"]
                    )
                else:
                    result = found if found is not None else {"killed_by": "time limit"}
                name = result.get("killed_by", "time limit")
                seconds = dict(job["tests"]).get(name)
                if name in self.unreliable and not self.tests_of(job):
                    yield job, {"survived": 0}
                elif name in self.unreliable:
                    self.start(job)
                elif name in self.trusted or seconds is None:
                    yield job, result
                else:
                    work = functools.partial(
                        run, Path(job["path"]), None, [(name, seconds)], [name.partition("::")[0]]
                    )
                    self.forks.start((job, result), work, 10 * seconds + 120)

    def tests_of(self, job: dict[str, Any]) -> list[tuple[str, float]]:
        """Return the tests of a job that can be relied on."""
        return [(name, seconds) for name, seconds in job["tests"] if name not in self.unreliable]

    def start(self, job: dict[str, Any]) -> None:
        """Start a mutant, without the tests that turned out to be unreliable."""
        tests = self.tests_of(job)
        files = sorted({name.partition("::")[0] for name, _ in tests})
        work = functools.partial(run, Path(job["path"]), job["source"].encode(), tests, files)
        self.forks.start((job, None), work, 10 * sum(seconds for _, seconds in tests) + 120)


def main(arguments: list[str]) -> int:
    """Run the jobs that a JSON file lists."""
    job = json.loads(Path(arguments[0]).read_text())
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    done = 0
    with Path(job["out"]).open("a") as out:
        for mutant, result in ColdRunner(job["jobs"], job["parallel"]).results():
            done += 1
            out.write(json.dumps({"number": mutant["number"], "result": result}) + "\n")
            out.flush()
            sys.stderr.write(f"\r{done}/{len(job['jobs'])} mutants of definitions ")
            sys.stderr.flush()
    sys.stderr.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
