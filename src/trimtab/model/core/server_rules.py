"""Rules of API servers that differ between the versions of Kubernetes.

Each rule of HPAs has a row in docs/decisions/compat-names-the-version-of-kubernetes.md, each rule of pods one in
docs/kubernetes-versions.md.
"""

import re
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class ServerRules:
    """What an API server does with HPAs, scales, metadata and pods."""

    version: str
    hpa_generations: bool
    """HPAs have a generation, and their conditions keep an observedGeneration."""
    declared_replicas: bool
    """Bounds of replicas are checked by declarations. Their errors come last, and that of a missing maxReplicas has no
    detail."""
    required_owner_fields: bool
    """An owner reference without a field is named by its index, and the field is required instead of invalid, as is the
    operation of a field manager."""
    checks_scale_metadata: bool
    """The metadata of a Scale in a write is validated, although the server ignores it."""
    resizes_claims: bool
    """Pods with resource claims can be resized."""
    resizes_pod_level: bool
    """Pods with pod-level resources can be resized."""
    empty_pod_level_counts: bool
    """Pod-level resources without any amount decide the QoS class, which then is BestEffort."""
    completes_pod_level: bool
    """Missing pod-level requests and limits are filled in by those of the containers, after admission and by resizes.
    Other servers fill in requests beside limits, before admission."""


KUBERNETES_1_36: Final = ServerRules(
    "v1.36.3",
    hpa_generations=False,
    declared_replicas=False,
    required_owner_fields=False,
    checks_scale_metadata=True,
    resizes_claims=False,
    resizes_pod_level=True,
    empty_pod_level_counts=True,
    completes_pod_level=False,
)
KUBERNETES_1_37: Final = ServerRules(
    "v1.37.1",
    hpa_generations=True,
    declared_replicas=True,
    required_owner_fields=True,
    checks_scale_metadata=False,
    resizes_claims=True,
    resizes_pod_level=True,
    empty_pod_level_counts=False,
    completes_pod_level=True,
)
KUBERNETES_1_34: Final = replace(KUBERNETES_1_36, version="v1.34.4", resizes_pod_level=False)
"""The rules of 1.34 and 1.35, as far as they differ from 1.36 in what Trimtab sends."""


def rules_of(version: str) -> ServerRules:
    """Return the rules of a server by its version, such as `1.37`.

    An unknown version has the rules of 1.36, under which fewer pods are resized.
    """
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if found is None:
        return KUBERNETES_1_36
    known = int(found[1]), int(found[2])
    return KUBERNETES_1_37 if known >= (1, 37) else KUBERNETES_1_36 if known == (1, 36) else KUBERNETES_1_34
