"""CustomResourceDefinitions, generated from the wire types.

`schema` turns types into schemas, and holds the schemas that several fields share. `definition` builds the manifest.
`hpa` and `vpa` add what types lack: descriptions, enums, bounds and CEL rules. Every list, map and string that a rule
reads has a bound; without it the API server would reject the rule as too costly.
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
