"""Canonical JSON of HPAs: the fields of each version that are written even when they are empty."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.hpa import types
from trimtab.model.hpa.metric_kinds import KINDS
from trimtab.model.hpa.versions import v1
from trimtab.model.json import canonical as writing
from trimtab.model.json.wire import Json
from trimtab.model.labels.selector import LabelSelectorRequirement
from trimtab.model.quantity import Quantity

_TYPE = frozenset({"type"})


def _plain_fields(kind: type[Any]) -> frozenset[str]:
    """Return the texts and numbers of a type that are never absent."""
    fields = msgspec.structs.fields(kind)
    return frozenset(field.encode_name for field in fields if field.type in {str, Quantity})


_FLAT = [*v1.FLAT_SOURCES.values(), *v1.FLAT_STATUSES.values()]
_NESTED = [part for kind in KINDS.values() for part in (kind.source_type, kind.status_type)]

ALWAYS: writing.Always = {
    **{kind: _plain_fields(kind) for kind in (*_FLAT, *_NESTED)},
    CrossVersionObjectReference: frozenset({"kind", "name"}),
    types.HpaCondition: frozenset({"type", "status"}),
    LabelSelectorRequirement: frozenset({"key", "operator"}),
    types.HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    types.HorizontalPodAutoscalerStatus: frozenset({"desiredReplicas", "currentMetrics"}),
    types.MetricSpec: _TYPE,
    types.MetricStatus: _TYPE,
    types.MetricTarget: _TYPE,
    types.MetricIdentifier: frozenset({"name"}),
    types.MetricLoss: frozenset({"policy"}),
    types.ReplicaPolicySpec: frozenset({"name"}),
    types.HPAScalingPolicy: frozenset({"type", "value", "periodSeconds"}),
    v1.V1HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    v1.V1HorizontalPodAutoscalerStatus: frozenset({"currentReplicas", "desiredReplicas"}),
    v1.V2beta1HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    v1.V1MetricSpec: _TYPE,
    v1.V1MetricStatus: _TYPE,
}
"""The fields that the API's declarations have without `omitempty`."""


def canonical(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as an API server would write it."""
    versions = {
        "autoscaling/v1": v1.V1HorizontalPodAutoscaler,
        "autoscaling/v2beta1": v1.V2beta1HorizontalPodAutoscaler,
    }
    return canonical_as(data, versions.get(data.get("apiVersion", ""), types.HorizontalPodAutoscaler))


def canonical_as(data: Mapping[str, Any], kind: type[Any]) -> Json:
    """Return JSON data of one kind in canonical form, its metadata whole."""
    out = writing.canonical(data, kind, ALWAYS)
    if "metadata" in out:
        # The typed metadata has only some fields of the real one, so it cannot say how the rest is written.
        metadata = data.get("metadata") or {}
        out["metadata"] = {name: value for name, value in metadata.items() if value not in (None, {}, [], "")}
    return out
