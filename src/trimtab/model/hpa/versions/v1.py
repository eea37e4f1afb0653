"""Types of autoscaling/v1 and v2beta1, which write metrics flat.

autoscaling/v1 has a field for CPU utilization only, and keeps everything else in annotations. autoscaling/v2beta1 is
read but never served; its metrics have the form of v1's annotations. (v2beta2 is v2 under an older name.)
"""

from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.model.core.meta import ObjectMeta
from trimtab.model.hpa.metric_kinds import KINDS, MetricKind
from trimtab.model.hpa.types import HpaCondition, ReplicaBounds, ReplicaStatus
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS_ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR_ANNOTATION = "autoscaling.alpha.kubernetes.io/behavior"

EXACT_METRICS_ANNOTATION = "autoscaling.trimtab.dev/exact-metrics"
EXACT_CURRENT_METRICS_ANNOTATION = "autoscaling.trimtab.dev/exact-current-metrics"

ROUND_TRIP_ANNOTATIONS = frozenset(
    {
        METRICS_ANNOTATION,
        CURRENT_METRICS_ANNOTATION,
        CONDITIONS_ANNOTATION,
        BEHAVIOR_ANNOTATION,
        EXACT_METRICS_ANNOTATION,
        EXACT_CURRENT_METRICS_ANNOTATION,
        # Left behind by clusters that served autoscaling/v2beta2 with tolerances; listed only to be removed.
        "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
        "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    }
)
"""What conversion writes into v1 and takes out again; v2 never has them."""


Path = tuple[str, ...]

_PLACES: dict[str, Path] = {
    "metricName": ("metric", "name"),
    "selector": ("metric", "selector"),
    "metricSelector": ("metric", "selector"),
    "target": ("describedObject",),
}


def flat_paths(kind: MetricKind[Any], numbers: str) -> dict[str, Path]:
    """Return the flat fields of a type, and where v2 has them. Its numbers are in the field `target` or `current`."""
    paths: dict[str, Path] = {}
    for name in kind.flat:
        number = name.lstrip("#")
        if name.startswith("#"):
            paths[f"{numbers}{number}"] = (numbers, number[:1].lower() + number[1:])
        else:
            paths[name] = (numbers, name) if name == "averageValue" else _PLACES.get(name, (name,))
    return paths


def _flat_type(kind: MetricKind[Any], nested: type[Any], numbers: str) -> type[Any]:
    """Return the type of a flat source or of its status."""
    # A status always has its first quantity, and so has a source whose numbers do not exclude each other.
    first = next(name.lstrip("#") for name in kind.flat if name.startswith("#") and name.endswith("Value"))
    required = f"{numbers}{first}" if numbers == "current" or not kind.target.both else ""
    fields: list[tuple[str, Any, Any]] = []
    for name, path in flat_paths(kind, numbers).items():
        found = _find_field(nested, path)
        fields.append((name, Quantity, Quantity.zero) if name == required else (name, *found))
    return msgspec.defstruct(nested.__name__, fields, bases=(Wire,), kw_only=True)


def _find_field(kind: type[Any], path: Path) -> tuple[Any, Any]:
    """Return type and default of a field."""
    for name in path:
        (field,) = [field for field in msgspec.structs.fields(kind) if field.encode_name == name]
        kind = field.type
    return field.type, field.default


FLAT_SOURCES = {kind.field: _flat_type(kind, kind.source_type, "target") for kind in KINDS.values()}
FLAT_STATUSES = {kind.field: _flat_type(kind, kind.status_type, "current") for kind in KINDS.values()}


def _flat_metric(sources: dict[str, type[Any]]) -> type[Any]:
    fields: list[tuple[str, Any, Any]] = [(name, flat | None, None) for name, flat in sources.items()]
    return msgspec.defstruct("FlatMetric", [("type", str, ""), *fields], bases=(Wire,), kw_only=True)


if TYPE_CHECKING:

    class V1MetricSpec(Wire):
        """One metric to scale on, flat."""

    class V1MetricStatus(Wire):
        """The last value of one metric, flat."""

else:
    V1MetricSpec, V1MetricStatus = _flat_metric(FLAT_SOURCES), _flat_metric(FLAT_STATUSES)


class V1HorizontalPodAutoscalerSpec(ReplicaBounds):
    """What the user asks for, except what is in annotations."""

    target_cpu_utilization_percentage: int | None = msgspec.field(
        default=None, name="targetCPUUtilizationPercentage"
    )


class V1HorizontalPodAutoscalerStatus(ReplicaStatus):
    """What the autoscaler last observed and did."""

    current_cpu_utilization_percentage: int | None = msgspec.field(
        default=None, name="currentCPUUtilizationPercentage"
    )


class V1HorizontalPodAutoscaler(Wire):
    """An autoscaling/v1 HorizontalPodAutoscaler."""

    api_version: str = "autoscaling/v1"
    kind: str = "HorizontalPodAutoscaler"
    metadata: ObjectMeta = ObjectMeta()
    spec: V1HorizontalPodAutoscalerSpec = V1HorizontalPodAutoscalerSpec()
    status: V1HorizontalPodAutoscalerStatus = V1HorizontalPodAutoscalerStatus()


class V2beta1HorizontalPodAutoscalerSpec(ReplicaBounds):
    """What the user asks for, in v2beta1."""

    metrics: tuple[V1MetricSpec, ...] = ()


class V2beta1HorizontalPodAutoscalerStatus(ReplicaStatus):
    """What the autoscaler last observed and did, in v2beta1."""

    current_metrics: tuple[V1MetricStatus, ...] = ()
    conditions: tuple[HpaCondition, ...] = ()


class V2beta1HorizontalPodAutoscaler(Wire):
    """An autoscaling/v2beta1 HorizontalPodAutoscaler."""

    api_version: str = "autoscaling/v2beta1"
    kind: str = "HorizontalPodAutoscaler"
    metadata: ObjectMeta = ObjectMeta()
    spec: V2beta1HorizontalPodAutoscalerSpec = V2beta1HorizontalPodAutoscalerSpec()
    status: V2beta1HorizontalPodAutoscalerStatus = V2beta1HorizontalPodAutoscalerStatus()


class AnnotatedLists(Wire):
    """The content of the annotations that hold lists, by its name in v2."""

    metrics: tuple[V1MetricSpec, ...] = ()
    current_metrics: tuple[V1MetricStatus, ...] = ()
    conditions: tuple[HpaCondition, ...] = ()
