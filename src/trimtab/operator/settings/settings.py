"""Every setting of the operator, declared once: flag, environment variable, unit, default, and why that default.

The command line, the environment variables and the reference page are generated from these declarations. Names are
upstream's wherever upstream has the setting, so that manifests and habits carry over.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields
from datetime import timedelta
from typing import Any
from zlib import crc32

from trimtab.operator.settings.compat import VPA, upstreams
from trimtab.operator.settings.flags import Flag, setting
from trimtab.operator.settings.upstream_flags import VPA_DEFAULTS
from trimtab.operator.settings.vertical import VerticalSettings

LOOPS = ("horizontal", "recommender", "updater", "admission", "roles")
"""The loops that can run in a process, in the order in which they lend their name to its Lease."""

ELECTED = ("horizontal", "recommender", "updater", "roles")
"""The loops of which one copy works at a time; admission works in every copy."""

_HORIZONTAL = "Horizontal"
_PROCESS = "Process"
_LEADER = "Leader election"
_METRICS = "Metrics"
_DASHBOARD = "Dashboard"
GROUPS = (
    _PROCESS,
    _HORIZONTAL,
    _METRICS,
    _LEADER,
    "Recommender",
    "History",
    "Updater",
    "Admission",
    _DASHBOARD,
)
"""The groups of settings, in the order in which a newcomer wants to read about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(VerticalSettings):
    """How this process runs; frozen, made once at start-up."""

    @property
    def admits_kube_system(self) -> bool:
        """Return whether pods in kube-system may be changed; upstream changes them."""
        return self.include_kube_system or bool(self.compat)

    components: tuple[str, ...] = setting(
        ("horizontal",),
        "--components",
        "What runs in this process, separated by commas: horizontal, recommender, updater, admission, roles, dashboard, "
        "adapter.",
        group=_PROCESS,
        why="Scaling out is what most people install first; the vertical loops need a webhook beside them.",
    )
    watch_namespaces: tuple[str, ...] = setting(
        (),
        "--watch-namespaces",
        "Namespaces to work in, separated by commas; empty means all.",
        group=_PROCESS,
        why="One installation per cluster is the usual case.",
    )
    feature_gates: str = setting(
        "",
        "--feature-gates",
        "Gates to set, as Name=true,Other=false; AllAlpha and AllBeta set many.",
        group=_PROCESS,
        why="Alpha features are off until somebody asks for them, as in Kubernetes.",
    )
    compat: str = setting(
        "",
        "--compat",
        "Behave as upstream does where we rule otherwise: kubernetes-1.36 for HPAs, vpa-1.8 for VPAs, or both.",
        group=_PROCESS,
        why="Our rulings fix known defects; comparing with upstream needs the defects back.",
    )
    dry_run: bool = setting(
        False,
        "--dry-run",
        "Decide, record and explain everything; write nothing but events and the Lease of this process. Decisions are "
        "read in its log, at its pages and in its metrics.",
        group=_PROCESS,
        why="People want to look before they let it act.",
    )
    native_hpas: bool = setting(
        False,
        "--native-hpas",
        "Also act on autoscaling/v2 objects; needs kube-controller-manager's HPA controller off.",
        group=_HORIZONTAL,
        why="Two controllers on one object fight; the cluster's own comes first.",
    )
    own_hpas: bool = setting(
        True,
        "--own-hpas",
        "Act on autoscaling.trimtab.dev/v2 objects.",
        group=_HORIZONTAL,
        why="They are what Trimtab is installed for.",
    )
    sync_period: timedelta = setting(
        timedelta(seconds=15),
        "--horizontal-pod-autoscaler-sync-period",
        "How often each HPA is decided; a changed spec is decided at once.",
        group=_HORIZONTAL,
        why="Upstream's period; metrics rarely change faster.",
    )
    look_period: timedelta = setting(
        timedelta(seconds=2),
        "--metrics-look-period",
        "How often the usage of pods is looked at between two syncs; where the replicas would change, the HPA is decided at once. 0 never looks.",
        group=_HORIZONTAL,
        why="One cheap request; looking takes 5 % of the time at most, so a large cluster is looked at less often. Off with --compat.",
    )
    tolerance: float = setting(
        0.1,
        "--horizontal-pod-autoscaler-tolerance",
        "How far usage may be from its target before anything happens, as a fraction; HPAs may set their own.",
        group=_HORIZONTAL,
        why="Upstream's default.",
    )
    downscale_stabilization: timedelta = setting(
        timedelta(minutes=5),
        "--horizontal-pod-autoscaler-downscale-stabilization",
        "How long the highest recommendation is kept before scaling down.",
        group=_HORIZONTAL,
        why="Upstream's default.",
    )
    cpu_initialization_period: timedelta = setting(
        timedelta(minutes=5),
        "--horizontal-pod-autoscaler-cpu-initialization-period",
        "How long after its start a pod's CPU samples may be skipped while it is not ready.",
        group=_HORIZONTAL,
        why="Upstream's default.",
    )
    initial_readiness_delay: timedelta = setting(
        timedelta(seconds=30),
        "--horizontal-pod-autoscaler-initial-readiness-delay",
        "How long after its start a pod that turns unready counts as never ready.",
        group=_HORIZONTAL,
        why="Upstream's default.",
    )
    concurrent_writes: int = setting(
        16,
        "--concurrent-horizontal-pod-autoscaler-syncs",
        "How many writes are under way at once.",
        group=_HORIZONTAL,
        why="Deciding takes microseconds; only the server's answers take time. More than this gains nothing on two cores.",
    )
    owner_cache_ttl: timedelta = setting(
        timedelta(seconds=60),
        "--owner-cache-ttl",
        "How long an owner of a kind that is not watched is believed.",
        group=_HORIZONTAL,
        why="Owners change when something is deployed; a minute bounds both staleness and requests.",
    )
    metrics_deadline: timedelta = setting(
        timedelta(seconds=10),
        "--metrics-deadline",
        "How long one metrics query may take; a slow source delays only those that asked it.",
        group=_METRICS,
        why="Shorter than a period, so that a hanging source is told within the cycle that met it.",
    )
    metrics_max_bytes: int = setting(
        16 * 1024 * 1024,
        "--metrics-max-bytes",
        "Largest metrics answer that is read.",
        group=_METRICS,
        why="A list of 40,000 pods fits; a runaway answer must not exhaust memory.",
    )
    metrics_max_age: timedelta = setting(
        timedelta(minutes=2),
        "--metrics-max-age",
        "How old a sample may be; an older one is refused, unless it is younger than --metrics-max-age-windows. A metric may "
        "set its own limit (maxAgeSeconds).",
        group=_METRICS,
        why="A stopped exporter must not scale anything; sources of clouds are minutes behind and need more.",
    )
    metrics_max_age_windows: float = setting(
        3.0,
        "--metrics-max-age-windows",
        "How many of its windows old a sample may be, where that is more than --metrics-max-age.",
        group=_METRICS,
        why="What is measured over ten minutes is not stale after two.",
    )
    metrics_max_ahead: timedelta = setting(
        timedelta(minutes=1),
        "--metrics-max-ahead",
        "How far in the future a sample may be dated; one that is further ahead is refused.",
        group=_METRICS,
        why="Clocks differ by seconds; a minute is a clock that is wrong.",
    )
    adapter_config: str = setting(
        "",
        "--adapter-config",
        "Configuration file of the component adapter, which serves custom and external metrics; see docs/adapter.md.",
        group=_METRICS,
        why="What it serves, and from where, cannot be guessed.",
    )
    kubeconfig: str = setting(
        "",
        "--kubeconfig",
        "Path of a kubeconfig; empty means the usual places, then in-cluster.",
        group=_PROCESS,
        why="As kubectl.",
    )
    context: str = setting(
        "",
        "--context",
        "Context of the kubeconfig.",
        group=_PROCESS,
        why="As kubectl.",
    )
    kube_api_qps: float = setting(
        0.0,
        "--kube-api-qps",
        "Requests per second to the API server at most; 0 means no limit of our own.",
        group=_PROCESS,
        why="The server's priority and fairness is the better judge; concurrency is bounded anyway.",
    )
    kube_api_burst: float = setting(
        100.0,
        "--kube-api-burst",
        "How many requests may exceed the rate for a moment.",
        group=_PROCESS,
        why="Only used with --kube-api-qps.",
    )
    leader_elect: bool = setting(
        True,
        "--leader-elect",
        "Hold a Lease before writing, so that several copies may run.",
        group=_LEADER,
        why="A second copy is the cheapest availability there is.",
    )
    leader_elect_lease_duration: timedelta = setting(
        timedelta(seconds=15),
        "--leader-elect-lease-duration",
        "How long others wait before they take over a lease that is not renewed.",
        group=_LEADER,
        why="Upstream's default.",
    )
    leader_elect_renew_deadline: timedelta = setting(
        timedelta(seconds=10),
        "--leader-elect-renew-deadline",
        "How long the leader tries to renew before it stops writing.",
        group=_LEADER,
        why="Upstream's default.",
    )
    leader_elect_retry_period: timedelta = setting(
        timedelta(seconds=2),
        "--leader-elect-retry-period",
        "How long to wait between tries.",
        group=_LEADER,
        why="Upstream's default.",
    )
    leader_elect_resource_namespace: str = setting(
        "trimtab",
        "--leader-elect-resource-namespace",
        "Namespace of the Lease.",
        group=_LEADER,
        why="The namespace that the chart installs into.",
    )
    leader_elect_resource_name: str = setting(
        "",
        "--leader-elect-resource-name",
        "Name of the Lease; empty means trimtab- and the first of the loops, as trimtab-horizontal; a recommender with "
        "a --recommender-name and a --dry-run have Leases of their own.",
        group=_LEADER,
        why="Processes that run other loops must not wait for each other.",
    )
    shards: int = setting(
        1,
        "--shards",
        "Share HPAs, VPAs and roles out among up to 16 copies that run with the same flags: so many Leases, each held by "
        "one copy. Of these copies one updates pods; all of them admit pods.",
        group=_LEADER,
        why="One copy decides thousands of HPAs and VPAs; sharing costs a watch of everything in each copy.",
    )
    bind_address: str = setting(
        "127.0.0.1",
        "--bind-address",
        "Address of the health and metrics port.",
        group=_PROCESS,
        why="Nothing listens to the outside unless told; the chart sets 0.0.0.0 inside the pod.",
    )
    port: int = setting(
        8080,
        "--port",
        "Port of /healthz, /livez, /readyz, /metrics and the records; 0 picks a free one.",
        group=_PROCESS,
        why="A common choice for such a port.",
    )
    records: int = setting(
        20,
        "--records",
        "Decisions kept per HPA for explain and replay.",
        group=_PROCESS,
        why="Five minutes at the default period; about 2 KB each.",
    )
    dashboard_address: str = setting(
        "127.0.0.1",
        "--dashboard-address",
        "Address that the dashboard listens on.",
        group=_DASHBOARD,
        why="`kubectl port-forward` reaches a pod's loopback too; anything else needs a certificate.",
    )
    dashboard_port: int = setting(
        8081,
        "--dashboard-port",
        "Port of the dashboard; 0 picks a free one.",
        group=_DASHBOARD,
        why="Next to the health port.",
    )
    dashboard_hosts: tuple[str, ...] = setting(
        (),
        "--dashboard-hosts",
        "Host names besides loopback that the dashboard answers for, separated by commas.",
        group=_DASHBOARD,
        why="A page of another site, pointed at our address, still says its own name.",
    )
    dashboard_login: str = setting(
        "cluster",
        "--dashboard-login",
        "Who may look: `cluster` (tokens of the cluster, each viewer with their own rights) or `token` (one random "
        "token, written to --dashboard-address-file, that opens everything).",
        group=_DASHBOARD,
        why="A dashboard that many can reach must not lend its own rights.",
    )
    dashboard_address_file: str = setting(
        ".trimtab/dashboard",
        "--dashboard-address-file",
        "Where the address with its token is written (mode 0600), with --dashboard-login=token.",
        group=_DASHBOARD,
        why="A log has more readers than a file of one's own.",
    )
    dashboard_cert_file: str = setting(
        "",
        "--dashboard-cert-file",
        "Certificate of the dashboard; it speaks HTTPS then. Read again when it changes.",
        group=_DASHBOARD,
        why="On loopback there is nobody to hide from.",
    )
    dashboard_key_file: str = setting(
        "",
        "--dashboard-private-key-file",
        "Key of that certificate.",
        group=_DASHBOARD,
        why="On loopback there is nobody to hide from.",
    )
    verbosity: int = setting(
        4,
        "--v",
        "How much is logged: 0 warnings only, 1 to 4 also what is done, 5 and more also details.",
        group=_PROCESS,
        why="Upstream's default: one line per change.",
        aliases=("-v",),
    )
    log_format: str = setting(
        "text",
        "--log-format",
        "text for people, json for machines.",
        group=_PROCESS,
        why="The first reader is a person.",
    )

    @property
    def lease_name(self) -> str:
        """Return the name of the Lease: the one that was given, or that of the first loop, whatever their order."""
        if self.leader_elect_resource_name:
            return self.leader_elect_resource_name
        elected = [name for name in ELECTED if name in self.components]
        first = elected[0] if elected else self.components[0]
        # Recommenders of different names serve different VPAs, so that each of them leads. A process that also runs
        # other loops shares the Lease: with two of them two updaters would work at once.
        named = self.recommender_name != "default" and elected == ["recommender"]
        parts = [first, lease_part(self.recommender_name)] if named else [first]
        # A process that only looks must not take the Lease of one that acts.
        return "-".join(["trimtab", *parts, *(["dry-run"] if self.dry_run else [])])


def lease_part(name: str) -> str:
    """Return a recommender's name as part of an object's name; what is not allowed there is replaced, and told apart."""
    plain = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:40]
    return plain if plain == name else f"{plain}-{crc32(name.encode()):08x}".lstrip("-")


def declared() -> Iterator[tuple[Field[Any], Flag]]:
    """Yield each setting with what is said about it, group by group, in each in the order of declaration."""
    for each in sorted(fields(Settings), key=lambda one: GROUPS.index(one.metadata["flag"].group)):
        yield each, each.metadata["flag"]


def with_values(values: Mapping[str, Any]) -> Settings:
    """Make settings from the values that were given; what is None keeps its default, or that of --compat."""
    given = {name: value for name, value in values.items() if value is not None}
    named = upstreams(given.get("compat", ""))
    # Upstream saves its history in every loop; a span that was given counts all the same.
    defaults = VPA_DEFAULTS if VPA in named else {"checkpoints_interval": timedelta()} if named else {}
    return Settings(**{**defaults, **given})
