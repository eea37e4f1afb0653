"""Types of VPAs, VPAScopes and checkpoints. Native VPAs lack `vpaScope` and Trimtab's estimator settings."""

from datetime import datetime
from enum import StrEnum

import msgspec

from trimtab.model.core.meta import Condition, CrossVersionObjectReference, ObjectMeta
from trimtab.model.core.pod import ResourceList
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP, VPA_VERSION
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
from trimtab.model.quantity import Quantity

_OWN = f"{OWN_GROUP}/{VPA_VERSION}"
_NATIVE = f"{NATIVE_VPA_GROUP}/{VPA_VERSION}"

SCOPE_ANNOTATION = f"{OWN_GROUP}/vpa-scope"
"""On a native VPA: its VPAScope. Upstream's definition may lose the field `spec.vpaScope` at any time."""


class UpdateMode(StrEnum):
    """When recommendations are applied to pods."""

    OFF = "Off"
    INITIAL = "Initial"
    RECREATE = "Recreate"
    AUTO = "Auto"
    IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
    IN_PLACE = "InPlace"


class ContainerScalingMode(StrEnum):
    """Whether a container is autoscaled."""

    AUTO = "Auto"
    OFF = "Off"


class ContainerControlledValues(StrEnum):
    """What is set on a container."""

    REQUESTS_AND_LIMITS = "RequestsAndLimits"
    REQUESTS_ONLY = "RequestsOnly"


class EvictionChangeRequirement(StrEnum):
    """Which direction of change allows an eviction."""

    TARGET_HIGHER_THAN_REQUESTS = "TargetHigherThanRequests"
    TARGET_LOWER_THAN_REQUESTS = "TargetLowerThanRequests"


class VPAConditionType(StrEnum):
    """The conditions in a VPA's status."""

    RECOMMENDATION_PROVIDED = "RecommendationProvided"
    LOW_CONFIDENCE = "LowConfidence"
    NO_PODS_MATCHED = "NoPodsMatched"
    FETCHING_HISTORY = "FetchingHistory"
    CONFIG_DEPRECATED = "ConfigDeprecated"
    CONFIG_UNSUPPORTED = "ConfigUnsupported"
    NO_NODE_FITS = "NoNodeFits"
    """No node could hold a pod of the recommended size (Trimtab only)."""
    REPLACEMENT_REFUSED = "ReplacementRefused"
    """The API server would reject the replacements of pods, so that they stay as they are (Trimtab only)."""
    COMPUTED_FOR = "ComputedFor"
    """What the recommendation was learnt for and computed for (Trimtab only)."""
    ESTIMATOR_FAILED = "EstimatorFailed"
    """The estimator that the VPA names gave no usable answer, so that the last recommendation stays (Trimtab only)."""


class EvictionRequirement(Wire):
    """Evict only if one of the resources changes in the required direction."""

    resources: tuple[str, ...] = ()
    change_requirement: str = ""


class PodUpdatePolicy(Wire):
    """How and when pods are changed."""

    update_mode: str | None = None
    min_replicas: int | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] = ()
    evict_after_oom_seconds: int | None = msgspec.field(default=None, name="evictAfterOOMSeconds")


class GenericStartupBoost(Wire):
    """How much more CPU a container gets while it starts."""

    type: str = ""
    factor: int | None = None
    quantity: Quantity | None = None
    duration_seconds: int | None = None


class StartupBoost(Wire):
    """Startup boost per resource, which is CPU alone."""

    cpu: GenericStartupBoost | None = None


class ContainerResourcePolicy(Wire):
    """Bounds and settings for one container, or for all of them as `*`."""

    container_name: str = ""
    mode: str | None = None
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: Quantity | None = msgspec.field(default=None, name="oomBumpUpRatio")
    oom_min_bump_up: Quantity | None = msgspec.field(default=None, name="oomMinBumpUp")
    memory_aggregation_interval_seconds: int | None = None
    memory_aggregation_interval_count: int | None = None
    startup_boost: StartupBoost | None = None
    # Trimtab only: upstream has flags of the whole recommender for these.
    target_percentile: Quantity | None = None
    lower_bound_percentile: Quantity | None = None
    upper_bound_percentile: Quantity | None = None
    safety_margin_fraction: Quantity | None = None


class PodResourcePolicy(Wire):
    """Policies of the pod's containers."""

    container_policies: tuple[ContainerResourcePolicy, ...] = ()


class RecommenderSelector(Wire):
    """The recommender that is responsible."""

    name: str = ""


class VPAScopeReference(Wire):
    """The VPAScope, in the same namespace, that narrows this VPA to one role."""

    name: str = ""


class VerticalPodAutoscalerSpec(Wire):
    """What the user asks for."""

    target_ref: CrossVersionObjectReference | None = None
    update_policy: PodUpdatePolicy | None = None
    resource_policy: PodResourcePolicy | None = None
    recommenders: tuple[RecommenderSelector, ...] = ()
    startup_boost: StartupBoost | None = None
    vpa_scope: VPAScopeReference | None = None


class RecommendedContainerResources(Wire):
    """The recommendation for one container."""

    container_name: str = ""
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}
    uncapped_target: ResourceList = {}


class RecommendedPodResources(Wire):
    """The recommendation for a pod, container by container."""

    container_recommendations: tuple[RecommendedContainerResources, ...] = ()


class VerticalPodAutoscalerStatus(Wire):
    """The recommendation and the conditions."""

    recommendation: RecommendedPodResources | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int | None = None

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class VerticalPodAutoscaler(Wire):
    """A VerticalPodAutoscaler of autoscaling.trimtab.dev, or a native one of autoscaling.k8s.io."""

    api_version: str = _OWN
    kind: str = "VerticalPodAutoscaler"
    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerSpec = VerticalPodAutoscalerSpec()
    status: VerticalPodAutoscalerStatus = VerticalPodAutoscalerStatus()

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return self.metadata.key

    @property
    def is_native(self) -> bool:
        """Return whether it is an object of upstream's kind."""
        return self.api_version == _NATIVE

    @property
    def scope_names(self) -> tuple[str, ...]:
        """Return the VPAScope that it names, or nothing. Two names are the field and the annotation, which differ."""
        field, annotation = self.spec.vpa_scope, self.metadata.annotations.get(SCOPE_ANNOTATION)
        names = [field.name] if field is not None else []
        names += [annotation] if annotation is not None and self.is_native else []
        return tuple(dict.fromkeys(names))

    @property
    def update_mode(self) -> UpdateMode:
        """Return the mode in force, by default Recreate as upstream."""
        policy = self.spec.update_policy
        return UpdateMode(policy.update_mode) if policy and policy.update_mode else UpdateMode.RECREATE


class VPAScopeSpec(Wire):
    """Selectors of the target's pods, which must match if they are present."""

    node_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class VPAScope(Wire):
    """A named partition of a workload's pods: a role, a hot shard, a class of nodes."""

    api_version: str = _OWN
    kind: str = "VPAScope"
    metadata: ObjectMeta = ObjectMeta()
    spec: VPAScopeSpec = VPAScopeSpec()


class HistogramCheckpoint(Wire):
    """A histogram, scaled so that the heaviest bucket weighs 10000."""

    reference_timestamp: datetime | None = None
    bucket_weights: dict[int, int] = {}
    total_weight: float = 0.0


class VerticalPodAutoscalerCheckpointSpec(Wire):
    """The VPA and the container of a history."""

    vpa_object_name: str = msgspec.field(default="", name="vpaObjectName")
    container_name: str = ""


class VerticalPodAutoscalerCheckpointStatus(Wire):
    """The history of one container of one VPA."""

    last_update_time: datetime | None = None
    version: str = ""
    cpu_histogram: HistogramCheckpoint = HistogramCheckpoint()
    memory_histogram: HistogramCheckpoint = HistogramCheckpoint()
    first_sample_start: datetime | None = None
    last_sample_start: datetime | None = None
    total_samples_count: int = 0


class VerticalPodAutoscalerCheckpoint(Wire):
    """A stored history."""

    api_version: str = _OWN
    kind: str = "VerticalPodAutoscalerCheckpoint"
    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerCheckpointSpec = VerticalPodAutoscalerCheckpointSpec()
    status: VerticalPodAutoscalerCheckpointStatus = VerticalPodAutoscalerCheckpointStatus()
