"""Settings of the vertical loops; `trimtab.operator.settings` joins them to the others.

Names and defaults are upstream's wherever upstream has the setting.
"""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import setting
from trimtab.operator.settings.webhook import WebhookSettings

# ruff: noqa: RUF009 - `setting` makes a dataclass field

_RECOMMENDER = "Recommender"
_UPDATER = "Updater"
_ADMISSION = "Admission"
KUBE_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerticalSettings(WebhookSettings):
    """How recommender, updater and admission run."""

    @property
    def unchanged_namespaces(self) -> frozenset[str]:
        """Return the namespaces in which VPAs recommend and no pod is changed."""
        # Upstream's programs live in kube-system and change pods there.
        admitted = {KUBE_SYSTEM} if self.admits_kube_system else set()
        return frozenset({self.namespace, KUBE_SYSTEM} - admitted)

    @property
    def excluded_namespaces(self) -> frozenset[str]:
        """Return the namespaces in which no pod is changed; the one list of updater, admission and recommender."""
        return self.unchanged_namespaces | frozenset(self.ignored_namespaces)

    @property
    def admits_kube_system(self) -> bool:
        """Return whether pods in kube-system may be changed."""
        return self.include_kube_system

    memory_saver: bool = setting(
        False,
        "--memory-saver",
        "Keep history of pods that a VPA matches only, not of all pods in the namespaces of VPAs.",
        group=_RECOMMENDER,
        why="Upstream's default: a new VPA then begins with what is known of its pods.",
    )
    recommender_interval: timedelta = setting(
        timedelta(minutes=1),
        "--recommender-interval",
        "How often usage is read and recommendations are made.",
        group=_RECOMMENDER,
        why="Upstream's default; metrics-server measures every 15 s to a minute.",
    )
    recommender_name: str = setting(
        "default",
        "--recommender-name",
        "Which VPAs this recommender serves: those that name it, or name none if this is `default`.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    checkpoints_interval: timedelta = setting(
        timedelta(minutes=5),
        "--checkpoints-interval",
        "How often the history of a VPA is saved; 0 means in every loop, as upstream. A crash loses this much at most.",
        group=_RECOMMENDER,
        why="History counts in days; saving it every minute is half of all that a recommender writes.",
    )
    checkpoints_timeout: timedelta = setting(
        timedelta(minutes=1),
        "--checkpoints-timeout",
        "How long one loop may spend on writing checkpoints; the rest is written in the next.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    checkpoints_gc_interval: timedelta = setting(
        timedelta(minutes=10),
        "--checkpoints-gc-interval",
        "How often checkpoints of VPAs that are gone are looked for.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    pod_min_cpu_millicores: float = setting(
        25.0,
        "--pod-recommendation-min-cpu-millicores",
        "The least CPU of a whole pod, in millicores.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    pod_min_memory_mb: float = setting(
        250.0,
        "--pod-recommendation-min-memory-mb",
        "The least memory of a whole pod, in MiB.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    container_max_allowed_cpu: str = setting(
        "",
        "--container-recommendation-max-allowed-cpu",
        "The most CPU any container is recommended where its VPA sets no maximum; empty means no bound.",
        group=_RECOMMENDER,
        why="Upstream's default; set it to what your largest node can hold.",
    )
    container_max_allowed_memory: str = setting(
        "",
        "--container-recommendation-max-allowed-memory",
        "The most memory any container is recommended where its VPA sets no maximum; empty means no bound.",
        group=_RECOMMENDER,
        why="Upstream's default; set it to what your largest node can hold.",
    )
    update_worker_count: int = setting(
        10,
        "--update-worker-count",
        "How many status and checkpoint writes are under way at once.",
        group=_RECOMMENDER,
        why="Upstream's default.",
    )
    updater_interval: timedelta = setting(
        timedelta(minutes=1),
        "--updater-interval",
        "How often all pods are compared with their recommendations; a role that moves is acted on at once.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    min_replicas: int = setting(
        2,
        "--min-replicas",
        "The least number of live pods a VPA must have before any of them is disturbed.",
        group=_UPDATER,
        why="Upstream's default: a lone replica has no stand-in.",
    )
    eviction_tolerance: float = setting(
        0.5,
        "--eviction-tolerance",
        "Share of a controller's replicas that may be down at once.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    eviction_rate_limit: float = setting(
        -1.0,
        "--eviction-rate-limit",
        "Evictions per second at most, and as many resizes in place; 0 or less means no such limit.",
        group=_UPDATER,
        why="Upstream's default; --max-evictions-per-minute is the brake that is always on.",
    )
    eviction_rate_burst: int = setting(
        1,
        "--eviction-rate-burst",
        "How many evictions, and how many resizes, may exceed the rate for a moment.",
        group=_UPDATER,
        why="Upstream's default; only used with --eviction-rate-limit.",
    )
    pod_update_threshold: float = setting(
        0.1,
        "--pod-update-threshold",
        "How far requests may be off, as a fraction, before an old pod inside its bounds is changed.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    in_bounds_lifetime: timedelta = setting(
        timedelta(hours=12),
        "--in-recommendation-bounds-eviction-lifetime-threshold",
        "How old a pod inside its bounds must be before it is changed.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    evict_after_oom_threshold: timedelta = setting(
        timedelta(minutes=10),
        "--evict-after-oom-threshold",
        "A pod killed for memory within this time of its start is changed at once.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    in_place_skip_disruption_budget: bool = setting(
        False,
        "--in-place-skip-disruption-budget",
        "Let resizes in place that restart nothing ignore the budget and --min-replicas.",
        group=_UPDATER,
        why="Upstream's default.",
    )
    admission_check: str = setting(
        "probe",
        "--admission-check",
        "What must prove that admission works before anything is evicted: `probe` (a dry-run pod that must come back changed), `lease` (upstream's: a Lease that is renewed) or `none`.",
        group=_UPDATER,
        why="A fresh Lease proves that a process lives, not that the API server reaches it.",
    )
    replacement_check: str = setting(
        "dry-run",
        "--replacement-check",
        "What must prove, before a pod is evicted, that its replacement would be admitted: `dry-run` (the replacement is created with dryRun, which stores nothing) or `none`.",
        group=_UPDATER,
        why="A pod that is evicted and refused afterwards is lost; only the API server knows every policy and quota.",
    )
    node_fit: str = setting(
        "free",
        "--node-fit",
        "What some node must have before a pod is evicted: `free` room for the replacement, `allocatable` (it would fit on an empty node) or `none`.",
        group=_UPDATER,
        why="A replacement that fits on no node waits for ever. Where nodes are added for pods that wait, use `allocatable`.",
    )
    cap_to_largest_node: bool = setting(
        False,
        "--cap-to-largest-node",
        "Recommend no more for the containers of a pod together than some node can hold.",
        group=_RECOMMENDER,
        why="A recommendation says what is needed; the condition NoNodeFits says that no node has it.",
    )
    namespace: str = setting(
        "trimtab",
        "--namespace",
        "Our own namespace: for the webhook's Service, its certificate and the probe.",
        group=_ADMISSION,
        why="The namespace that the chart installs into.",
    )
    webhook_service: str = setting(
        "trimtab-webhook",
        "--webhook-service",
        "Name of the Service through which the API server reaches the webhook.",
        group=_ADMISSION,
        why="The name that the chart gives it.",
    )
    webhook_url: str = setting(
        "",
        "--webhook-url",
        "Address of the webhook outside of the cluster, https://host:port; empty means through the Service.",
        group=_ADMISSION,
        why="Only for running beside a cluster instead of inside.",
    )
    webhook_port: int = setting(
        8000,
        "--webhook-port",
        "Port that the webhook listens on; 0 picks a free one.",
        group=_ADMISSION,
        why="Upstream's default.",
    )
    webhook_address: str = setting(
        "127.0.0.1",
        "--webhook-address",
        "Address that the webhook listens on.",
        group=_ADMISSION,
        why="Nothing listens to the outside unless told; the chart sets 0.0.0.0 inside the pod.",
    )
    webhook_timeout_seconds: int = setting(
        2,
        "--webhook-timeout-seconds",
        "How long the API server waits for the webhook before it goes on without it; 1 to 3, with --webhook-naming=upstream "
        "1 to 30.",
        group=_ADMISSION,
        why="Every pod creation waits this long when the webhook hangs; answers take milliseconds.",
    )
    register_webhook: bool = setting(
        True,
        "--register-webhook",
        "Keep the webhook configurations and their CA up to date.",
        group=_ADMISSION,
        why="Upstream's default; off if another tool does it.",
    )
    ignored_namespaces: tuple[str, ...] = setting(
        (),
        "--ignored-vpa-object-namespaces",
        "Namespaces whose VPAs and pods recommender, updater and admission leave alone, separated by commas.",
        group=_ADMISSION,
        why="Upstream's default.",
    )
    include_kube_system: bool = setting(
        False,
        "--include-kube-system",
        "Let VPAs in kube-system change pods; without it they recommend only, as VPAs in our own namespace do.",
        group=_ADMISSION,
        why="A webhook that hangs must not delay the pods that the cluster itself needs. On with --compat, as upstream.",
    )
    tls_cert_file: str = setting(
        "",
        "--tls-cert-file",
        "Certificate of the webhook, if another tool makes it; read again when it changes.",
        group=_ADMISSION,
        why="Without it we make and rotate our own.",
    )
    tls_key_file: str = setting(
        "",
        "--tls-private-key-file",
        "Key of that certificate.",
        group=_ADMISSION,
        why="Without it we make and rotate our own.",
        aliases=("--tls-private-key",),
    )
    tls_ca_file: str = setting(
        "",
        "--client-ca-file",
        "CA that signed that certificate, for the webhook configurations.",
        group=_ADMISSION,
        why="Without it we make and rotate our own.",
    )
