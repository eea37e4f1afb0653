"""Kubernetes' own tests are listed, run in order, and judged by what their logs say."""

import json
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.upstream import report
from tools.upstream.cases import Case, Result, TestProgram, why_in

PROGRAM = """#!/usr/bin/env python3
import json, re, sys
arguments = dict(argument.lstrip("-").split("=", 1) for argument in sys.argv[1:] if "=" in argument)
if "--ginkgo.dry-run" in sys.argv:
    json.dump(json.loads({listing!r}), open(arguments["ginkgo.json-report"], "w"))
    sys.exit(0)
focus = arguments["ginkgo.focus"]
print("Ran 0 of 9 Specs" if "missed" in focus else "Ran 1 of 9 Specs in 1.0 seconds")
if "broken" in focus:
    print("[FAILED] wanted 3 replicas,\\n  saw 2\\nIn [It] at: hpa.go:1")
    sys.exit(1)
"""


def spec(name, *labels, kind="It", state="passed"):
    return {
        "ContainerHierarchyTexts": ["[sig-autoscaling] Horizontal pod autoscaling", "(CPU)"],
        "ContainerHierarchyLabels": [["HPA"], None],
        "LeafNodeText": name,
        "LeafNodeLabels": list(labels) or None,
        "LeafNodeType": kind,
        "State": state,
    }


@pytest.fixture
def program(tmp_path) -> TestProgram:
    specs = [
        spec("works"),
        spec("is broken"),
        spec("is missed", "Serial"),
        spec("starts", kind="BeforeSuite"),
        spec("other", state="skipped"),
    ]
    path = tmp_path / "e2e.test"
    path.write_text(PROGRAM.format(listing=json.dumps([{"SpecReports": specs}])))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return TestProgram(path, Path("kubeconfig"), tmp_path / "logs")


def test_only_tests_that_would_run_are_listed(program):
    assert [(case.short_name, case.is_serial) for case in program.cases()] == [
        ("(CPU) works", False),
        ("(CPU) is broken", False),
        ("(CPU) is missed", True),
    ]


def test_a_test_passes_only_if_it_ran(program):
    results = {
        result.case.short_name: result for result in program.run_all(program.cases(), 3, lambda _: None)
    }
    assert {name: result.has_passed for name, result in results.items()} == {
        "(CPU) works": True,
        "(CPU) is broken": False,
        "(CPU) is missed": False,
    }
    assert results["(CPU) is broken"].why == "wanted 3 replicas, saw 2"
    assert "did not run to its end" in results["(CPU) is missed"].why
    assert report.summary(list(results.values()), "trimtab") == "trimtab: 1 of 3 passed"


def test_serial_tests_never_run_side_by_side(program, monkeypatch):
    cases = [Case(f"test {number}", is_serial=number % 2 == 0) for number in range(8)]
    running, most, both = 0, 0, threading.Barrier(4, timeout=30)
    lock = threading.Lock()

    def run(_, case):
        nonlocal running, most
        if not case.is_serial:
            both.wait()
            return program_result(case)
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return program_result(case)

    monkeypatch.setattr(TestProgram, "run", run)
    assert [result.case for result in program.run_all(cases, 8, lambda _: None)] == cases
    assert most == 1


def program_result(case):
    return Result(case, has_passed=True, seconds=1.0, why="", log=Path("log"))


def test_a_second_run_keeps_the_log_of_the_first(program):
    case = program.cases()[1]
    program.run_all([case], 1, lambda _: None)
    program.run_all([case], 1, lambda _: None)
    assert len(list(program.logs.glob("*.log"))) == 2


def test_results_are_saved_by_name(program, tmp_path):
    results = program.run_all(program.cases(), 1, lambda _: None)
    report.save(results, "trimtab", tmp_path / "results.json")
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["controller"] == "trimtab"
    assert [row["test"] for row in saved["tests"]] == sorted(row["test"] for row in saved["tests"])
    assert [row["passed"] for row in saved["tests"]] == [False, False, True]


def test_a_log_without_an_assertion_is_named():
    assert why_in("killed") == "the test did not run to its end; see its log"


RUNNER = """
from pathlib import Path
from tools.upstream.cases import Case, TestProgram
program = TestProgram(Path({program!r}), Path("kubeconfig"), Path({logs!r}))
program.run_all([Case("one", False), Case("two", False)], 2, print)
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv ties programs to us")
def test_a_killed_run_leaves_no_test_behind(tmp_path):
    """Fourteen tests went on for up to an hour after their cluster was gone."""
    program = tmp_path / "e2e.test"
    program.write_text("#!/bin/sh\necho pid $$\nexec sleep 600\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    logs = tmp_path / "logs"
    source = RUNNER.format(program=str(program), logs=str(logs))
    with subprocess.Popen([sys.executable, "-c", source]) as runner:
        try:
            wait_until(lambda: len(pids(logs)) == 2)
        finally:
            runner.kill()
    wait_until(lambda: not any(is_running(pid) for pid in pids(logs)))


def pids(logs: Path) -> list[int]:
    return [int(pid) for log in logs.glob("*.log") for pid in re.findall(r"pid (\d+)\n", log.read_text())]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.05)
