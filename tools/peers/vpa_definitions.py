"""Stands in for the CRDs of `autoscaling.k8s.io`, which Trimtab never installs, on a cluster without upstream's VPA."""

from dataclasses import replace
from typing import Any, Final

from trimtab.model.crds.vpa import CHECKPOINTS, VERTICAL_POD_AUTOSCALERS
from trimtab.model.groups import NATIVE_VPA_GROUP

_APPROVED: Final = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"}


def native_definitions(*, has_scopes: bool = False) -> list[dict[str, Any]]:
    """Return the definitions of native VPAs and checkpoints. Without scopes, a server prunes `spec.vpaScope`."""
    definitions = [
        replace(crd, group=NATIVE_VPA_GROUP, short_names=(name,)).manifest()
        for crd, name in ((VERTICAL_POD_AUTOSCALERS, "vpa"), (CHECKPOINTS, "vpacheckpoint"))
    ]
    for definition in definitions:
        definition["metadata"]["annotations"] = _APPROVED
    schema = definitions[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    if not has_scopes:
        del schema["properties"]["spec"]["properties"]["vpaScope"]
    return definitions
