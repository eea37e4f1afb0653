"""Settings around the components: client, Leases and dashboard."""

from datetime import timedelta

from trimtab.operator.settings.declare import (
    ADAPTER_COMMAND,
    ALL_LOOPS,
    COMMAND,
    EVERY,
    setting,
    settings_group,
)

# A declaration has its facts first, then its help, then why this default.
# fmt: off


@settings_group("Process", read_by=COMMAND)
class ClientSettings:
    """How the API server is reached."""

    kubeconfig: str = setting("", is_essential=True, is_wired=True,
        help="Path of a kubeconfig; empty means the usual places, then in-cluster.", why="As kubectl.")
    context: str = setting("", is_essential=True, is_wired=True, help="Context of the kubeconfig.",
        why="As kubectl.")
    kube_api_qps: float = setting(0.0, read_by=f"{COMMAND} {ADAPTER_COMMAND}", per_program=True,
        help="Requests per second to the API server at most; 0 means no limit of our own.",
        why="The server's priority and fairness is the better judge; concurrency is bounded anyway.")
    kube_api_burst: float = setting(100.0, read_by=f"{COMMAND} {ADAPTER_COMMAND}", per_program=True, least=1,
        help="How many requests may exceed the rate for a moment.", why="Only used with --kube-api-qps.")


@settings_group("Leader election", read_by=ALL_LOOPS)
class LeaseSettings:
    """How replicas of Trimtab share the work."""

    leader_elect: bool = setting(True, is_essential=True, is_wired=True,
        help="Hold a Lease before writing, so that several replicas of Trimtab may run.",
        why="A second replica is the cheapest availability there is.")
    leader_elect_lease_duration: timedelta = setting("15s", is_positive=True,
        help="How long other replicas wait before they take over a Lease that is not renewed.")
    leader_elect_renew_deadline: timedelta = setting("10s", is_positive=True,
        help="How long the leader tries to renew before it stops writing.")
    leader_elect_retry_period: timedelta = setting("2s", is_positive=True, help="How long to wait between tries.")
    leader_elect_resource_namespace: str = setting("trimtab", read_by=f"{ALL_LOOPS} dashboard", is_essential=True, is_wired=True,
        help="Namespace of the Lease.", why="The namespace that the chart installs into.")
    leader_elect_resource_name: str = setting("", is_wired=True,
        help="What the names of the Leases begin with; empty means trimtab- and the first of the loops, as trimtab-horizontal-0. A recommender with a --recommender-name and a dry run have Leases of their own.",
        why="Processes that run other loops must not wait for each other.")
    shards: int = setting(1, read_by=EVERY, decides=True, is_essential=True, per_program=True, least=1, most=16,
        help="Number of shards, 1 to 16. Each is a Lease that one replica holds; replicas with another number wait. The updater runs on the holder of shard 0, admission on all.",
        why="One replica handles thousands of HPAs and VPAs. With shards, a replica that runs no more than horizontal, recommender and roles watches only its namespaces.")


@settings_group("Dashboard", read_by="dashboard")
class DashboardSettings:
    """Where the dashboard listens, and how viewers log in."""

    dashboard_address: str = setting("127.0.0.1", is_wired=True,
        help="Address that the dashboard listens on.",
        why="`kubectl port-forward` reaches a pod's loopback too; anything else needs a certificate.")
    dashboard_port: int = setting(8081, is_essential=True, is_wired=True, least=0, most=65535,
        help="Port of the dashboard; 0 picks a free one.", why="Next to the health port.")
    dashboard_hosts: tuple[str, ...] = setting((),
        help="Host names besides loopback that the dashboard answers for, separated by commas.",
        why="A page of another site that resolves to this address still sends its own host name.")
    dashboard_login: str = setting("cluster", is_wired=True, choices=("cluster", "token"),
        help="How viewers log in: `cluster` (tokens of the cluster, each viewer with their own rights) or `token` (one random token with all rights, written to --dashboard-address-file).",
        why="A dashboard that many can reach must not lend its own rights.")
    dashboard_address_file: str = setting(".trimtab/dashboard", is_wired=True,
        help="Where the address with its token is written (mode 0600), with --dashboard-login=token.",
        why="A log has more readers than a private file.")
    dashboard_cert_file: str = setting("", is_wired=True,
        help="Certificate of the dashboard, which then serves HTTPS. Read again when it changes.",
        why="Loopback needs no encryption.")
    dashboard_key_file: str = setting("", "--dashboard-private-key-file", is_wired=True,
        help="Key of that certificate.", why="Loopback needs no encryption.")

# fmt: on


def reject_bad_times(settings: LeaseSettings) -> None:
    """Raise ValueError if a holder could write after its Lease ended, or not renew in time."""
    deadline, retry = settings.leader_elect_renew_deadline, settings.leader_elect_retry_period
    if not settings.leader_elect_lease_duration > deadline > 1.2 * retry:
        allowed = (
            "less than --leader-elect-lease-duration, and more than 1.2 times --leader-elect-retry-period"
        )
        raise ValueError(f"--leader-elect-renew-deadline: use {allowed}")
