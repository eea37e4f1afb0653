"""All types of autoscaling/v2 HorizontalPodAutoscaler, with Trimtab's own fields."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.model.core.meta import Condition, CrossVersionObjectReference, ObjectMeta
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
from trimtab.model.quantity import Quantity


class MetricSourceType(StrEnum):
    """The source of a metric."""

    OBJECT = "Object"
    PODS = "Pods"
    RESOURCE = "Resource"
    CONTAINER_RESOURCE = "ContainerResource"
    EXTERNAL = "External"


class MetricTargetType(StrEnum):
    """The meaning of a target's number."""

    UTILIZATION = "Utilization"
    VALUE = "Value"
    AVERAGE_VALUE = "AverageValue"


class SelectionStrategy(StrEnum):
    """Which of the pods that match the target's labels are counted."""

    LABEL_SELECTOR = "LabelSelector"
    OWNER_REFERENCE = "OwnerReference"


class LossPolicy(StrEnum):
    """What a metric counts as while it cannot be read."""

    HOLD = "Hold"
    IGNORE = "Ignore"
    LAST_GOOD = "LastGood"
    REPLICAS = "Replicas"


class ScalingPolicySelect(StrEnum):
    """How several scaling policies combine."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class ScalingPolicyType(StrEnum):
    """What a scaling policy counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class ConditionType(StrEnum):
    """The conditions in an HPA's status."""

    SCALING_ACTIVE = "ScalingActive"
    ABLE_TO_SCALE = "AbleToScale"
    SCALING_LIMITED = "ScalingLimited"
    SCALED_TO_ZERO = "ScaledToZero"
    METRIC_LOST = "MetricLost"
    SELECTION_FALLBACK = "PodSelectionFallback"
    EXTRA_PODS = "SelectorMatchesExtraPods"
    FIELDS_IGNORED = "FieldsIgnored"
    CACHES_STALE = "CachesStale"
    PLUGIN_FAILED = "PluginFailed"
    BESIDE_NATIVE = "BesideNativeHPA"
    NATIVE_UNSEEN = "NativeHPAsUnseen"


class MetricIdentifier(Wire):
    """A metric's name and, optionally, a selector of its series."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Wire):
    """The desired value of a metric."""

    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class ObjectMetricSource(Wire):
    """A metric that describes one object."""

    described_object: CrossVersionObjectReference = CrossVersionObjectReference()
    target: MetricTarget = MetricTarget()
    metric: MetricIdentifier = MetricIdentifier()
    activation: Quantity | None = None
    """With minReplicas 0: the metric asks for pods only above it (autoscaling.trimtab.dev only)."""


class PodsMetricSource(Wire):
    """A metric of each pod, averaged."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()
    activation: Quantity | None = None


class ResourceMetricSource(Wire):
    """CPU or memory of each pod."""

    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerResourceMetricSource(Wire):
    """CPU or memory of one container in each pod."""

    name: str = ""
    target: MetricTarget = MetricTarget()
    container: str = ""


class ExternalMetricSource(Wire):
    """A metric that belongs to no Kubernetes object."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()
    activation: Quantity | None = None


class MetricLoss(Wire):
    """What a metric counts as while it cannot be read (autoscaling.trimtab.dev only)."""

    policy: str = ""
    max_age_seconds: int | None = None
    replicas: int | None = None


class MetricSpec(Wire):
    """One metric to scale on, with the source that `type` names."""

    type: str = ""
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    on_loss: MetricLoss | None = None
    max_age_seconds: int | None = None
    """How old a sample may be (autoscaling.trimtab.dev only)."""


class HPAScalingPolicy(Wire):
    """How much may change within a period."""

    type: str = ""
    value: int = 0
    period_seconds: int = 0


class HPAScalingRules(Wire):
    """The rules for scaling in one direction."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[HPAScalingPolicy, ...] = ()
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Wire):
    """The rules for both directions."""

    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class ReplicaPolicySpec(Wire):
    """A replica policy of a plug-in, and what it is given (autoscaling.trimtab.dev only)."""

    name: str = ""
    parameters: dict[str, Any] = {}


class ReplicaBounds(Wire):
    """The part of a spec that every version has."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0


class HorizontalPodAutoscalerSpec(ReplicaBounds):
    """What the user asks for."""

    metrics: tuple[MetricSpec, ...] = ()
    behavior: HorizontalPodAutoscalerBehavior | None = None
    selection_strategy: str | None = None
    replica_policies: tuple[ReplicaPolicySpec, ...] = ()
    """Plug-ins that propose replicas beside the metrics (autoscaling.trimtab.dev only)."""
    proposed_selection_strategy: str | None = msgspec.field(default=None, name="SelectionStrategy")
    """KEP-5625's spelling, always None here: its value moves into `selection_strategy`."""

    def __post_init__(self) -> None:
        """Move the value of KEP-5625's spelling into the field, or raise ValueError for two values."""
        proposed = self.proposed_selection_strategy
        if proposed is None:
            return
        if self.selection_strategy not in (None, proposed):
            raise ValueError(
                "selectionStrategy is given in two spellings with two values: remove SelectionStrategy"
            )
        msgspec.structs.force_setattr(self, "selection_strategy", proposed)
        msgspec.structs.force_setattr(self, "proposed_selection_strategy", None)


class MetricValueStatus(Wire):
    """The current value of a metric."""

    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class ObjectMetricStatus(Wire):
    """The current value of an Object metric."""

    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValueStatus = MetricValueStatus()
    described_object: CrossVersionObjectReference = CrossVersionObjectReference()


class PodsMetricStatus(Wire):
    """The current value of a Pods metric."""

    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValueStatus = MetricValueStatus()


class ResourceMetricStatus(Wire):
    """The current value of a Resource metric."""

    name: str = ""
    current: MetricValueStatus = MetricValueStatus()


class ContainerResourceMetricStatus(Wire):
    """The current value of a ContainerResource metric."""

    name: str = ""
    current: MetricValueStatus = MetricValueStatus()
    container: str = ""


class ExternalMetricStatus(Wire):
    """The current value of an External metric."""

    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValueStatus = MetricValueStatus()


class MetricStatus(Wire):
    """The last value of one metric, which is empty if it could not be read."""

    type: str = ""
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HpaCondition(Condition, frozen=True):
    """A condition of an HPA, and the generation of the spec that it describes."""

    observed_generation: int | None = None


class ReplicaStatus(Wire):
    """The part of a status that every version has."""

    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0


class HorizontalPodAutoscalerStatus(ReplicaStatus):
    """What the autoscaler last observed and did."""

    current_metrics: tuple[MetricStatus, ...] = ()
    conditions: tuple[HpaCondition, ...] = ()
    reason: str = ""
    """The reason of the decision that this status describes, for the column REASON (autoscaling.trimtab.dev only)."""
    targets: str = ""
    """The values of the metrics beside their targets, for the column TARGETS (autoscaling.trimtab.dev only)."""
    memory: str = ""
    """What must outlive a restart, in a compact form (autoscaling.trimtab.dev only)."""

    def condition(self, kind: str) -> HpaCondition | None:
        """Return the condition of that type."""
        for condition in self.conditions:
            if condition.type == kind:
                return condition
        return None


class HorizontalPodAutoscaler(Wire):
    """An autoscaling/v2 HorizontalPodAutoscaler (or its autoscaling.trimtab.dev/v2 twin)."""

    api_version: str = "autoscaling/v2"
    kind: str = "HorizontalPodAutoscaler"
    metadata: ObjectMeta = ObjectMeta()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return self.metadata.key
