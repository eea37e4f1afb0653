"""Settings of the admission webhook's registration, TLS and status Lease."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.eviction_limits import BrakeFlags
from trimtab.operator.settings.flags import setting

# ruff: noqa: RUF009 - `setting` makes a dataclass field

_GROUP = "Admission"
_UPSTREAM = "Upstream's default."
STATUS_LEASE_NAME = "vpa-admission-controller"
"""The Lease that upstream's admission controller renews and upstream's updater reads."""
STATUS_LEASE_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings(BrakeFlags):
    """How the API server meets the webhook, and how updaters see that it runs."""

    webhook_failure_policy_fail: bool = setting(
        False,
        "--webhook-failure-policy-fail",
        "Refuse pods and VPAs while the webhook does not answer (failurePolicy Fail).",
        group=_GROUP,
        why="Upstream's default: a webhook that is away must not stop pods from being created.",
    )
    webhook_naming: str = setting(
        "trimtab",
        "--webhook-naming",
        "Names of the webhook configuration and of its first webhook: `trimtab` (trimtab-vpa, or what --namespace "
        "says in place of trimtab, and pods.vpa.trimtab.dev) or "
        "`upstream` (vpa-webhook-config, vpa.k8s.io).",
        group=_GROUP,
        why="Both can be installed while you move; with --compat=vpa-1.8 it is `upstream`, for tools that look it up.",
    )
    webhook_labels: str = setting(
        "",
        "--webhook-labels",
        "Labels of the webhook configurations, as key1:value1,key2:value2.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    min_tls_version: str = setting(
        "tls1_2",
        "--min-tls-version",
        "Lowest TLS version that the webhook accepts: `tls1_2` or `tls1_3`.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    tls_ciphers: str = setting(
        "",
        "--tls-ciphers",
        "Ciphers of TLS 1.2 that the webhook accepts, by their IANA names, separated by commas or colons; empty means the "
        "defaults of OpenSSL.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    max_allowed_cpu_boost: str = setting(
        "",
        "--max-allowed-cpu-boost",
        "The most CPU that a container gets by its startup boost; empty means no bound.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    status_lease_name: str = setting(
        STATUS_LEASE_NAME,
        "--status-lease-name",
        "Lease that admission renews to show that it runs.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    status_lease_namespace: str = setting(
        "",
        "--status-lease-namespace",
        "Namespace of that Lease; empty means kube-system.",
        group=_GROUP,
        why=_UPSTREAM,
        variables=("NAMESPACE",),
    )
    status_lease_update_interval: timedelta = setting(
        timedelta(seconds=10),
        "--status-lease-update-interval",
        "How often that Lease is renewed; keep it well below --admission-controller-status-lease-timeout.",
        group=_GROUP,
        why=_UPSTREAM,
    )
    admission_lease_name: str = setting(
        STATUS_LEASE_NAME,
        "--admission-controller-status-lease-name",
        "Lease that the updater reads with --admission-check=lease; the same as admission's --status-lease-name.",
        group="Updater",
        why=_UPSTREAM,
    )
    admission_lease_namespace: str = setting(
        "",
        "--admission-controller-status-lease-namespace",
        "Namespace of that Lease; empty means kube-system. The same as admission's --status-lease-namespace.",
        group="Updater",
        why=_UPSTREAM,
        variables=("NAMESPACE",),
    )
    admission_lease_timeout: timedelta = setting(
        timedelta(minutes=1),
        "--admission-controller-status-lease-timeout",
        "Age of the last renewal from which nothing is evicted.",
        group="Updater",
        why=_UPSTREAM,
    )
