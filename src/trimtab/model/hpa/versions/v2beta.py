"""autoscaling/v2beta1 and v2beta2 manifests: read because people still have them, never served.

v2beta2 is v2 under an older name. v2beta1 writes metrics flat, the way v1's annotations do.
"""

from datetime import datetime

from trimtab.model.core.meta import Condition, CrossVersionObjectReference, ObjectMeta
from trimtab.model.hpa.versions import v1
from trimtab.model.json.wire import Wire


class V2beta1HorizontalPodAutoscalerSpec(Wire, frozen=True):
    """What the user asks for, in v2beta1."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[v1.V1MetricSpec, ...] = ()


class V2beta1HorizontalPodAutoscalerStatus(Wire, frozen=True):
    """What the autoscaler last saw and did, in v2beta1."""

    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[v1.V1MetricStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class V2beta1HorizontalPodAutoscaler(Wire, frozen=True):
    """An autoscaling/v2beta1 HorizontalPodAutoscaler."""

    api_version: str = "autoscaling/v2beta1"
    kind: str = "HorizontalPodAutoscaler"
    metadata: ObjectMeta = ObjectMeta()
    spec: V2beta1HorizontalPodAutoscalerSpec = V2beta1HorizontalPodAutoscalerSpec()
    status: V2beta1HorizontalPodAutoscalerStatus = V2beta1HorizontalPodAutoscalerStatus()
