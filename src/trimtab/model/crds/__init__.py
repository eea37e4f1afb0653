"""CustomResourceDefinitions, generated from the wire types.

The types say which fields exist; `hpa`, `vpa` and `scope` add what types cannot say: descriptions, enums, bounds and
the CEL rules for what one object can know about itself. Every list, map and string that a rule reads has a bound, or
the API server would refuse the rule as too costly.
"""

from typing import Any

from trimtab.model.crds.definition import Crd
from trimtab.model.crds.hpa import HORIZONTAL_POD_AUTOSCALERS
from trimtab.model.crds.vpa import CHECKPOINTS, VERTICAL_POD_AUTOSCALERS, VPA_SCOPES

__all__ = ["CRDS", "Crd", "all_crds"]

CRDS: tuple[Crd, ...] = (
    HORIZONTAL_POD_AUTOSCALERS,
    VERTICAL_POD_AUTOSCALERS,
    CHECKPOINTS,
    VPA_SCOPES,
)


def all_crds() -> list[dict[str, Any]]:
    """Return the definitions as plain data, ready to be applied."""
    return [crd.manifest() for crd in CRDS]
