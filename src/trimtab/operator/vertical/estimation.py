"""From the settings to what the pure recommender needs; explanations use the same, so that they show its numbers."""

from datetime import timedelta

from trimtab.decide.vertical.cluster_state.aggregates import AggregationConfig
from trimtab.decide.vertical.recommend.estimators import (
    EstimatorSettings,
    Percentiles,
    ResourceSettings,
)
from trimtab.decide.vertical.recommend.quantities import RecommendationRounding
from trimtab.decide.vertical.recommend.recommendation import RecommenderSettings
from trimtab.decide.vertical.recommend.recommender import PostProcessing
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.operator.settings.recommender import EstimationSettings

_MICROSECOND = timedelta(microseconds=1)


def estimation_of(settings: EstimationSettings) -> RecommenderSettings:
    """Return percentiles, margin, minimums and rounding; raise ValueError if a flag makes no sense."""
    cpu = Percentiles(
        _share("--target-cpu-percentile", settings.target_cpu_percentile),
        _share("--recommendation-lower-bound-cpu-percentile", settings.lower_bound_cpu_percentile),
        _share("--recommendation-upper-bound-cpu-percentile", settings.upper_bound_cpu_percentile),
    )
    memory = Percentiles(
        _share("--target-memory-percentile", settings.target_memory_percentile),
        _share("--recommendation-lower-bound-memory-percentile", settings.lower_bound_memory_percentile),
        _share("--recommendation-upper-bound-memory-percentile", settings.upper_bound_memory_percentile),
    )
    return RecommenderSettings(
        estimators=EstimatorSettings(
            cpu=ResourceSettings(cpu, _span("--confidence-interval-cpu", settings.confidence_interval_cpu)),
            memory=ResourceSettings(
                memory, _span("--confidence-interval-memory", settings.confidence_interval_memory)
            ),
            safety_margin=settings.recommendation_margin_fraction,
        ),
        pod_min_cpu_millicores=settings.pod_min_cpu_millicores,
        pod_min_memory_mib=settings.pod_min_memory_mb,
        rounding=RecommendationRounding(
            settings.round_cpu_millicores, settings.round_memory_bytes, settings.humanize_memory
        ),
    )


def aggregation_of(settings: EstimationSettings) -> AggregationConfig:
    """Return how samples become history; raise ValueError if a flag makes no sense."""
    if settings.memory_aggregation_interval_count < 1:
        raise ValueError("--memory-aggregation-interval-count must be 1 or more")
    return AggregationConfig(
        memory_interval_ns=_span("--memory-aggregation-interval", settings.memory_aggregation_interval),
        memory_interval_count=settings.memory_aggregation_interval_count,
        memory_half_life_ns=_span(
            "--memory-histogram-decay-half-life", settings.memory_histogram_decay_half_life
        ),
        cpu_half_life_ns=_span("--cpu-histogram-decay-half-life", settings.cpu_histogram_decay_half_life),
        oom_bump_ratio=settings.oom_bump_up_ratio,
        oom_min_bump_bytes=settings.oom_min_bump_up_bytes,
    )


def post_processing_of(settings: EstimationSettings) -> PostProcessing:
    """Return what happens to a recommendation before it is written."""
    bounds = {
        CPU: ("--container-recommendation-max-allowed-cpu", settings.container_max_allowed_cpu),
        MEMORY: ("--container-recommendation-max-allowed-memory", settings.container_max_allowed_memory),
    }
    return PostProcessing(
        whole_cores=settings.cpu_integer_post_processor_enabled,
        caps_to_nodes=settings.cap_to_largest_node,
        global_max={resource: quantity_of(*given) for resource, given in bounds.items() if given[1]},
    )


def quantity_of(flag: str, text: str) -> Quantity:
    """Read the quantity of a flag."""
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise ValueError(f"{flag}={text}: {error}") from error


def _share(flag: str, share: float) -> float:
    if not 0 <= share <= 1:
        raise ValueError(f"{flag}={share:g}: a percentile is a share, 0 to 1")
    return share


def _span(flag: str, span: timedelta) -> int:
    if span <= timedelta():
        raise ValueError(f"{flag} must be longer than nothing")
    return span // _MICROSECOND * 1000
