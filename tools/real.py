"""Run the tests that need the real programs: build them once, then pytest. `make test-real` calls this.

`K8S=1.36` chooses the release of Kubernetes. `TIER=small` runs only the tests marked `versions`, which need no more than
etcd, kube-apiserver and kubectl. It is the default on a release that we support and do not build whole.

Exit code 0 also where the programs cannot be had (no `go`, no network), after saying so in one clear line. A build that
fails otherwise, for example of a release that does not exist, is an error with Go's own words. What failed is run once
more by itself.
"""

import os
import sys

from tools import second_run
from tools.peers import build, releases

TIERS = {"all": "real", "small": "real and versions and not controllers"}
"""The tests of a tier, by their marks."""

SMALL = ("etcd", "kube-apiserver", "kubectl")
"""The programs of the small tier."""

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
        build.ensure(SMALL if tier == "small" else list(build.PROGRAMS))
    except build.BuildFailedError as error:
        sys.exit(f"test-real: Kubernetes {release} was not run: {error}")
    except build.CannotBuildError as error:
        print(f"test-real: SKIPPED, nothing was run against the real programs: {error}")
        return
    if tier == "all":
        build.ensure_optional()
    print(f"test-real: Kubernetes {release}, tier {tier}, programs in {build.binaries()}", flush=True)
    sys.exit(second_run.run(sys.argv[1:] or WORKERS, ("-m", TIERS[tier], "-rs")))


def tier_of(release: str, wanted: str) -> str:
    """Return the tier to run: the wanted one, or what the release is built for."""
    oldest = releases.minor(release) <= releases.minor(releases.OLDEST)
    tier = wanted or ("small" if oldest else "all")
    if tier not in TIERS:
        raise ValueError(f"TIER={tier} is unknown; use {' or '.join(TIERS)}")
    return tier


if __name__ == "__main__":
    main()
