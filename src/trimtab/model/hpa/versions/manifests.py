"""HPAs as manifests of each kind and version that people apply.

Between our own kind and Kubernetes' own, what only ours has fields for goes into annotations and comes back.
"""

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.core.meta import group_of
from trimtab.model.hpa import selection_strategy
from trimtab.model.hpa.manifest import to_v1, to_v2
from trimtab.model.hpa.metric_fields import own_fields
from trimtab.model.hpa.versions.conversion import V2

Json = dict[str, Any]

OWN = "autoscaling.trimtab.dev/v2"


def to_own(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as one of our own kind; raise MetricAnnotationError if an annotation is wrong."""
    own = selection_strategy.into_field(own_fields.into_fields(to_v2(data)))
    return {**own, "apiVersion": OWN}


def to_native_v2(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as autoscaling/v2, without fields that its API server prunes."""
    native = selection_strategy.into_annotation(to_v2(_natively(data)))
    return {**native, "apiVersion": V2}


def to_native_v1(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as autoscaling/v1."""
    return to_v1(_natively(data))


def _natively(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if group_of(data["apiVersion"]) != group_of(OWN):
        return data
    return own_fields.into_annotations(to_v2(data))


WRITERS: dict[str, Callable[[Mapping[str, Any]], Json]] = {
    "v1": to_native_v1,
    "v2": to_native_v2,
    "trimtab": to_own,
}
"""The versions that `trimtab convert` writes, by the name that it gives them."""
