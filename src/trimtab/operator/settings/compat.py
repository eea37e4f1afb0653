"""Parses `--compat`: names of upstream programs, separated by commas."""

from typing import Final

KUBERNETES: Final = "kubernetes-1.36"
"""HPAs as kube-controller-manager 1.36 decides them; VPAs by the rules of the upstream VPA."""
VPA: Final = "vpa-1.8"
"""VPAs as the upstream VPA 1.8 treats them: its rules, defaults and names, and none of our eviction limits."""
KNOWN: Final = (KUBERNETES, VPA)


def upstreams(compat: str) -> frozenset[str]:
    """Return the upstream programs that `--compat` names.

    Raise ValueError if one is unknown.
    """
    names = [part.strip() for part in compat.split(",") if part.strip()]
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        raise ValueError(f"--compat: {unknown[0]!r} is not known; known are: {', '.join(KNOWN)}")
    return frozenset(names)
