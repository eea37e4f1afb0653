"""Run the tests that need the real programs: build them once, then pytest. `make test-real` calls this.

Exit code 0 also where the programs cannot be had (no `go`, no network), after saying so in one clear line. Real programs
share two cores with the tests and are sometimes slow; what failed is therefore run once more by itself, and the
output says which tests needed it.
"""

import subprocess
import sys

import pytest

from tools.peers import build


class Failures:
    """A pytest plugin that remembers which tests failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failure in any phase of a test."""
        if report.failed and report.nodeid not in self.names:
            self.names.append(report.nodeid)


def main() -> None:
    """Build what is missing and run the tier."""
    try:
        where = build.ensure(list(build.PROGRAMS))
    except build.CannotBuildError as error:
        print(f"test-real: SKIPPED, nothing was run against the real programs: {error}")
        return
    for name in build.OPTIONAL:
        try:
            build.ensure([name])
        except build.CannotBuildError as error:
            print(f"test-real: without {name}: {error}", flush=True)
    print(f"test-real: using the programs in {where}", flush=True)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the tier and, if some tests failed, these once more in a fresh process."""
    failures = Failures()
    code = int(pytest.main(["-m", "real", "-rs", *arguments], plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or not failures.names:
        return code
    print(f"test-real: {len(failures.names)} failed and run once more:", flush=True)
    for name in failures.names:
        print(f"  {name}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-m", "real", *failures.names], check=False)
    if again.returncode == 0:
        print("test-real: all of them passed by themselves", flush=True)
    return again.returncode


if __name__ == "__main__":
    main()
