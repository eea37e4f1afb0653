"""Turns flags into the configuration of the pure recommender, for the recommender and for explanations."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from trimtab.decide.vertical.cluster_state.aggregates import AggregationConfig
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.recommend.estimators import (
    EstimatorSettings,
    Percentiles,
    ResourceSettings,
)
from trimtab.decide.vertical.recommend.plugin_estimates import NO_ESTIMATORS, Estimators
from trimtab.decide.vertical.recommend.quantities import RecommendationRounding
from trimtab.decide.vertical.recommend.recommendation import RecommenderSettings
from trimtab.decide.vertical.recommend.recommender import PostProcessing
from trimtab.decide.vertical.resources.node_fit import node_rooms
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.vertical import EstimationSettings
from trimtab.operator.vertical.cluster_view import ClusterView

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Estimation:
    """How samples become recommendations."""

    settings: RecommenderSettings
    aggregation: AggregationConfig
    post_processing: PostProcessing
    estimators: Estimators = field(default_factory=dict)
    """The estimator plug-ins that VPAs may name."""

    @classmethod
    def from_settings(
        cls, settings: EstimationSettings, estimators: Estimators = NO_ESTIMATORS
    ) -> "Estimation":
        """Return the configuration of the flags, or raise ValueError if a flag is invalid."""
        reject_bad_values(settings)
        return cls(
            recommender_settings(settings),
            aggregation_config(settings),
            post_processing(settings),
            estimators,
        )

    def new_state(self, view: ClusterView) -> ClusterState:
        """Return an empty cluster state."""
        return ClusterState(self.aggregation, rules=view.rules, per_vpa_config=view.gates.per_vpa_config)

    def post_processing_for(self, view: ClusterView) -> PostProcessing:
        """Return the post-processing with the room of the nodes there are now."""
        rooms = tuple(node_rooms(view.nodes)) if view.rules.ours else ()
        return replace(self.post_processing, rooms=rooms)


def recommender_settings(settings: EstimationSettings) -> RecommenderSettings:
    """Return percentiles, margin, minimums and rounding."""
    cpu = Percentiles(
        settings.target_cpu_percentile,
        settings.lower_bound_cpu_percentile,
        settings.upper_bound_cpu_percentile,
    )
    memory = Percentiles(
        settings.target_memory_percentile,
        settings.lower_bound_memory_percentile,
        settings.upper_bound_memory_percentile,
    )
    return RecommenderSettings(
        estimators=EstimatorSettings(
            cpu=ResourceSettings(cpu, _nanoseconds(settings.confidence_interval_cpu)),
            memory=ResourceSettings(memory, _nanoseconds(settings.confidence_interval_memory)),
            safety_margin=settings.recommendation_margin_fraction,
        ),
        pod_min_cpu_millicores=settings.pod_min_cpu_millicores,
        pod_min_memory_mib=settings.pod_min_memory_mb,
        rounding=RecommendationRounding(
            settings.round_cpu_millicores, settings.round_memory_bytes, settings.humanize_memory
        ),
    )


def aggregation_config(settings: EstimationSettings) -> AggregationConfig:
    """Return how samples are aggregated."""
    return AggregationConfig(
        memory_interval_ns=_nanoseconds(settings.memory_aggregation_interval),
        memory_interval_count=settings.memory_aggregation_interval_count,
        memory_half_life_ns=_nanoseconds(settings.memory_histogram_decay_half_life),
        cpu_half_life_ns=_nanoseconds(settings.cpu_histogram_decay_half_life),
        oom_bump_ratio=settings.oom_bump_up_ratio,
        oom_min_bump_bytes=settings.oom_min_bump_up_bytes,
    )


def post_processing(settings: EstimationSettings) -> PostProcessing:
    """Return the post-processing of recommendations, or raise ValueError if a flag is invalid."""
    bounds = {
        CPU: ("--container-recommendation-max-allowed-cpu", settings.container_max_allowed_cpu),
        MEMORY: ("--container-recommendation-max-allowed-memory", settings.container_max_allowed_memory),
    }
    return PostProcessing(
        whole_cores=settings.cpu_integer_post_processor_enabled,
        caps_to_nodes=settings.cap_to_largest_node,
        global_max={resource: parse_quantity(*given) for resource, given in bounds.items() if given[1]},
    )


def parse_quantity(flag: str, text: str) -> Quantity:
    """Return the quantity of a flag, or raise ValueError if it is malformed."""
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise ValueError(f"{flag}={text}: {error}") from error


def _nanoseconds(span: timedelta) -> int:
    return span // _MICROSECOND * 1000
