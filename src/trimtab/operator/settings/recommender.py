"""Settings of the recommender and of its estimators. Names and defaults are upstream's."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

setting = settings_in("Recommender")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderLoopSettings:
    """How the recommender runs and saves checkpoints."""

    memory_saver: bool = setting(
        False,
        "--memory-saver",
        "Keep history of pods that a VPA matches only, not of all pods in the namespaces of VPAs.",
        why="Upstream's default: a new VPA then begins with what is known of its pods.",
    )
    recommender_interval: timedelta = setting(
        timedelta(minutes=1),
        "--recommender-interval",
        "How often usage is read and recommendations are made.",
        why="Upstream's default; metrics-server measures every 15 s to a minute.",
    )
    recommender_name: str = setting(
        "default",
        "--recommender-name",
        "Which VPAs this recommender serves: those that name it, or name none if this is `default`.",
    )
    checkpoints_interval: timedelta = setting(
        timedelta(minutes=5),
        "--checkpoints-interval",
        "How often the history of a VPA is saved; 0 means in every loop, as upstream. A crash loses this much at most.",
        why="History counts in days; saving it every minute is half of all that a recommender writes.",
    )
    checkpoints_timeout: timedelta = setting(
        timedelta(minutes=1),
        "--checkpoints-timeout",
        "How long one loop may spend on writing checkpoints; the rest is written in the next.",
    )
    checkpoints_gc_interval: timedelta = setting(
        timedelta(minutes=10),
        "--checkpoints-gc-interval",
        "How often checkpoints of deleted VPAs are collected.",
    )
    update_worker_count: int = setting(
        10, "--update-worker-count", "How many status and checkpoint writes are under way at once."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimationSettings:
    """Percentiles, margins, half-lives, and how amounts are bounded and rounded."""

    recommendation_margin_fraction: float = setting(
        0.15, "--recommendation-margin-fraction", "Safety margin on top of measured usage, as a fraction."
    )
    target_cpu_percentile: float = setting(
        0.9, "--target-cpu-percentile", "Share of the CPU samples that the target covers, 0 to 1."
    )
    lower_bound_cpu_percentile: float = setting(
        0.5,
        "--recommendation-lower-bound-cpu-percentile",
        "Share of the CPU samples that the lower bound covers, 0 to 1.",
    )
    upper_bound_cpu_percentile: float = setting(
        0.95,
        "--recommendation-upper-bound-cpu-percentile",
        "Share of the CPU samples that the upper bound covers, 0 to 1.",
    )
    target_memory_percentile: float = setting(
        0.9, "--target-memory-percentile", "Share of the memory peaks that the target covers, 0 to 1."
    )
    lower_bound_memory_percentile: float = setting(
        0.5,
        "--recommendation-lower-bound-memory-percentile",
        "Share of the memory peaks that the lower bound covers, 0 to 1.",
    )
    upper_bound_memory_percentile: float = setting(
        0.95,
        "--recommendation-upper-bound-memory-percentile",
        "Share of the memory peaks that the upper bound covers, 0 to 1.",
    )
    confidence_interval_cpu: timedelta = setting(
        timedelta(hours=24),
        "--confidence-interval-cpu",
        "Length of history at which the upper CPU bound is twice its percentile; shorter history widens both bounds.",
    )
    confidence_interval_memory: timedelta = setting(
        timedelta(hours=24),
        "--confidence-interval-memory",
        "Length of history at which the upper memory bound is twice its percentile; shorter history widens both bounds.",
    )
    cpu_histogram_decay_half_life: timedelta = setting(
        timedelta(hours=24), "--cpu-histogram-decay-half-life", "Time after which a CPU sample counts half."
    )
    memory_histogram_decay_half_life: timedelta = setting(
        timedelta(hours=24),
        "--memory-histogram-decay-half-life",
        "Time after which a memory peak counts half.",
    )
    memory_aggregation_interval: timedelta = setting(
        timedelta(hours=24),
        "--memory-aggregation-interval",
        "Length of the interval of which one memory peak is kept; a VPA may set its own.",
    )
    memory_aggregation_interval_count: int = setting(
        8,
        "--memory-aggregation-interval-count",
        "How many such intervals history lasts; a VPA may set its own.",
    )
    oom_bump_up_ratio: float = setting(
        1.2,
        "--oom-bump-up-ratio",
        "After a kill for memory, usage counts as at least this many times what it was; a VPA may set its own.",
    )
    oom_min_bump_up_bytes: float = setting(
        100.0 * 1024 * 1024,
        "--oom-min-bump-up-bytes",
        "After a kill for memory, usage counts as at least this many bytes more; a VPA may set its own.",
    )
    round_cpu_millicores: int = setting(
        1, "--round-cpu-millicores", "Round recommended CPU up to a multiple of this many millicores."
    )
    round_memory_bytes: int = setting(
        1, "--round-memory-bytes", "Round recommended memory up to a multiple of this many bytes."
    )
    humanize_memory: bool = setting(
        False,
        "--humanize-memory",
        "Write recommended memory with two decimals in its largest binary unit, as 1.50Gi.",
        why="Upstream's default; upstream calls it deprecated, use --round-memory-bytes.",
    )
    cpu_integer_post_processor_enabled: bool = setting(
        True,
        "--cpu-integer-post-processor-enabled",
        "Round CPU up to whole cores for containers that an annotation of the VPA names.",
        why="It only acts where a VPA asks for it. Upstream's default, and ours with --compat=vpa-1.8, is false.",
    )
    pod_min_cpu_millicores: float = setting(
        25.0, "--pod-recommendation-min-cpu-millicores", "The least CPU of a whole pod, in millicores."
    )
    pod_min_memory_mb: float = setting(
        250.0, "--pod-recommendation-min-memory-mb", "The least memory of a whole pod, in MiB."
    )
    container_max_allowed_cpu: str = setting(
        "",
        "--container-recommendation-max-allowed-cpu",
        "The most CPU any container is recommended where its VPA sets no maximum; empty means no bound.",
        why="Upstream's default; set it to what your largest node can hold.",
    )
    container_max_allowed_memory: str = setting(
        "",
        "--container-recommendation-max-allowed-memory",
        "The most memory any container is recommended where its VPA sets no maximum; empty means no bound.",
        why="Upstream's default; set it to what your largest node can hold.",
    )
    cap_to_largest_node: bool = setting(
        False,
        "--cap-to-largest-node",
        "Recommend no more for the containers of a pod together than some node can hold.",
        why="A recommendation is what a pod needs; the condition NoNodeFits reports that no node has it.",
    )
