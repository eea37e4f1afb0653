"""Run pytest, and what failed once more by itself: `python -m tools.second_run ARGUMENTS`.

Real programs, browsers and two test processes share two cores in CI and are sometimes slow. A test that fails twice has
failed. The output says which tests needed the second run, so that they can be mended.
"""

import subprocess
import sys
from collections.abc import Sequence

import pytest


class Failures:
    """A pytest plugin that remembers which tests failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failure in any phase of a test."""
        if report.failed and report.nodeid not in self.names:
            self.names.append(report.nodeid)


def run(arguments: Sequence[str], options: Sequence[str] = ()) -> int:
    """Run the tests and, if some failed, these once more in a fresh process. `options` are given to both runs."""
    failures = Failures()
    code = int(pytest.main([*options, *arguments], plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or not failures.names:
        return code
    print(f"{len(failures.names)} failed and run once more:", flush=True)
    for name in failures.names:
        print(f"  {name}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", *options, *failures.names], check=False)
    if again.returncode == 0:
        print("all of them passed by themselves", flush=True)
    return again.returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
