"""Run tests with probes and keep what each executes: `python -m tools.mutants.record JOBS FILE...`.

This module imports nothing of the package: recording begins before pytest loads any conftest.
"""

import functools
import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tools.mutants.forks import Forks
from tools.mutants.line_map import Store
from tools.mutants.probes import Finder, Recorder

LIMIT = 1800.0
"""CPU seconds that the tests of one file may take."""

OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0")


class RecordPlugin:
    """Replaces pytest's loop: the tests of each file run in a fork, and each test's blocks are kept."""

    def __init__(self, recorder: Recorder, store: Store, jobs: int) -> None:
        self.recorder = recorder
        self.store = store
        self.forks = Forks(jobs)
        self.at_import: dict[str, dict[str, list[int]]] = {}
        self.unrecorded: list[str] = []
        """Test files that could not be collected, or whose tests ended without a result."""

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Note what runs while a test file is imported and its tests are collected."""
        report = yield
        if isinstance(collector, pytest.Module):
            self.at_import[str(collector.path.relative_to(self.store.root))] = self.recorder.take()
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Name a test file that cannot be collected. pytest's own report goes nowhere."""
        if report.failed:
            self.unrecorded.append(report.nodeid)
            sys.stderr.write(f"\n{report.nodeid}: cannot be collected:\n{report.longreprtext}\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of every file and save their recordings."""
        by_file: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            by_file[str(item.path.relative_to(self.store.root))].append(item)
        clear_caches()
        gc.collect()
        gc.freeze()
        waiting = list(by_file)
        total, done = len(waiting), 0
        while waiting or self.forks.running:
            while waiting and not self.forks.is_full:
                file = waiting.pop(0)
                self.forks.start(file, functools.partial(self.run, by_file[file]), LIMIT)
            for file, tests in self.forks.wait():
                done += 1
                self.keep(file, tests)
                sys.stderr.write(f"\rrecorded {done}/{total} test files ")
        sys.stderr.write("\n")
        return True

    def keep(self, file: str, tests: dict[str, Any] | None) -> None:
        """Save one recording, and name what did not pass."""
        if tests is None:
            sys.stderr.write(f"\n{file}: the recording ended without a result\n")
            self.unrecorded.append(file)
            return
        for name, test in tests.items():
            if not test["passed"]:
                sys.stderr.write(f"\n{name}: does not pass unmutated, so it is not used\n")
        self.store.save(file, tests, self.at_import.get(file, {}), self.recorder.sources)

    def run(self, items: list[pytest.Item]) -> dict[str, Any]:
        """Run tests one by one, each with fixtures and caches of its own, so that each shows all it needs."""
        tests = {}
        for item in items:
            clear_caches()
            self.recorder.take()
            started, cpu = time.monotonic(), time.process_time()
            reports = runtestprotocol(item, nextitem=None, log=False)
            spent = time.process_time() - cpu + 0.1 * (time.monotonic() - started)
            is_skipped = any(report.skipped for report in reports)
            passed = not is_skipped and all(report.passed for report in reports)
            if not is_skipped:
                tests[item.nodeid] = {
                    "seconds": round(spent, 4),
                    "passed": passed,
                    "blocks": self.recorder.take(),
                }
        return tests


def clear_caches() -> None:
    """Empty every functools cache: what a cache answers executes no line."""
    for value in _caches():
        value.cache_clear()


@functools.lru_cache(maxsize=1)
def _caches() -> tuple[Any, ...]:
    kind = type(functools.lru_cache(len))
    found = (value for value in gc.get_objects() if type(value) is kind)
    return tuple(value for value in found if str(value.__module__).partition(".")[0] in {"trimtab", "tests"})


def main(arguments: list[str]) -> int:
    """Record the test files that a JSON file lists. Return 0 only if each of them was recorded."""
    root, job = Path.cwd(), json.loads(Path(arguments[0]).read_text())
    recorder = Recorder(root)
    Finder(recorder.compile, recorder.prepare).install()
    plugin = RecordPlugin(recorder, Store(root, Path(job["map"])), job["jobs"])
    status = pytest.main([*OPTIONS, *job["files"]], plugins=[plugin])
    if plugin.unrecorded:
        return 1
    # A file whose tests all need another platform has none to record.
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
