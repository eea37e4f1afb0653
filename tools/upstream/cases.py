"""The tests of `k8s.io/kubernetes/test/e2e/autoscaling` that are about the HPA: lists them, runs one in a process."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.peers import processes

_FOCUS = "Horizontal pod autoscaling"
_LONGEST = 3600
"""Seconds after which a test is ended: the longest one takes 23 minutes."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test by its full name."""

    name: str
    is_serial: bool

    @property
    def short_name(self) -> str:
        """Return the name without the words that all tests have."""
        return self.name.split(_FOCUS, 1)[-1].strip()


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of a test gave."""

    case: Case
    has_passed: bool
    seconds: float
    why: str
    log: Path


@dataclass(frozen=True, slots=True)
class TestProgram:
    """Kubernetes' test program with the cluster it runs against."""

    __test__ = False

    program: Path
    kubeconfig: Path
    logs: Path

    def cases(self) -> list[Case]:
        """Return the tests of the HPA, as a dry run of the program lists them."""
        self.logs.mkdir(parents=True, exist_ok=True)
        report = self.logs / "list.json"
        listing = ("--ginkgo.dry-run", f"--ginkgo.focus={_FOCUS}", f"--ginkgo.json-report={report}")
        subprocess.run([*self._command(), *listing], capture_output=True, timeout=300, check=False)
        found = json.loads(report.read_text())[0]["SpecReports"]
        return [_case(spec) for spec in found if spec["LeafNodeType"] == "It" and spec["State"] != "skipped"]

    def run(self, case: Case) -> Result:
        """Run one test in a process of its own."""
        log = self._log_of(case)
        started = time.monotonic()
        with log.open("wb") as output:
            # This thread waits for the test, so a test that outlives it was abandoned.
            tied = processes.tied_to_this_thread()
            command = [*tied, *self._command(), f"--ginkgo.focus={re.escape(case.name)}$"]
            try:
                code = subprocess.run(
                    command, stdout=output, stderr=output, timeout=_LONGEST, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
        text = log.read_text(errors="replace")
        # A focus that matches nothing also ends with 0.
        has_passed = code == 0 and "Ran 1 of " in text
        return Result(case, has_passed, time.monotonic() - started, "" if has_passed else why_in(text), log)

    def run_all(self, cases: Iterable[Case], jobs: int, report: Callable[[Result], None]) -> list[Result]:
        """Run tests side by side, those marked serial one after another; report each as it ends."""
        self.logs.mkdir(parents=True, exist_ok=True)
        serial, reporting = threading.Lock(), threading.Lock()

        def run(case: Case) -> Result:
            if case.is_serial:
                with serial:
                    result = self.run(case)
            else:
                result = self.run(case)
            with reporting:
                report(result)
            return result

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, cases))

    def _command(self) -> list[str]:
        return [
            str(self.program), f"--kubeconfig={self.kubeconfig}", "--provider=skeleton", "--num-nodes=1",
            "--ginkgo.no-color", "--ginkgo.v", "--disable-log-dump=true",
        ]  # fmt: skip

    def _log_of(self, case: Case) -> Path:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", case.short_name).strip("-")[:200]
        tries = len(list(self.logs.glob(f"{slug}.*.log")))
        return self.logs / f"{slug}.{tries + 1}.log"


def why_in(log: str) -> str:
    """Return the assertion that failed, in one line, as the log of a test tells it."""
    found = re.search(r"\[FAILED\] (.*?)\n(?:In \[It\]|There were)", log, re.DOTALL)
    text = found[1] if found else "the test did not run to its end; see its log"
    return " ".join(text.split())[:600]


def _case(spec: dict[str, Any]) -> Case:
    name = " ".join([*spec["ContainerHierarchyTexts"], spec["LeafNodeText"]])
    groups = [*(spec["ContainerHierarchyLabels"] or []), spec["LeafNodeLabels"]]
    return Case(name, any("Serial" in (labels or ()) for labels in groups))
