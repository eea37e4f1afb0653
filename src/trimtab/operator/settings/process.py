"""Settings around the components: client, Leases and dashboard."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

setting = settings_in("Process")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How the API server is reached."""

    kubeconfig: str = setting(
        "",
        "--kubeconfig",
        "Path of a kubeconfig; empty means the usual places, then in-cluster.",
        why="As kubectl.",
    )
    context: str = setting("", "--context", "Context of the kubeconfig.", why="As kubectl.")
    kube_api_qps: float = setting(
        0.0,
        "--kube-api-qps",
        "Requests per second to the API server at most; 0 means no limit of our own.",
        why="The server's priority and fairness is the better judge; concurrency is bounded anyway.",
    )
    kube_api_burst: float = setting(
        100.0,
        "--kube-api-burst",
        "How many requests may exceed the rate for a moment.",
        why="Only used with --kube-api-qps.",
    )


setting = settings_in("Leader election")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """How replicas of Trimtab share the work."""

    leader_elect: bool = setting(
        True,
        "--leader-elect",
        "Hold a Lease before writing, so that several replicas of Trimtab may run.",
        why="A second replica is the cheapest availability there is.",
    )
    leader_elect_lease_duration: timedelta = setting(
        timedelta(seconds=15),
        "--leader-elect-lease-duration",
        "How long other replicas wait before they take over a Lease that is not renewed.",
    )
    leader_elect_renew_deadline: timedelta = setting(
        timedelta(seconds=10),
        "--leader-elect-renew-deadline",
        "How long the leader tries to renew before it stops writing.",
    )
    leader_elect_retry_period: timedelta = setting(
        timedelta(seconds=2), "--leader-elect-retry-period", "How long to wait between tries."
    )
    leader_elect_resource_namespace: str = setting(
        "trimtab",
        "--leader-elect-resource-namespace",
        "Namespace of the Lease.",
        why="The namespace that the chart installs into.",
    )
    leader_elect_resource_name: str = setting(
        "",
        "--leader-elect-resource-name",
        "What the names of the Leases begin with; empty means trimtab- and the first of the loops, as trimtab-horizontal-0. A recommender with a --recommender-name and a dry run have Leases of their own.",
        why="Processes that run other loops must not wait for each other.",
    )
    shards: int = setting(
        1,
        "--shards",
        "Number of shards, 1 to 16. Each is a Lease that one replica holds; replicas with another number wait. The updater runs on the holder of shard 0, admission on all.",
        why="One replica handles thousands of HPAs and VPAs. With shards, a replica that runs no more than horizontal, recommender and roles watches only its namespaces.",
    )


setting = settings_in("Dashboard")


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """Where the dashboard listens, and how viewers log in."""

    dashboard_address: str = setting(
        "127.0.0.1",
        "--dashboard-address",
        "Address that the dashboard listens on.",
        why="`kubectl port-forward` reaches a pod's loopback too; anything else needs a certificate.",
    )
    dashboard_port: int = setting(
        8081, "--dashboard-port", "Port of the dashboard; 0 picks a free one.", why="Next to the health port."
    )
    dashboard_hosts: tuple[str, ...] = setting(
        (),
        "--dashboard-hosts",
        "Host names besides loopback that the dashboard answers for, separated by commas.",
        why="A page of another site that resolves to this address still sends its own host name.",
    )
    dashboard_login: str = setting(
        "cluster",
        "--dashboard-login",
        "How viewers log in: `cluster` (tokens of the cluster, each viewer with their own rights) or `token` (one random token with all rights, written to --dashboard-address-file).",
        why="A dashboard that many can reach must not lend its own rights.",
        choices=("cluster", "token"),
    )
    dashboard_address_file: str = setting(
        ".trimtab/dashboard",
        "--dashboard-address-file",
        "Where the address with its token is written (mode 0600), with --dashboard-login=token.",
        why="A log has more readers than a private file.",
    )
    dashboard_cert_file: str = setting(
        "",
        "--dashboard-cert-file",
        "Certificate of the dashboard, which then serves HTTPS. Read again when it changes.",
        why="Loopback needs no encryption.",
    )
    dashboard_key_file: str = setting(
        "",
        "--dashboard-private-key-file",
        "Key of that certificate.",
        why="Loopback needs no encryption.",
    )
