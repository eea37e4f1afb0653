"""Run the tests that need the real programs: build them once, then pytest. `make test-real` calls this.

`K8S=1.36` chooses the release of Kubernetes. `TIER=small` runs only the tests marked `versions`, which need no more than
etcd, kube-apiserver and kubectl. It is the default on a release that we support and do not build whole.

Exit code 0 also where the programs cannot be had (no `go`, no network), after saying so in one clear line. A build that
fails otherwise, for example of a release that does not exist, is an error with Go's own words. Real programs share two
cores with the tests and are sometimes slow; what failed is therefore run once more by itself, and the output says which
tests needed it.
"""

import os
import subprocess
import sys

import pytest

from tools.peers import build, releases

TIERS = {"all": "real", "small": "real and versions and not controllers"}
"""The tests of a tier, by their marks."""

SMALL = ("etcd", "kube-apiserver", "kubectl")
"""The programs of the small tier."""

WORKERS = ("-n", "2", "--dist", "loadfile")
"""A whole tier runs in two processes, each with an API server of its own: tests wait more than they compute."""


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
        release = releases.chosen()
        tier = tier_of(release, os.environ.get("TIER", ""))
    except ValueError as error:
        sys.exit(f"test-real: {error}")
    try:
        build.ensure(SMALL if tier == "small" else list(build.PROGRAMS))
    except build.BuildFailedError as error:
        sys.exit(f"test-real: Kubernetes {release} was not run: {error}")
    except build.CannotBuildError as error:
        print(f"test-real: SKIPPED, nothing was run against the real programs: {error}")
        return
    if tier == "all":
        build.ensure_optional()
    print(f"test-real: Kubernetes {release}, tier {tier}, programs in {build.binaries()}", flush=True)
    sys.exit(run(TIERS[tier], sys.argv[1:]))


def tier_of(release: str, wanted: str) -> str:
    """Return the tier to run: the wanted one, or what the release is built for."""
    oldest = releases.minor(release) <= releases.minor(releases.OLDEST)
    tier = wanted or ("small" if oldest else "all")
    if tier not in TIERS:
        raise ValueError(f"TIER={tier} is unknown; use {' or '.join(TIERS)}")
    return tier


def run(marks: str, arguments: list[str]) -> int:
    """Run the tier and, if some tests failed, these once more in a fresh process."""
    failures = Failures()
    code = int(pytest.main(["-m", marks, "-rs", *(arguments or WORKERS)], plugins=[failures]))
    if code != pytest.ExitCode.TESTS_FAILED or not failures.names:
        return code
    print(f"test-real: {len(failures.names)} failed and run once more:", flush=True)
    for name in failures.names:
        print(f"  {name}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-m", marks, *failures.names], check=False)
    if again.returncode == 0:
        print("test-real: all of them passed by themselves", flush=True)
    return again.returncode


if __name__ == "__main__":
    main()
