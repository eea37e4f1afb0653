"""Settings of the HPA controller and of the metrics it reads."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

setting = settings_in("Horizontal")


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalSettings:
    """How HPAs are reconciled."""

    native_hpas: bool = setting(
        False,
        "--native-hpas",
        "Also act on autoscaling/v2 objects; needs kube-controller-manager's HPA controller off.",
        why="Two controllers on one object fight; the cluster's own comes first.",
    )
    own_hpas: bool = setting(
        True,
        "--own-hpas",
        "Act on autoscaling.trimtab.dev/v2 objects.",
        why="They are what Trimtab is installed for.",
    )
    sync_period: timedelta = setting(
        timedelta(seconds=15),
        "--horizontal-pod-autoscaler-sync-period",
        "How often each HPA is reconciled. An HPA whose spec changes is reconciled at once.",
        why="Upstream's period; metrics rarely change faster.",
    )
    look_period: timedelta = setting(
        timedelta(seconds=2),
        "--metrics-look-period",
        "How often the usage of pods is read between two syncs. An HPA whose replicas would change is reconciled at once. 0 switches this off.",
        why="It costs one request. Checks take at most 10 % of one core, so they are rarer in a large cluster. Off with --compat.",
    )
    tolerance: float = setting(
        0.1,
        "--horizontal-pod-autoscaler-tolerance",
        "How far usage may be from its target before anything happens, as a fraction; HPAs may set their own.",
    )
    downscale_stabilization: timedelta = setting(
        timedelta(minutes=5),
        "--horizontal-pod-autoscaler-downscale-stabilization",
        "How long the highest recommendation is kept before scaling down.",
    )
    cpu_initialization_period: timedelta = setting(
        timedelta(minutes=5),
        "--horizontal-pod-autoscaler-cpu-initialization-period",
        "How long after its start a pod's CPU samples may be skipped while it is not ready.",
    )
    initial_readiness_delay: timedelta = setting(
        timedelta(seconds=30),
        "--horizontal-pod-autoscaler-initial-readiness-delay",
        "How long after its start a pod that turns unready counts as never ready.",
    )
    concurrent_writes: int = setting(
        16,
        "--concurrent-horizontal-pod-autoscaler-syncs",
        "How many writes are under way at once.",
        why="Deciding takes microseconds; only the server's answers take time. More than this gains nothing on two cores.",
    )
    status_max_age: timedelta = setting(
        timedelta(seconds=60),
        "--status-max-age",
        "How long metric values in a status may differ from the newest ones. Replicas and conditions are written at once. 0 writes every change in every sync.",
        why="Status writes are most of the load on the API server. 60 s save 4 of 5 of them where usage moves. 0 with --compat.",
    )
    status_visible_change: float = setting(
        0.05,
        "--status-visible-change",
        "How far a metric value may be from the one in the status, as a fraction of its target. A larger change is written in the next sync that still finds it.",
        why="Half the default tolerance, so a status shows whether usage is near a change of replicas.",
    )
    owner_cache_ttl: timedelta = setting(
        timedelta(seconds=60),
        "--owner-cache-ttl",
        "How long an owner of a kind that is not watched stays cached.",
        why="Owners change when something is deployed; a minute bounds both staleness and requests.",
    )


setting = settings_in("Metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """How metrics are read, and which samples are refused."""

    metrics_deadline: timedelta = setting(
        timedelta(seconds=10),
        "--metrics-deadline",
        "How long one metrics query may take. A slow source delays only the HPAs that use it.",
        why="Shorter than a sync period, so that a hanging source is reported within the same sync.",
    )
    metrics_max_bytes: int = setting(
        16 * 1024 * 1024,
        "--metrics-max-bytes",
        "Largest metrics answer that is read.",
        why="A list of 40,000 pods fits; a runaway answer must not exhaust memory.",
    )
    metrics_max_age: timedelta = setting(
        timedelta(minutes=2),
        "--metrics-max-age",
        "How old a sample may be; an older one is refused, unless it is younger than --metrics-max-age-windows. A metric may set its own limit (maxAgeSeconds).",
        why="A stopped exporter must not scale anything; sources of clouds are minutes behind and need more.",
    )
    metrics_max_age_windows: float = setting(
        3.0,
        "--metrics-max-age-windows",
        "How many of its windows old a sample may be, where that is more than --metrics-max-age.",
        why="What is measured over ten minutes is not stale after two.",
    )
    metrics_max_ahead: timedelta = setting(
        timedelta(minutes=1),
        "--metrics-max-ahead",
        "How far in the future a sample may be dated; one that is further ahead is refused.",
        why="Clocks differ by seconds; a minute is a clock that is wrong.",
    )
    adapter_config: str = setting(
        "",
        "--adapter-config",
        "Configuration file of the component adapter, which serves custom and external metrics; see docs/adapter.md.",
        why="What it serves, and from where, cannot be guessed.",
    )
