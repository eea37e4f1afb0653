"""Settings of the HPA controller and of the metrics it reads."""

from datetime import timedelta

from trimtab.operator.settings.declare import SIMULATE, setting, settings_group

HPAS = "horizontal dashboard"
"""The components that decide about HPAs."""

# A declaration has its facts first, then its help, then why this default.
# fmt: off


@settings_group("Horizontal", read_by=HPAS)
class HorizontalSettings:
    """How HPAs are reconciled."""

    native_hpas: bool = setting(False, decides=True, is_essential=True,
        help="Also act on autoscaling/v2 objects; needs kube-controller-manager's HPA controller off.",
        why="Two controllers on one object fight; the cluster's own comes first.")
    own_hpas: bool = setting(True, decides=True, help="Act on autoscaling.trimtab.dev/v2 objects.",
        why="They are what Trimtab is installed for.")
    sync_period: timedelta = setting("15s", "--horizontal-pod-autoscaler-sync-period", decides=True, is_essential=True, is_positive=True,
        help="How often each HPA is reconciled. An HPA whose spec changes is reconciled at once.",
        why="Upstream's period; metrics rarely change faster.")
    look_period: timedelta = setting("2s", "--metrics-look-period", decides=True, compat={"kubernetes": "0s"},
        help="How often the usage of pods is read between two syncs. An HPA whose replicas would change is reconciled at once. 0 switches this off.",
        why="It costs one request. Checks take at most 10 % of one core, so they are rarer in a large cluster. Off with --compat.")
    tolerance: float = setting(0.1, "--horizontal-pod-autoscaler-tolerance", read_by=f"{HPAS} {SIMULATE}", decides=True, is_essential=True, least=0,
        help="How far usage may be from its target before anything happens, as a fraction; HPAs may set their own.")
    downscale_stabilization: timedelta = setting("5m", "--horizontal-pod-autoscaler-downscale-stabilization", read_by=f"{HPAS} {SIMULATE}", decides=True, is_essential=True,
        help="How long the highest recommendation is kept before scaling down.")
    cpu_initialization_period: timedelta = setting("5m", "--horizontal-pod-autoscaler-cpu-initialization-period", read_by=f"{HPAS} {SIMULATE}", decides=True,
        help="How long after its start a pod's CPU samples may be skipped while it is not ready.")
    initial_readiness_delay: timedelta = setting("30s", "--horizontal-pod-autoscaler-initial-readiness-delay", read_by=f"{HPAS} {SIMULATE}", decides=True,
        help="How long after its start a pod that turns unready counts as never ready.")
    concurrent_writes: int = setting(16, "--concurrent-horizontal-pod-autoscaler-syncs", least=1,
        help="How many writes are under way at once.",
        why="Deciding takes microseconds; only the server's answers take time. More than this gains nothing on two cores.")
    status_max_age: timedelta = setting("1m", compat={"kubernetes": "0s"},
        help="How long metric values in a status, and texts under the same reason, may differ from the newest ones, plus a sync. Replicas and conditions are written at once. 0 writes every change in every sync.",
        why="Status writes are most of the load on the API server. 60 s save 4 of 5 of them where usage moves. 0 with --compat.")
    owner_cache_ttl: timedelta = setting("1m",
        help="How long an owner of a kind that is not watched stays cached.",
        why="Owners change when something is deployed; a minute bounds both staleness and requests.")


@settings_group("Metrics", read_by=HPAS)
class MetricsSettings:
    """How metrics are read, and which samples are refused."""

    metrics_deadline: timedelta = setting("10s", read_by=f"{HPAS} recommender", is_positive=True,
        help="How long one metrics query may take. A slow source delays only the HPAs that use it.",
        why="Shorter than a sync period, so that a hanging source is reported within the same sync.")
    metrics_max_bytes: int = setting(16 * 1024 * 1024, read_by=f"{HPAS} recommender", least=1,
        help="Largest metrics answer that is read.",
        why="A list of 40,000 pods fits; a runaway answer must not exhaust memory.")
    stale_after: timedelta = setting("2m", "--metrics-max-age", decides=True,
        help="How old a sample may be; an older one is refused, unless it is younger than --metrics-max-age-windows. A metric may set its own limit (maxAgeSeconds).",
        why="A stopped exporter must not scale anything; sources of clouds are minutes behind and need more.")
    stale_windows: float = setting(3.0, "--metrics-max-age-windows", decides=True, least=0,
        help="How many of its windows old a sample may be, where that is more than --metrics-max-age.",
        why="What is measured over ten minutes is not stale after two.")
    adapter_config: str = setting("", read_by="adapter", is_essential=True, is_wired=True,
        help="Configuration file of the component adapter, which serves custom and external metrics; see docs/adapter.md.",
        why="What it serves, and from where, cannot be guessed.")
