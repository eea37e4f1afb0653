"""Settings of the brakes on eviction, beyond each workload's own budget (docs/decisions/limit-evictions-per-workload-per-minute-and-by-outcome.md)."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.estimation import EstimationSettings
from trimtab.operator.settings.flags import setting

# ruff: noqa: RUF009 - `setting` makes a dataclass field

_GROUP = "Updater"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeFlags(EstimationSettings):
    """How hard the brakes are set; 0 releases one, and `--compat=vpa-1.8` releases all that are not given."""

    max_evictions_per_minute: int = setting(
        10,
        "--max-evictions-per-minute",
        "Evictions per minute in the whole cluster; 0 means no bound.",
        group=_GROUP,
        why="A recommender that restarts may move thousands of recommendations at once.",
    )
    max_evicted_share_per_minute: float = setting(
        0.1,
        "--max-evicted-share-per-minute",
        "Share of the cluster's live pods that may be evicted per minute, at least 1 pod; 0 means no bound.",
        group=_GROUP,
        why="A small cluster must not lose most of its pods within a minute.",
    )
    max_missing_pods: int = setting(
        1,
        "--max-missing-pods",
        "A controller that lacks this many pods loses no Ready pod to an eviction; 0 means no bound.",
        group=_GROUP,
        why="A workload that is short of a pod already should get it back first.",
    )
    fruitless_evictions: int = setting(
        3,
        "--fruitless-evictions",
        "Evictions of a controller in a row whose replacement has unchanged requests, after which it is paused; 0 means never.",
        group=_GROUP,
        why="Three times is no accident: another webhook or operator sets the requests.",
    )
    fruitless_eviction_pause: timedelta = setting(
        timedelta(hours=1),
        "--fruitless-eviction-pause",
        "How long such a controller is paused before one more try.",
        group=_GROUP,
        why="Long enough to be read about, short enough to end by itself.",
    )
    refused_eviction_backoff: timedelta = setting(
        timedelta(minutes=1),
        "--refused-eviction-backoff",
        "How long a pod is left alone after the API refused its eviction, doubled each time; 0 asks again in every loop.",
        group=_GROUP,
        why="A PodDisruptionBudget that is used up now will mostly be so in the next minute.",
    )
    refused_eviction_backoff_limit: timedelta = setting(
        timedelta(minutes=10),
        "--refused-eviction-backoff-limit",
        "The longest such wait.",
        group=_GROUP,
        why="A budget that opens should be used within minutes.",
    )
