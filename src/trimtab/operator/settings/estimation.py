"""Settings of how usage becomes a recommendation; names and defaults are upstream's."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import setting
from trimtab.operator.settings.history import HistorySettings

# ruff: noqa: RUF009 - `setting` makes a dataclass field

_GROUP = "Recommender"
_UPSTREAM = "Upstream's default."
_DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimationSettings(HistorySettings):
    """Percentiles, margins, memory of the past, and how amounts are written."""

    recommendation_margin_fraction: float = setting(
        0.15,
        "--recommendation-margin-fraction",
        "Safety margin on top of measured usage, as a fraction.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    target_cpu_percentile: float = setting(
        0.9,
        "--target-cpu-percentile",
        "Share of the CPU samples that the target covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    lower_bound_cpu_percentile: float = setting(
        0.5,
        "--recommendation-lower-bound-cpu-percentile",
        "Share of the CPU samples that the lower bound covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    upper_bound_cpu_percentile: float = setting(
        0.95,
        "--recommendation-upper-bound-cpu-percentile",
        "Share of the CPU samples that the upper bound covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    target_memory_percentile: float = setting(
        0.9,
        "--target-memory-percentile",
        "Share of the memory peaks that the target covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    lower_bound_memory_percentile: float = setting(
        0.5,
        "--recommendation-lower-bound-memory-percentile",
        "Share of the memory peaks that the lower bound covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    upper_bound_memory_percentile: float = setting(
        0.95,
        "--recommendation-upper-bound-memory-percentile",
        "Share of the memory peaks that the upper bound covers, 0 to 1.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    confidence_interval_cpu: timedelta = setting(
        _DAY,
        "--confidence-interval-cpu",
        "Length of history at which the upper CPU bound is twice its percentile; shorter history widens both bounds.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    confidence_interval_memory: timedelta = setting(
        _DAY,
        "--confidence-interval-memory",
        "Length of history at which the upper memory bound is twice its percentile; shorter history widens both bounds.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    cpu_histogram_decay_half_life: timedelta = setting(
        _DAY,
        "--cpu-histogram-decay-half-life",
        "Time after which a CPU sample counts half.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    memory_histogram_decay_half_life: timedelta = setting(
        _DAY,
        "--memory-histogram-decay-half-life",
        "Time after which a memory peak counts half.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    memory_aggregation_interval: timedelta = setting(
        _DAY,
        "--memory-aggregation-interval",
        "Length of the interval of which one memory peak is kept; a VPA may set its own.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    memory_aggregation_interval_count: int = setting(
        8,
        "--memory-aggregation-interval-count",
        "How many such intervals history lasts; a VPA may set its own.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    oom_bump_up_ratio: float = setting(
        1.2,
        "--oom-bump-up-ratio",
        "After a kill for memory, usage counts as at least this many times what it was; a VPA may set its own.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    oom_min_bump_up_bytes: float = setting(
        100.0 * 1024 * 1024,
        "--oom-min-bump-up-bytes",
        "After a kill for memory, usage counts as at least this many bytes more; a VPA may set its own.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    round_cpu_millicores: int = setting(
        1,
        "--round-cpu-millicores",
        "Round recommended CPU up to a multiple of this many millicores.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    round_memory_bytes: int = setting(
        1,
        "--round-memory-bytes",
        "Round recommended memory up to a multiple of this many bytes.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    humanize_memory: bool = setting(
        False,
        "--humanize-memory",
        "Write recommended memory with two decimals in its largest binary unit, as 1.50Gi.",
        group=_GROUP,
        why="Upstream's default; upstream calls it deprecated, use --round-memory-bytes.",
    )
    cpu_integer_post_processor_enabled: bool = setting(
        True,
        "--cpu-integer-post-processor-enabled",
        "Round CPU up to whole cores for containers that an annotation of the VPA names.",
        group=_GROUP,
        why="It only acts where a VPA asks for it. Upstream's default, and ours with --compat=vpa-1.8, is false.",
    )
