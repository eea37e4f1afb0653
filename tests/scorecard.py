"""Runs every test of a fault and says what was survived: `python -m tests.scorecard [--real] [pytest options]`.

A fault is known by its number in a test's name or id (`test_f24_...`, `[F52 no target]`). A fault is survived when
all of its tests pass, and tried when it has any. Bad inputs are counted one by one, as their tests record them. Hardening is counted in
tests, by the files that hold each boundary.
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
HARDENING = {
    "accounts and rights": (
        "tests/unit/install/test_security_page.py", "tests/unit/operator/test_health.py",
        "tests/real/install/test_accounts.py", "tests/real/install/test_escalation.py",
    ),
    "bulkheads": (
        "tests/unit/metrics/test_bulkheads.py", "tests/unit/cluster/transport/test_lanes.py",
        "tests/unit/cluster/transport/test_outage.py", "tests/unit/cluster/transport/test_rate_limits.py",
        "tests/unit/operator/horizontal/test_write_slots.py",
    ),
    "staleness per namespace, kind": (
        "tests/faults/horizontal/test_stale_caches.py", "tests/unit/decide/horizontal/test_stale_caches.py",
        "tests/unit/cluster/cache/test_backoff.py",
    ),
    "adapter doors": (
        "tests/unit/adapter/api", "tests/adapter/test_forward.py", "tests/adapter/test_limits.py",
        "tests/unit/adapter/sources/prometheus/test_promql.py", "tests/real/adapter/test_names_of_series.py",
    ),
    "serving limits": (
        "tests/unit/serving/test_connections.py", "tests/unit/serving/test_greedy_clients.py",
        "tests/unit/serving/test_protocol.py",
    ),
    "dashboard rights": (
        "tests/dashboard/test_rights.py", "tests/dashboard/test_access.py", "tests/dashboard/test_sessions.py",
        "tests/dashboard/test_request_checks.py", "tests/real/test_dashboard_rights.py",
    ),
    "memory": (
        "tests/scenarios/test_leaks.py", "tests/unit/operator/pods/test_memory.py",
        "tests/unit/metrics/test_failed_answers.py",
    ),
    "clock": (
        "tests/faults/horizontal/test_wrong_clock.py",
    ),
    "errors by name": ("tests/unit/cli/test_system_errors.py", "tests/unit/operator/test_descriptors.py"),
    "soak": ("tests/soak",),
    "fuzz": ("tests/fuzz",),
}  # fmt: skip
"""The tests of each boundary, by file or folder."""
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
    broken: list[str] = field(default_factory=list)
    """The tests of hardening that failed."""
    plans: int = 0
    hardening: dict[str, list[bool]] = field(default_factory=lambda: {title: [] for title in HARDENING})
    """Whether each test of a boundary passed."""
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
        for title in rows_of(report.nodeid) if not report.skipped else ():
            self.hardening[title].append(report.passed)
            if report.failed:
                self.broken.append(report.nodeid)
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
        lines += [
            f"{title:30} {sum(passed):3} / {len(passed):3} tests{'' if passed else '; none was run'}"
            for title, passed in self.hardening.items()
        ]
        lines += [f"  failed: {name}" for name in self.broken]
        lines += [str(self.inputs), *(f"  not so: {one}" for one in self.inputs.problems()), self.classes]
        return "\n".join(lines)


def _is_scored(nodeid: str) -> bool:
    return bool(faults_of(nodeid) or rows_of(nodeid)) or nodeid.startswith((INPUTS, CLASSES))


def rows_of(nodeid: str) -> list[str]:
    """Return the rows of hardening that a test belongs to."""
    file = nodeid.partition("::")[0]
    return [
        title
        for title, places in HARDENING.items()
        if any(file == place or file.startswith(f"{place}/") for place in places)
    ]


def faults_of(nodeid: str) -> list[int]:
    """Return the faults that a test's own name and id speak of; the name of its file does not count."""
    return sorted({int(number) for number in FAULT.findall(nodeid.partition("::")[2].replace("_", " "))})


def _is_within(place: str) -> bool:
    return any(place.startswith(f"{other}/") for other in PLACES)


def main(arguments: list[str]) -> int:
    """Run the tests and print the scorecard; fail if a fault was not survived."""
    is_real = "--real" in arguments
    chosen = [one for one in arguments if one != "--real"]
    scorecard = Scorecard()
    marks = "real or not real" if is_real else "not real"
    places = sorted(
        {*PLACES, *(place for row in HARDENING.values() for place in row if not _is_within(place))}
    )
    code = pytest.main(["-q", "--no-header", "-m", marks, *places, *chosen], plugins=[scorecard])
    sys.stdout.write(f"\nsurvived / tried\n{scorecard}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
