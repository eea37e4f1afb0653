"""Canonical JSON of HPAs: the fields of each version that are written even when they are empty."""

from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.hpa import types
from trimtab.model.hpa.versions import v1
from trimtab.model.json import canonical as writing
from trimtab.model.json.wire import Json
from trimtab.model.labels.selector import LabelSelectorRequirement

_NAME = frozenset({"name"})
_TYPE = frozenset({"type"})
_METRIC_NAME = frozenset({"metricName"})
_NAME_AND_CONTAINER = frozenset({"name", "container"})

ALWAYS: writing.Always = {
    CrossVersionObjectReference: frozenset({"kind", "name"}),
    types.HpaCondition: frozenset({"type", "status"}),
    LabelSelectorRequirement: frozenset({"key", "operator"}),
    types.HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    types.HorizontalPodAutoscalerStatus: frozenset({"desiredReplicas", "currentMetrics"}),
    types.MetricSpec: _TYPE,
    types.MetricStatus: _TYPE,
    types.MetricTarget: _TYPE,
    types.MetricIdentifier: _NAME,
    types.MetricLoss: frozenset({"policy"}),
    types.ResourceMetricSource: _NAME,
    types.ResourceMetricStatus: _NAME,
    types.ContainerResourceMetricSource: _NAME_AND_CONTAINER,
    types.ContainerResourceMetricStatus: _NAME_AND_CONTAINER,
    types.ReplicaPolicySpec: _NAME,
    types.HPAScalingPolicy: frozenset({"type", "value", "periodSeconds"}),
    v1.V1HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    v1.V1HorizontalPodAutoscalerStatus: frozenset({"currentReplicas", "desiredReplicas"}),
    v1.V2beta1HorizontalPodAutoscalerSpec: frozenset({"maxReplicas"}),
    v1.V1MetricSpec: _TYPE,
    v1.V1MetricStatus: _TYPE,
    v1.V1ObjectMetricSource: _METRIC_NAME | {"targetValue"},
    v1.V1ObjectMetricStatus: _METRIC_NAME | {"currentValue"},
    v1.V1PodsMetricSource: _METRIC_NAME | {"targetAverageValue"},
    v1.V1PodsMetricStatus: _METRIC_NAME | {"currentAverageValue"},
    v1.V1ResourceMetricSource: _NAME,
    v1.V1ResourceMetricStatus: _NAME | {"currentAverageValue"},
    v1.V1ContainerResourceMetricSource: _NAME_AND_CONTAINER,
    v1.V1ContainerResourceMetricStatus: _NAME_AND_CONTAINER | {"currentAverageValue"},
    v1.V1ExternalMetricSource: _METRIC_NAME,
    v1.V1ExternalMetricStatus: _METRIC_NAME | {"currentValue"},
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
