"""Runs every test of a fault and says what was survived: `python -m tests.scorecard [--real] [pytest options]`.

A fault is known by its number in a test's name or id (`test_f24_...`, `[F52 no target]`). A fault is survived when
all of its tests pass, and tried when it has any. Bad inputs are counted one by one, as their tests record them.
"""

import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from tests.inputs.count import Count, Outcome

INPUTS = "tests/inputs/test_doors.py"
CLASSES = "tests/real/test_status_classes.py"
PLACES = ("tests/faults", "tests/unit", "tests/scenarios", INPUTS, CLASSES)
FAULT = re.compile(r"(?<![a-z0-9])f(\d\d)(?![0-9])", re.IGNORECASE)
GROUPS = (
    ("A transport and watch", range(1, 21)),
    ("B process, time, leadership", range(21, 31)),
    ("C metric answers", range(31, 46)),
    ("D objects and other actors", range(46, 55)),
    ("E vertical", range(55, 61)),
)


@dataclass(eq=False)
class Scorecard:
    """What became of the tests of each fault; a plugin of pytest."""

    passed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    failed: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    plans: int = 0
    inputs: Count = field(default_factory=Count)
    classes: str = "status class as kube-apiserver's: not compared (--real does)"

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that are about a fault, and those of bad inputs."""
        config.hook.pytest_deselected(items=[item for item in items if not _is_scored(item.nodeid)])
        items[:] = [item for item in items if _is_scored(item.nodeid)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test for each fault that it names, and each input that it records."""
        if report.when != "call" and not report.failed:
            return
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "inputs" and isinstance(value, dict):
                for door, outcomes in value.items():
                    self.inputs.add(door, (Outcome(**one) for one in outcomes))
            elif name == "classes":
                self.classes = str(value)
        for fault in faults_of(report.nodeid):
            if report.failed:
                self.failed[fault].append(report.nodeid)
            elif report.passed:
                self.passed[fault] += 1
        if report.passed:
            self.plans += sum(int(str(value)) for name, value in report.user_properties if name == "plans")

    def __str__(self) -> str:
        lines = []
        for title, numbers in GROUPS:
            tried = [number for number in numbers if number in self.passed or number in self.failed]
            survived = [number for number in tried if number not in self.failed]
            rest = [f"F{number:02}" for number in numbers if number not in survived]
            named = f"; not tried or not survived: {' '.join(rest)}" if rest else ""
            lines.append(f"{title:30} {len(survived):2} / {len(tried):2} of {len(numbers):2}{named}")
        cases = sum(self.passed.values()) + sum(len(one) for one in self.failed.values())
        lines.append(f"{cases} cases, {self.plans} crash plans that ended as the clean run did")
        lines += [f"  failed: {name}" for names in self.failed.values() for name in names]
        lines += [str(self.inputs), *(f"  not so: {one}" for one in self.inputs.problems()), self.classes]
        return "\n".join(lines)


def _is_scored(nodeid: str) -> bool:
    return bool(faults_of(nodeid)) or nodeid.startswith((INPUTS, CLASSES))


def faults_of(nodeid: str) -> list[int]:
    """Return the faults that a test's own name and id speak of; the name of its file does not count."""
    return sorted({int(number) for number in FAULT.findall(nodeid.partition("::")[2].replace("_", " "))})


def main(arguments: list[str]) -> int:
    """Run the tests and print the scorecard; fail if a fault was not survived."""
    is_real = "--real" in arguments
    chosen = [one for one in arguments if one != "--real"]
    scorecard = Scorecard()
    marks = "real or not real" if is_real else "not real"
    code = pytest.main(["-q", "--no-header", "-m", marks, *PLACES, *chosen], plugins=[scorecard])
    sys.stdout.write(f"\nsurvived / tried\n{scorecard}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
