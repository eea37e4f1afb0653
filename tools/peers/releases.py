"""The releases of Kubernetes that we run. The environment variable `K8S` chooses one for the whole process.

`K8S=1.36` names a minor version and means the patch release below. `K8S=1.36.1` names a release by itself.
"""

import os
import re
from collections.abc import Mapping

RELEASES = {"1.37": "1.37.1", "1.36": "1.36.3", "1.34": "1.34.4"}
"""The patch release of each minor version that we run, the newest first."""

DEFAULT = "1.37"
OLDEST = "1.34"
"""The oldest minor version that we support: it serves `pods/resize` by default, and it still builds."""


class UnknownReleaseError(ValueError):
    """`K8S` names no release of Kubernetes."""


def chosen(environ: Mapping[str, str] = os.environ) -> str:
    """Return the release that `K8S` names, as `1.37.1`."""
    wanted = environ.get("K8S") or DEFAULT
    release = RELEASES.get(wanted, wanted.removeprefix("v"))
    if not re.fullmatch(r"1\.\d+\.\d+", release):
        raise UnknownReleaseError(
            f"K8S={wanted} is no release of Kubernetes; use {', '.join(RELEASES)}, or a full version as in K8S=1.36.1"
        )
    return release


def minor(release: str) -> tuple[int, int]:
    """Return the minor version of a release as numbers that can be compared: (1, 37)."""
    first, second, *_ = release.removeprefix("v").split(".")
    return int(first), int(second)


def before(version: str) -> bool:
    """Return whether the chosen release is older than a minor version, for tests whose answers depend on it."""
    return minor(chosen()) < minor(version)
