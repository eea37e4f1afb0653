"""Settings of the updater, of its eviction limits and of its checks."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.admission import STATUS_LEASE_NAME
from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

setting = settings_in("Updater")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdaterLoopSettings:
    """When pods are evicted or resized. `--compat=vpa-1.8` releases the eviction limits that are not given."""

    max_evictions_per_minute: int = setting(
        10,
        "--max-evictions-per-minute",
        "Evictions per minute in the whole cluster; 0 means no bound.",
        why="A recommender that restarts may move thousands of recommendations at once.",
    )
    max_evicted_share_per_minute: float = setting(
        0.1,
        "--max-evicted-share-per-minute",
        "Share of the cluster's live pods that may be evicted per minute, at least 1 pod; 0 means no bound.",
        why="A small cluster must not lose most of its pods within a minute.",
    )
    max_missing_pods: int = setting(
        1,
        "--max-missing-pods",
        "A controller that lacks this many pods loses no Ready pod to an eviction; 0 means no bound.",
        why="A workload that is short of a pod already should get it back first.",
    )
    fruitless_evictions: int = setting(
        3,
        "--fruitless-evictions",
        "Evictions of a controller in a row whose replacement has unchanged requests, after which it is paused; 0 means never.",
        why="Three times is no accident: another webhook or operator sets the requests.",
    )
    fruitless_eviction_pause: timedelta = setting(
        timedelta(hours=1),
        "--fruitless-eviction-pause",
        "How long such a controller is paused before one more try.",
        why="Long enough to be read about, short enough to end by itself.",
    )
    refused_eviction_backoff: timedelta = setting(
        timedelta(minutes=1),
        "--refused-eviction-backoff",
        "How long a pod is left alone after the API refused its eviction, doubled each time; 0 asks again in every loop.",
        why="A PodDisruptionBudget that is used up now will mostly be so in the next minute.",
    )
    refused_eviction_backoff_limit: timedelta = setting(
        timedelta(minutes=10),
        "--refused-eviction-backoff-limit",
        "The longest such wait.",
        why="A budget that opens should be used within minutes.",
    )
    admission_lease_name: str = setting(
        STATUS_LEASE_NAME,
        "--admission-controller-status-lease-name",
        "Lease that the updater reads with --admission-check=lease; the same as admission's --status-lease-name.",
    )
    admission_lease_namespace: str = setting(
        "",
        "--admission-controller-status-lease-namespace",
        "Namespace of that Lease; empty means kube-system. The same as admission's --status-lease-namespace.",
        variables=("NAMESPACE",),
    )
    admission_lease_timeout: timedelta = setting(
        timedelta(minutes=1),
        "--admission-controller-status-lease-timeout",
        "Age of the last renewal from which nothing is evicted.",
    )
    updater_interval: timedelta = setting(
        timedelta(minutes=1),
        "--updater-interval",
        "How often all pods are compared with their recommendations; a role that moves is acted on at once.",
    )
    min_replicas: int = setting(
        2,
        "--min-replicas",
        "The least number of live pods a VPA must have before any of them is disturbed.",
        why="Upstream's default: a lone replica has no stand-in.",
    )
    eviction_tolerance: float = setting(
        0.5, "--eviction-tolerance", "Share of a controller's replicas that may be down at once."
    )
    eviction_rate_limit: float = setting(
        -1.0,
        "--eviction-rate-limit",
        "Evictions per second at most, and as many resizes in place; 0 or less means no such limit.",
        why="Upstream's default; --max-evictions-per-minute always limits evictions.",
    )
    eviction_rate_burst: int = setting(
        1,
        "--eviction-rate-burst",
        "How many evictions, and how many resizes, may exceed the rate for a moment.",
        why="Upstream's default; only used with --eviction-rate-limit.",
    )
    pod_update_threshold: float = setting(
        0.1,
        "--pod-update-threshold",
        "How far requests may be off, as a fraction, before an old pod inside its bounds is changed.",
    )
    in_bounds_lifetime: timedelta = setting(
        timedelta(hours=12),
        "--in-recommendation-bounds-eviction-lifetime-threshold",
        "How old a pod inside its bounds must be before it is changed.",
    )
    evict_after_oom_threshold: timedelta = setting(
        timedelta(minutes=10),
        "--evict-after-oom-threshold",
        "A pod killed for memory within this time of its start is changed at once.",
    )
    in_place_skip_disruption_budget: bool = setting(
        False,
        "--in-place-skip-disruption-budget",
        "Let resizes in place that restart nothing ignore the budget and --min-replicas.",
    )
    admission_check: str = setting(
        "probe",
        "--admission-check",
        "How the updater checks that admission works before it evicts: `probe` (a dry-run pod must come back changed), `lease` (upstream's: a Lease must be fresh) or `none`.",
        why="A fresh Lease shows that a process runs, not that the API server reaches it.",
        choices=("probe", "lease", "none"),
    )
    replacement_check: str = setting(
        "dry-run",
        "--replacement-check",
        "How the updater checks that the replacement of a pod would be admitted before it evicts: `dry-run` (create the replacement with dryRun, which stores nothing) or `none`.",
        why="A pod whose replacement is rejected is lost, and only the API server applies every policy and quota.",
        choices=("dry-run", "none"),
    )
    node_fit: str = setting(
        "free",
        "--node-fit",
        "What some node must have before a pod is evicted: `free` room for the replacement, `allocatable` (it would fit on an empty node) or `none`.",
        why="A replacement that fits on no node waits for ever. Where nodes are added for pods that wait, use `allocatable`.",
        choices=("free", "allocatable", "none"),
    )
