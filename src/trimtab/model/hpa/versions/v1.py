"""Types of autoscaling/v1 and v2beta1, which write metrics flat.

autoscaling/v1 has a field for CPU utilization only, and keeps everything else in annotations. autoscaling/v2beta1 is
read but never served; its metrics have the form of v1's annotations. (v2beta2 is v2 under an older name.)
"""

from datetime import datetime
from types import NoneType
from typing import get_args

import msgspec

from trimtab.model.core.meta import CrossVersionObjectReference, ObjectMeta
from trimtab.model.hpa.types import HpaCondition
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
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


class V1ObjectMetricSource(Wire):
    """A metric of one object, whose value is 0 if it is not set."""

    target: CrossVersionObjectReference = CrossVersionObjectReference()
    metric_name: str = ""
    target_value: Quantity = Quantity.zero
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class V1PodsMetricSource(Wire):
    """A metric of each pod."""

    metric_name: str = ""
    target_average_value: Quantity = Quantity.zero
    selector: LabelSelector | None = None


class V1ResourceMetricSource(Wire):
    """CPU or memory of each pod."""

    name: str = ""
    target_average_utilization: int | None = None
    target_average_value: Quantity | None = None


class V1ContainerResourceMetricSource(Wire):
    """CPU or memory of one container in each pod."""

    name: str = ""
    target_average_utilization: int | None = None
    target_average_value: Quantity | None = None
    container: str = ""


class V1ExternalMetricSource(Wire):
    """A metric that belongs to no Kubernetes object."""

    metric_name: str = ""
    metric_selector: LabelSelector | None = None
    target_value: Quantity | None = None
    target_average_value: Quantity | None = None


class V1MetricSpec(Wire):
    """One metric to scale on."""

    type: str = ""
    object: V1ObjectMetricSource | None = None
    pods: V1PodsMetricSource | None = None
    resource: V1ResourceMetricSource | None = None
    container_resource: V1ContainerResourceMetricSource | None = None
    external: V1ExternalMetricSource | None = None


class V1ObjectMetricStatus(Wire):
    """The current value of an Object metric."""

    target: CrossVersionObjectReference = CrossVersionObjectReference()
    metric_name: str = ""
    current_value: Quantity = Quantity.zero
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class V1PodsMetricStatus(Wire):
    """The current value of a Pods metric."""

    metric_name: str = ""
    current_average_value: Quantity = Quantity.zero
    selector: LabelSelector | None = None


class V1ResourceMetricStatus(Wire):
    """The current value of a Resource metric."""

    name: str = ""
    current_average_utilization: int | None = None
    current_average_value: Quantity = Quantity.zero


class V1ContainerResourceMetricStatus(Wire):
    """The current value of a ContainerResource metric."""

    name: str = ""
    current_average_utilization: int | None = None
    current_average_value: Quantity = Quantity.zero
    container: str = ""


class V1ExternalMetricStatus(Wire):
    """The current value of an External metric."""

    metric_name: str = ""
    metric_selector: LabelSelector | None = None
    current_value: Quantity = Quantity.zero
    current_average_value: Quantity | None = None


class V1MetricStatus(Wire):
    """The last value of one metric."""

    type: str = ""
    object: V1ObjectMetricStatus | None = None
    pods: V1PodsMetricStatus | None = None
    resource: V1ResourceMetricStatus | None = None
    container_resource: V1ContainerResourceMetricStatus | None = None
    external: V1ExternalMetricStatus | None = None


def flat_sources(metric: type[Wire]) -> dict[str, type[Wire]]:
    """Return the flat type of each source of a metric, by the field in JSON."""
    return {
        field.encode_name: next(kind for kind in get_args(field.type) if kind is not NoneType)
        for field in msgspec.structs.fields(metric)
        if field.name != "type"
    }


class V1HorizontalPodAutoscalerSpec(Wire):
    """What the user asks for, except what is in annotations."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    target_cpu_utilization_percentage: int | None = msgspec.field(
        default=None, name="targetCPUUtilizationPercentage"
    )


class V1HorizontalPodAutoscalerStatus(Wire):
    """What the autoscaler last observed and did."""

    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
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


class V2beta1HorizontalPodAutoscalerSpec(Wire):
    """What the user asks for, in v2beta1."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[V1MetricSpec, ...] = ()


class V2beta1HorizontalPodAutoscalerStatus(Wire):
    """What the autoscaler last observed and did, in v2beta1."""

    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
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
