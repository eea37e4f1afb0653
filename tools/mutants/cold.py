"""Run mutants of definitions: a fork imports the mutated module and whatever uses it from the beginning.

The value of a constant, a default or a field is copied into other modules when they are imported. So a fork of a
process that has loaded only other people's packages collects the tests anew.
"""

import functools
import importlib
import json
import sys
from collections.abc import Sequence
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


def run(path: Path, source: bytes, tests: list[tuple[str, float]], files: list[str]) -> Any:
    """Collect and run tests with one module mutated, in the fork."""

    def compile_mutant(_: bytes, place: Path) -> CodeType:
        return compile(source, str(place), "exec", dont_inherit=True)

    Finder(compile_mutant, only=path).install()
    plugin = ColdPlugin(tests)
    options = [*OPTIONS, "-x", "-p", "no:faulthandler", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    status = pytest.main([*options, *files], plugins=[plugin])
    if plugin.killed_by:
        return {"killed_by": plugin.killed_by}
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return {"killed_by": f"pytest exit status {int(status)}"}
    return {"survived": plugin.ran}


def main(arguments: list[str]) -> int:
    """Run the jobs that a JSON file lists."""
    job = json.loads(Path(arguments[0]).read_text())
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    forks, waiting, done = Forks(job["parallel"]), list(job["jobs"]), 0
    with Path(job["out"]).open("a") as out:
        while waiting or forks.running:
            while waiting and not forks.is_full:
                mutant = waiting.pop(0)
                tests = [(name, seconds) for name, seconds in mutant["tests"]]
                work = functools.partial(
                    run, Path(mutant["path"]), mutant["source"].encode(), tests, mutant["files"]
                )
                forks.start(mutant, work, 10 * sum(seconds for _, seconds in tests) + 120)
            for mutant, result in forks.wait():
                done += 1
                result = result if result is not None else {"killed_by": "time limit"}
                out.write(json.dumps({"number": mutant["number"], "result": result}) + "\n")
                out.flush()
                sys.stderr.write(f"\r{done}/{len(job['jobs'])} mutants of definitions ")
                sys.stderr.flush()
    sys.stderr.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
