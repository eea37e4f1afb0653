"""Rules of API servers that differ between the versions of Kubernetes that `--compat` names.

Each rule has a row in docs/decisions/compat-names-the-version-of-kubernetes.md.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ServerRules:
    """What an API server does with HPAs, scales and metadata."""

    version: str
    hpa_generations: bool
    """HPAs have a generation, and their conditions keep an observedGeneration."""
    declared_max_replicas: bool
    """A missing maxReplicas is rejected by a declaration, whose message has no detail."""
    required_owner_fields: bool
    """An owner reference without a field is named by its index, and the field is required instead of invalid, as is the
    operation of a field manager."""
    checks_scale_metadata: bool
    """The metadata of a Scale in a write is validated, although the server ignores it."""


KUBERNETES_1_36: Final = ServerRules(
    "v1.36.3",
    hpa_generations=False,
    declared_max_replicas=False,
    required_owner_fields=False,
    checks_scale_metadata=True,
)
KUBERNETES_1_37: Final = ServerRules(
    "v1.37.1",
    hpa_generations=True,
    declared_max_replicas=True,
    required_owner_fields=True,
    checks_scale_metadata=False,
)
