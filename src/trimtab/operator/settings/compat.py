"""Parses `--compat`: names of upstream programs, separated by commas."""

import re
from typing import Final

from trimtab.operator.settings.declare import Form

KUBERNETES: Final = ("kubernetes-1.36", "kubernetes-1.37")
"""HPAs as that version of kube-controller-manager decides them; VPAs by the rules of the upstream VPA."""
VPA: Final = "vpa-1.8"
"""VPAs as the upstream VPA 1.8 treats them: its rules, defaults and names, and none of our eviction limits."""
KNOWN: Final = (*KUBERNETES, VPA)
UPSTREAM: Final = Form("|".join(map(re.escape, KNOWN)), f"known; known are: {', '.join(KNOWN)}")


def upstreams(compat: str) -> frozenset[str]:
    """Return the upstream programs that `--compat` names.

    Raise ValueError if one is unknown, or if two versions of Kubernetes are named.
    """
    names = [part.strip() for part in compat.split(",") if part.strip()]
    if unknown := [name for name in names if name not in KNOWN]:
        raise ValueError(f"--compat: {unknown[0]!r} is not known; known are: {', '.join(KNOWN)}")
    versions = sorted({name for name in names if name in KUBERNETES})
    if len(versions) > 1:
        raise ValueError(f"--compat: name one version of Kubernetes, not {' and '.join(versions)}")
    return frozenset(names)


def kubernetes_version(compat: str) -> str:
    """Return the version of Kubernetes that `--compat` names, or an empty text. Raise ValueError as `upstreams` does."""
    return next((name for name in upstreams(compat) if name in KUBERNETES), "")
