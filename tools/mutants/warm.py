"""Run mutants of functions in forks of one pytest process that has collected all tests.

A fork replaces the code of the functions that live already. Nothing is imported again, so a mutant costs little more
than the tests that execute it.
"""

import functools
import gc
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tools.mutants.forks import Forks, limit_next_test
from tools.mutants.record import OPTIONS, clear_caches

Job = dict[str, Any]


class WarmPlugin:
    """Replaces pytest's loop: each job runs in a fork, and each killing test is tried without the mutant, too."""

    def __init__(self, jobs: Sequence[Job], parallel: int, out: Path) -> None:
        self.waiting: list[Job] = list(jobs)
        self.total = len(jobs)
        self.forks = Forks(parallel)
        self.out = out
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[FunctionType]] = {}
        self.trusted: set[str] = set()
        self.unreliable: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all jobs and write a line for each."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions = live_functions({job["path"] for job in self.waiting})
        clear_caches()
        gc.collect()
        gc.freeze()
        done = 0
        with self.out.open("a") as out:
            for job, result in self.results():
                done += 1
                out.write(json.dumps({"number": job["number"], "result": result}) + "\n")
                out.flush()
                sys.stderr.write(f"\r{done}/{self.total} mutants of functions ")
                sys.stderr.flush()
        sys.stderr.write("\n")
        return True

    def results(self) -> Iterator[tuple[Job, Any]]:
        """Yield each job with its result; a kill counts once its test passed without the mutant."""
        while self.waiting or self.forks.running:
            while self.waiting and not self.forks.is_full:
                self.start(self.waiting.pop(0))
            for (job, result), checked in self.forks.wait():
                if result is not None:
                    self.judge(result["killed_by"], checked)
                    is_proven = result["killed_by"] in self.trusted
                else:
                    result = checked if checked is not None else {"killed_by": "time limit"}
                    is_proven = result.get("killed_by", "time limit") in {*self.trusted, "time limit"}
                if "killed_by" in result and not is_proven:
                    self.check(job, result)
                    continue
                yield job, result

    def start(self, job: Job) -> None:
        """Start a mutant, without the tests that turned out to be unreliable."""
        tests = [
            (name, seconds)
            for name, seconds in job["tests"]
            if name in self.items and name not in self.unreliable
        ]
        expected = sum(seconds for _, seconds in tests)
        self.forks.start((job, None), functools.partial(self.run, job, tests), 10 * expected + 30)

    def check(self, job: Job, result: Any) -> None:
        """Start the killing test without the mutant, or the mutant again without an unreliable test."""
        name = result["killed_by"]
        if name in self.unreliable:
            self.start(job)
        else:
            seconds = dict(job["tests"])[name]
            self.forks.start(
                (job, result), functools.partial(self.run, None, [(name, seconds)]), 10 * seconds + 30
            )

    def judge(self, name: str, checked: Any) -> None:
        """Trust a test that passed without any mutant."""
        (self.trusted if checked and "survived" in checked else self.unreliable).add(name)

    def run(self, job: Job | None, tests: list[tuple[str, float]]) -> Any:
        """Run tests until one fails, in the fork."""
        if job is not None:
            replace_code(self.functions.get(job["path"], []), Path(job["path"]), job["source"].encode())
        clear_caches()
        for name, seconds in tests:
            limit_next_test(seconds)
            reports = runtestprotocol(self.items[name], nextitem=None, log=False)
            if any(report.failed for report in reports):
                return {"killed_by": name}
        return {"survived": len(tests)}


def live_functions(paths: set[str]) -> dict[str, list[FunctionType]]:
    """Return the functions that exist now, by the file they come from."""
    found: dict[str, list[FunctionType]] = {}
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and value.__code__.co_filename in paths:
            found.setdefault(value.__code__.co_filename, []).append(value)
    return found


def replace_code(functions: Sequence[FunctionType], path: Path, source: bytes) -> None:
    """Give living functions the code that the mutated source has for them."""
    # An edit may shorten the file, so functions are matched by name and order, not by line.
    names = {
        (code.co_qualname, code.co_firstlineno): name
        for name, code in _named(path.read_bytes(), path).items()
    }
    codes = _named(source, path)
    replaced = 0
    for function in functions:
        old = function.__code__
        new = codes.get(names.get((old.co_qualname, old.co_firstlineno), ("", 0)))
        if new is not None and new != old:
            if len(new.co_freevars) != len(old.co_freevars):
                raise RuntimeError(
                    f"{path}: {old.co_qualname} binds other names than before; it cannot be replaced"
                )
            function.__code__ = new
            replaced += 1
    if not replaced:
        raise RuntimeError(f"{path}: no living function has the mutated code")


def _named(source: bytes, path: Path) -> dict[tuple[str, int], CodeType]:
    """Return the code of every function, by its name and its place among those of the same name."""
    seen: Counter[str] = Counter()
    named = {}
    for code in _codes(compile(source, str(path), "exec", dont_inherit=True)):
        named[code.co_qualname, seen[code.co_qualname]] = code
        seen[code.co_qualname] += 1
    return named


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def main(arguments: list[str]) -> int:
    """Run the jobs that a JSON file lists."""
    job = json.loads(Path(arguments[0]).read_text())
    plugin = WarmPlugin(job["jobs"], job["parallel"], Path(job["out"]))
    return int(pytest.main([*OPTIONS, *job["files"]], plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
