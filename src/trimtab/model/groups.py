"""The API groups of autoscalers: Trimtab's own, and those whose kinds somebody else defines."""

from typing import Final

OWN_GROUP: Final = "autoscaling.trimtab.dev"
NATIVE_VPA_GROUP: Final = "autoscaling.k8s.io"
"""The group of upstream's VPAs and checkpoints. Their definitions belong to whoever installed them."""
VPA_GROUPS: Final = (OWN_GROUP, NATIVE_VPA_GROUP)
VPA_VERSION: Final = "v1"
