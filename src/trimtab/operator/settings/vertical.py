"""Settings of recommender, updater and admission. Names and defaults are upstream's where upstream has the setting."""

from datetime import timedelta

from trimtab.operator.settings.declare import ADDRESS, NAME, QUANTITY, Form, setting, settings_group

CHECKPOINT, PROMETHEUS = "checkpoint", "prometheus"
"""The values of --storage."""

STATUS_LEASE_NAME = "vpa-admission-controller"
"""The Lease that upstream's admission controller renews and upstream's updater reads."""
STATUS_LEASE_NAMESPACE = "kube-system"

MOST_SECONDS = {"trimtab": 3, "upstream": 30}
"""The longest timeout of webhooks, by their naming."""

# A declaration has its facts first, then its help, then why this default.
# fmt: off

LONG_DURATION = Form("([0-9.]+(w|d|h|m|s))+", "a duration such as 8d, 36h or 1h30m")
PAIR = Form(r"[^:,\s]+:[^:,\s]*", "a pair as KEY:VALUE")


@settings_group("Recommender", read_by="recommender")
class RecommenderLoopSettings:
    """How the recommender runs and saves checkpoints."""

    memory_saver: bool = setting(False,
        help="Keep history of pods that a VPA matches only, not of all pods in the namespaces of VPAs.",
        why="Upstream's default: a new VPA then begins with what is known of its pods.")
    recommender_interval: timedelta = setting("1m", is_positive=True,
        help="How often usage is read and recommendations are made.",
        why="Upstream's default; metrics-server measures every 15 s to a minute.")
    recommender_name: str = setting("default", form=NAME, decides=True,
        help="Which VPAs this recommender serves: those that name it, or name none if this is `default`.")
    checkpoints_interval: timedelta = setting("5m", compat={"kubernetes": "0s", "vpa": "0s"},
        help="How often the history of a VPA is saved; 0 means in every loop, as upstream. A crash loses this much at most.",
        why="History counts in days; saving it every minute is half of all that a recommender writes.")
    checkpoints_timeout: timedelta = setting("1m",
        help="How long one loop may spend on writing checkpoints; the rest is written in the next.")
    checkpoints_gc_interval: timedelta = setting("10m",
        help="How often checkpoints of deleted VPAs are collected.")
    update_worker_count: int = setting(10, least=1, most=1000,
        help="How many status and checkpoint writes are under way at once.")


@settings_group("Recommender", read_by="recommender")
class EstimationSettings:
    """Percentiles, margins, half-lives, and how amounts are bounded and rounded."""

    recommendation_margin_fraction: float = setting(0.15, decides=True, least=0,
        help="Safety margin on top of measured usage, as a fraction.")
    target_cpu_percentile: float = setting(0.9, decides=True, least=0, most=1,
        help="Share of the CPU samples that the target covers, 0 to 1.")
    lower_bound_cpu_percentile: float = setting(0.5, "--recommendation-lower-bound-cpu-percentile", decides=True, least=0, most=1,
        help="Share of the CPU samples that the lower bound covers, 0 to 1.")
    upper_bound_cpu_percentile: float = setting(0.95, "--recommendation-upper-bound-cpu-percentile", decides=True, least=0, most=1,
        help="Share of the CPU samples that the upper bound covers, 0 to 1.")
    target_memory_percentile: float = setting(0.9, decides=True, least=0, most=1,
        help="Share of the memory peaks that the target covers, 0 to 1.")
    lower_bound_memory_percentile: float = setting(0.5, "--recommendation-lower-bound-memory-percentile", decides=True, least=0, most=1,
        help="Share of the memory peaks that the lower bound covers, 0 to 1.")
    upper_bound_memory_percentile: float = setting(0.95, "--recommendation-upper-bound-memory-percentile", decides=True, least=0, most=1,
        help="Share of the memory peaks that the upper bound covers, 0 to 1.")
    confidence_interval_cpu: timedelta = setting("24h", decides=True, is_positive=True,
        help="Length of history at which the upper CPU bound is twice its percentile; shorter history widens both bounds.")
    confidence_interval_memory: timedelta = setting("24h", decides=True, is_positive=True,
        help="Length of history at which the upper memory bound is twice its percentile; shorter history widens both bounds.")
    cpu_histogram_decay_half_life: timedelta = setting("24h", decides=True, is_positive=True,
        help="Time after which a CPU sample counts half.")
    memory_histogram_decay_half_life: timedelta = setting("24h", decides=True, is_positive=True,
        help="Time after which a memory peak counts half.")
    memory_aggregation_interval: timedelta = setting("24h", decides=True, is_positive=True,
        help="Length of the interval of which one memory peak is kept; a VPA may set its own.")
    memory_aggregation_interval_count: int = setting(8, decides=True, least=1,
        help="How many such intervals history lasts; a VPA may set its own.")
    oom_bump_up_ratio: float = setting(1.2, decides=True, least=0,
        help="After a kill for memory, usage counts as at least this many times what it was; a VPA may set its own.")
    oom_min_bump_up_bytes: float = setting(100.0 * 1024 * 1024, decides=True, least=0,
        help="After a kill for memory, usage counts as at least this many bytes more; a VPA may set its own.")
    round_cpu_millicores: int = setting(1, decides=True,
        help="Round recommended CPU up to a multiple of this many millicores.")
    round_memory_bytes: int = setting(1, decides=True,
        help="Round recommended memory up to a multiple of this many bytes.")
    humanize_memory: bool = setting(False, decides=True,
        help="Write recommended memory with two decimals in its largest binary unit, as 1.50Gi.",
        why="Upstream's default; upstream calls it deprecated, use --round-memory-bytes.")
    cpu_integer_post_processor_enabled: bool = setting(True, decides=True, compat={"vpa": False},
        help="Round CPU up to whole cores for containers that an annotation of the VPA names.",
        why="It only acts where a VPA asks for it. Upstream's default, and ours with --compat=vpa-1.8, is false.")
    pod_min_cpu_millicores: float = setting(25.0, "--pod-recommendation-min-cpu-millicores", decides=True, least=0,
        help="The least CPU of a whole pod, in millicores.")
    pod_min_memory_mb: float = setting(250.0, "--pod-recommendation-min-memory-mb", decides=True, least=0,
        help="The least memory of a whole pod, in MiB.")
    container_max_allowed_cpu: str = setting("", "--container-recommendation-max-allowed-cpu", decides=True, form=QUANTITY,
        help="The most CPU any container is recommended where its VPA sets no maximum; empty means no bound.",
        why="Upstream's default; set it to what your largest node can hold.")
    container_max_allowed_memory: str = setting("", "--container-recommendation-max-allowed-memory", decides=True, form=QUANTITY,
        help="The most memory any container is recommended where its VPA sets no maximum; empty means no bound.",
        why="Upstream's default; set it to what your largest node can hold.")
    cap_to_largest_node: bool = setting(False, decides=True,
        help="Recommend no more for the containers of a pod together than some node can hold.",
        why="A recommendation is what a pod needs; the condition NoNodeFits reports that no node has it.")


@settings_group("History", read_by="recommender")
class HistorySettings:
    """Where the samples of the past come from, and how their series are named."""

    storage: str = setting(CHECKPOINT, decides=True, is_essential=True, choices=(CHECKPOINT, PROMETHEUS),
        help="Where history comes from at start: `checkpoint`, or `prometheus` with checkpoints for what it does not have.")
    prometheus_address: str = setting("http://prometheus.monitoring.svc", form=ADDRESS,
        help="Where Prometheus is; used with --storage=prometheus.")
    prometheus_insecure: bool = setting(False, help="Do not check the certificate of an https address.")
    prometheus_bearer_token_file: str = setting("",
        help="File with the token for Prometheus; read again when it changes.",
        why="Most Prometheus servers inside a cluster ask for nothing.")
    prometheus_bearer_token: str = setting("", is_secret=True,
        help="The token itself; better set by its environment variable, where other users of the machine do not see it.",
        why="A file is the better place.")
    prometheus_username: str = setting("", "--username", variables=("PROMETHEUS_USERNAME",),
        help="User name for Prometheus, if it asks for one.")
    prometheus_password: str = setting("", "--password", variables=("PROMETHEUS_PASSWORD",), is_secret=True,
        help="Password for Prometheus; better set by its environment variable.")
    prometheus_query_timeout: timedelta = setting("5m",
        help="How long one question to Prometheus may take; after that, history comes from checkpoints.")
    history_length: str = setting("8d", form=LONG_DURATION, help="How far back history is read, as Prometheus writes durations.",
        why="Upstream's default, and as long as the model remembers memory.")
    history_resolution: str = setting("1h", form=LONG_DURATION,
        help="How finely history is read: CPU is averaged and memory's peak taken over this.")
    history_cpu_metric: str = setting("container_cpu_usage_seconds_total",
        help="Counter of CPU seconds that a container used.")
    history_memory_metric: str = setting("container_memory_working_set_bytes",
        help="Gauge of the bytes that a container uses.")
    prometheus_cadvisor_job_name: str = setting("kubernetes-cadvisor",
        help="Scrape job of container usage; empty means any.")
    container_namespace_label: str = setting("namespace",
        help="Label of container series that names the namespace.")
    container_pod_name_label: str = setting("pod_name",
        help="Label of container series that names the pod; `pod` on newer kubelets.")
    container_name_label: str = setting("name",
        help="Label of container series that names the container; `container` on newer kubelets.")
    metric_for_pod_labels: str = setting('up{job="kubernetes-pods"}',
        help="Series that carry the labels of pods, such as kube_pod_labels. They show which role a pod had at which time.")
    pod_label_prefix: str = setting("pod_label_",
        help="What precedes a pod's label in the labels of that series; `label_` for kube_pod_labels.")
    pod_namespace_label: str = setting("kubernetes_namespace",
        help="Label of that series that names the namespace.")
    pod_name_label: str = setting("kubernetes_pod_name", help="Label of that series that names the pod.")


@settings_group("Updater", read_by="updater")
class UpdaterLoopSettings:
    """When pods are evicted or resized. `--compat=vpa-1.8` releases the eviction limits that are not given."""

    max_evictions_per_minute: int = setting(10, decides=True, compat={"vpa": 0}, least=0,
        help="Evictions per minute in the whole cluster; 0 means no bound.",
        why="A recommender that restarts may move thousands of recommendations at once.")
    max_evicted_share_per_minute: float = setting(0.1, decides=True, compat={"vpa": 0.0}, least=0, most=1,
        help="Share of the cluster's live pods that may be evicted per minute, at least 1 pod; 0 means no bound.",
        why="A small cluster must not lose most of its pods within a minute.")
    max_missing_pods: int = setting(1, decides=True, compat={"vpa": 0}, least=0,
        help="A controller that lacks this many pods loses no Ready pod to an eviction; 0 means no bound.",
        why="A workload that is short of a pod already should get it back first.")
    fruitless_evictions: int = setting(3, decides=True, compat={"vpa": 0}, least=0,
        help="Evictions of a controller in a row whose replacement has unchanged requests, after which it is paused; 0 means never.",
        why="Three times is no accident: another webhook or operator sets the requests.")
    fruitless_eviction_pause: timedelta = setting("1h", decides=True,
        help="How long such a controller is paused before one more try.",
        why="Long enough to be read about, short enough to end by itself.")
    refused_eviction_backoff: timedelta = setting("1m", decides=True, compat={"vpa": "0s"},
        help="How long a pod is left alone after the API refused its eviction, doubled each time; 0 asks again in every loop.",
        why="A PodDisruptionBudget that is used up now will mostly be so in the next minute.")
    refused_eviction_backoff_limit: timedelta = setting("10m", decides=True, help="The longest such wait.",
        why="A budget that opens should be used within minutes.")
    admission_lease_name: str = setting(STATUS_LEASE_NAME, "--admission-controller-status-lease-name", is_wired=True,
        help="Lease that the updater reads with --admission-check=lease; the same as admission's --status-lease-name.")
    admission_lease_namespace: str = setting("", "--admission-controller-status-lease-namespace", variables=("NAMESPACE",), is_wired=True,
        help="Namespace of that Lease; empty means kube-system. The same as admission's --status-lease-namespace.")
    admission_lease_timeout: timedelta = setting("1m", "--admission-controller-status-lease-timeout", is_positive=True,
        help="Age of the last renewal from which nothing is evicted.")
    updater_interval: timedelta = setting("1m", is_positive=True,
        help="How often all pods are compared with their recommendations; a role that moves is acted on at once.")
    min_replicas: int = setting(2, decides=True, least=0,
        help="The least number of live pods a VPA must have before any of them is disturbed.",
        why="Upstream's default: a lone replica has no stand-in.")
    eviction_tolerance: float = setting(0.5, decides=True, least=0, most=1,
        help="Share of a controller's replicas that may be down at once.")
    eviction_rate_limit: float = setting(-1.0,
        help="Evictions per second at most, and as many resizes in place; 0 or less means no such limit.",
        why="Upstream's default; --max-evictions-per-minute always limits evictions.")
    eviction_rate_burst: int = setting(1,
        help="How many evictions, and how many resizes, may exceed the rate for a moment.",
        why="Upstream's default; only used with --eviction-rate-limit.")
    pod_update_threshold: float = setting(0.1, decides=True, least=0,
        help="How far requests may be off, as a fraction, before an old pod inside its bounds is changed.")
    in_bounds_lifetime: timedelta = setting("12h", "--in-recommendation-bounds-eviction-lifetime-threshold", decides=True,
        help="How old a pod inside its bounds must be before it is changed.")
    evict_after_oom_threshold: timedelta = setting("10m", decides=True,
        help="A pod killed for memory within this time of its start is changed at once.")
    in_place_skip_disruption_budget: bool = setting(False, decides=True,
        help="Let resizes in place that restart nothing ignore the budget and --min-replicas.")
    admission_check: str = setting("probe", choices=("probe", "lease", "none"), compat={"vpa": "lease"},
        help="How the updater checks that admission works before it evicts: `probe` (a dry-run pod must come back changed), `lease` (upstream's: a Lease must be fresh) or `none`.",
        why="A fresh Lease shows that a process runs, not that the API server reaches it.")
    replacement_check: str = setting("dry-run", choices=("dry-run", "none"),
        help="How the updater checks that the replacement of a pod would be admitted before it evicts: `dry-run` (create the replacement with dryRun, which stores nothing) or `none`.",
        why="A pod whose replacement is rejected is lost, and only the API server applies every policy and quota.")
    node_fit: str = setting("free", decides=True, choices=("free", "allocatable", "none"),
        help="What some node must have before a pod is evicted: `free` room for the replacement, `allocatable` (it would fit on an empty node) or `none`.",
        why="A replacement that fits on no node waits for ever. Where nodes are added for pods that wait, use `allocatable`.")


@settings_group("Admission", read_by="admission")
class AdmissionSettings:
    """How the API server reaches the webhook, and how updaters see that it runs."""

    webhook_failure_policy_fail: bool = setting(False,
        help="Refuse pods and VPAs while the webhook does not answer (failurePolicy Fail).",
        why="Upstream's default: a webhook that is away must not stop pods from being created.")
    webhook_naming: str = setting("trimtab", choices=("trimtab", "upstream"), compat={"vpa": "upstream"},
        help="Names of the webhook configuration and of its first webhook: `trimtab` (trimtab-vpa, with --namespace in place of trimtab, and pods.vpa.trimtab.dev) or `upstream` (vpa-webhook-config, vpa.k8s.io).",
        why="Both can be installed during a migration. With --compat=vpa-1.8 it is `upstream`, for tools that read that name.")
    webhook_labels: str = setting("", form=PAIR, is_list=True,
        help="Labels of the webhook configurations, as key1:value1,key2:value2.")
    min_tls_version: str = setting("tls1_2", choices=("", "tls1_2", "tls1_3"),
        help="Lowest TLS version that the webhook accepts: `tls1_2` or `tls1_3`.")
    tls_ciphers: str = setting("", is_list=True,
        help="Ciphers of TLS 1.2 that the webhook accepts, by their IANA names, separated by commas or colons; empty means the defaults of OpenSSL.")
    max_allowed_cpu_boost: str = setting("", decides=True, form=QUANTITY,
        help="The most CPU that a container gets by its startup boost; empty means no bound.")
    status_lease_name: str = setting(STATUS_LEASE_NAME, is_wired=True,
        help="Lease that admission renews to show that it runs.")
    status_lease_namespace: str = setting("", variables=("NAMESPACE",), is_wired=True,
        help="Namespace of that Lease; empty means kube-system.")
    status_lease_update_interval: timedelta = setting("10s", is_positive=True,
        help="How often that Lease is renewed; keep it well below --admission-controller-status-lease-timeout.")
    webhook_service: str = setting("trimtab-webhook", is_wired=True,
        help="Name of the Service through which the API server reaches the webhook.",
        why="The name that the chart gives it.")
    webhook_url: str = setting("", is_wired=True,
        help="Address of the webhook outside of the cluster, https://host:port; empty means through the Service.",
        why="Only for running beside a cluster instead of inside.")
    webhook_port: int = setting(8000, is_wired=True, least=0, most=65535,
        help="Port that the webhook listens on; 0 picks a free one.")
    webhook_address: str = setting("127.0.0.1", is_wired=True, help="Address that the webhook listens on.",
        why="Local by default; the chart sets :: inside the pod.")
    webhook_timeout_seconds: int = setting(2, least=1, most=30,
        help="How long the API server waits for the webhook before it goes on without it; 1 to 3, with --webhook-naming=upstream 1 to 30.",
        why="Every pod creation waits this long when the webhook hangs; answers take milliseconds.")
    register_webhook: bool = setting(True, help="Keep the webhook configurations and their CA up to date.",
        why="Upstream's default; off if another tool does it.")
    webhook_registration: str = setting("whole", is_wired=True, choices=("whole", "ca-bundle"),
        help="What --register-webhook writes: `whole` (the configurations) or `ca-bundle` (only the CA, into configurations that the installation contains).",
        why="Upstream's default. The chart contains the configurations and sets ca-bundle, so that the account may change nothing else.")
    tls_cert_file: str = setting("", is_wired=True,
        help="Certificate of the webhook, if another tool makes it; read again when it changes.",
        why="Without it we make and rotate our own.")
    tls_key_file: str = setting("", "--tls-private-key-file", aliases=("--tls-private-key",), is_wired=True,
        help="Key of that certificate.", why="Without it we make and rotate our own.")
    tls_ca_file: str = setting("", "--client-ca-file", is_wired=True,
        help="CA that signed that certificate, for the webhook configurations.",
        why="Without it we make and rotate our own.")

# fmt: on


def reject_long_timeout(settings: AdmissionSettings) -> None:
    """Raise ValueError if the timeout of webhooks is out of range."""
    seconds, most = settings.webhook_timeout_seconds, MOST_SECONDS.get(settings.webhook_naming, 30)
    if not 1 <= seconds <= most:
        raise ValueError(
            f"--webhook-timeout-seconds={seconds}: every pod creation waits this long when the webhook hangs; "
            f"use 1 to {most}"
        )
