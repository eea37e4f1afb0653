"""Which tests run: all on a simulated node, those of a table on a real one, or those that a regular expression names."""

import re
from collections.abc import Collection, Mapping, Sequence

from tools.upstream.cases import Case

JOBS = 34
JOBS_ON_A_REAL_NODE = 3
"""Tests at the same time. A real node has one CPU, and a test needs up to a quarter of it."""

ON_A_REAL_NODE: Mapping[str, str] = {
    "(non-default behavior) with autoscaling disabled shouldn't scale up": (
        "a behavior, under load for eight pods on one that is throttled at its limit"
    ),
    "(scale resource: CPU) ReplicaSet light Should scale from 1 pod to 2 pods": (
        "up on CPU that a kubelet measures"
    ),
    "(scale to zero) should scale down to zero and back up based on external metric value [Beta] [Serial]": (
        "down, up with pods that start slowly, and an aggregated API in a pod"
    ),
    "(scale resource: CPU) CustomResourceDefinition Should scale with a CRD targetRef": (
        "up by the scale of a custom resource, with the rights of the installation"
    ),
    "(scale resource: CPU) ReplicaSet with idle sidecar (ContainerResource use case) "
    "Should not scale up on a busy sidecar with an idle application": (
        "two containers of one pod that a kubelet measures apart"
    ),
}
"""The tests of a real node by short name, each with what it shows there; the longest come first.

A guest is slow on a busy machine. It measures up to three times the CPU that a pod was told to use, and a process needs long for
its memory. So no test is here that needs an upper bound of a measured usage: to scale down on CPU, or to stop at three pods
on the way from one to five.
"""


class UnknownTestError(Exception):
    """No test has a name that was chosen; the message says which."""


def among(cases: Sequence[Case], match: str, skip: str, names: Collection[str] | None = None) -> list[Case]:
    """Return the tests that a regular expression matches and another one does not; with names those, in their order."""
    if names is not None:
        by_name = {case.short_name: case for case in cases}
        if unknown := [name for name in names if name not in by_name]:
            raise UnknownTestError(
                f"this release of Kubernetes has no such test: {', '.join(unknown)}; mend tools/upstream/chosen.py"
            )
        cases = [by_name[name] for name in names]
    found = [case for case in cases if re.search(match, case.name) and not re.search(skip, case.name)]
    if not found:
        raise UnknownTestError(
            f"no test is left of {len(cases)} with --match={match} --skip={skip}; --list prints their names"
        )
    return found
