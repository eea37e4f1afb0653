"""Run the tests that need the real programs: build them once, then pytest. `make test-real` calls this.

`K8S=1.36` chooses the release of Kubernetes. `TIER=small` runs only the tests marked `versions`, which need no more than
etcd, kube-apiserver and kubectl. It is the default on a release that we support and do not build whole.

Exit code 0 also where the programs cannot be had (no `go`, no network), after saying so in one clear line. A build that
fails otherwise, for example of a release that does not exist, is an error with Go's own words. What failed is run once
more by itself.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tools import second_run
from tools.peers import build, releases

TIERS = {"all": "real", "small": "real and versions and not controllers"}
"""The tests of a tier, by their marks."""

SMALL = ("etcd", "kube-apiserver", "kubectl")
"""The programs of the small tier."""

OPTIONAL_TESTS = {
    "helm": Path("tests/real/install/test_helm.py"),
    "kube-state-metrics": Path("tests/real/test_state_metrics.py"),
}
"""The tests that need each optional program. Without these tests it is not built."""

WORKERS = ("-n", "2", "--dist", "loadfile")
"""A whole tier runs in two processes, each with an API server of its own: tests wait more than they compute."""


def main() -> None:
    """Build what is missing and run the tier."""
    try:
        release = releases.chosen()
        tier = tier_of(release, os.environ.get("TIER", ""))
    except ValueError as error:
        sys.exit(f"test-real: {error}")
    try:
        _build(SMALL if tier == "small" else tuple(build.PROGRAMS), f"the tests of tier {tier}")
    except build.BuildFailedError as error:
        sys.exit(f"test-real: Kubernetes {release} was not run: {error}")
    except build.CannotBuildError as error:
        print(f"test-real: SKIPPED, nothing was run against the real programs: {error}")
        return
    if tier == "all":
        for name in optional_programs(sys.argv[1:]):
            _build_optional(name)
    print(f"test-real: Kubernetes {release}, tier {tier}, programs in {build.binaries()}", flush=True)
    sys.exit(second_run.run(sys.argv[1:] or WORKERS, ("-m", TIERS[tier], "-rs")))


def _build(names: Sequence[str], users: str) -> None:
    """Build what is missing, after saying what for."""
    if missing := [name for name in names if build.find(name) is None]:
        print(f"test-real: {', '.join(missing)} must be built once, for {users}", flush=True)
    build.ensure(names)


def _build_optional(name: str) -> None:
    try:
        _build([name], str(OPTIONAL_TESTS[name]))
    except build.CannotBuildError as error:
        print(f"without {name}: {error}", flush=True)


def optional_programs(arguments: Sequence[str]) -> list[str]:
    """Return the optional programs that the tests need which pytest's arguments name. None named means all tests."""
    named = [Path(argument.partition("::")[0]) for argument in arguments]
    places = [place.resolve() for place in named if place.exists()]
    return [
        name
        for name, tests in OPTIONAL_TESTS.items()
        if not places or any(tests.resolve().is_relative_to(place) for place in places)
    ]


def tier_of(release: str, wanted: str) -> str:
    """Return the tier to run: the wanted one, or what the release is built for."""
    oldest = releases.minor(release) <= releases.minor(releases.OLDEST)
    tier = wanted or ("small" if oldest else "all")
    if tier not in TIERS:
        raise ValueError(f"TIER={tier} is unknown; use {' or '.join(TIERS)}")
    return tier


if __name__ == "__main__":
    main()
