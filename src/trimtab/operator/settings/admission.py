"""Settings of the admission webhook: its registration, TLS and status Lease."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

STATUS_LEASE_NAME = "vpa-admission-controller"
"""The Lease that upstream's admission controller renews and upstream's updater reads."""
STATUS_LEASE_NAMESPACE = "kube-system"

MOST_SECONDS = {"trimtab": 3, "upstream": 30}
"""The longest timeout of webhooks, by their naming."""

setting = settings_in("Admission")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """How the API server reaches the webhook, and how updaters see that it runs."""

    webhook_failure_policy_fail: bool = setting(
        False,
        "--webhook-failure-policy-fail",
        "Refuse pods and VPAs while the webhook does not answer (failurePolicy Fail).",
        why="Upstream's default: a webhook that is away must not stop pods from being created.",
    )
    webhook_naming: str = setting(
        "trimtab",
        "--webhook-naming",
        "Names of the webhook configuration and of its first webhook: `trimtab` (trimtab-vpa, with --namespace in place of trimtab, and pods.vpa.trimtab.dev) or `upstream` (vpa-webhook-config, vpa.k8s.io).",
        why="Both can be installed during a migration. With --compat=vpa-1.8 it is `upstream`, for tools that read that name.",
        choices=("trimtab", "upstream"),
    )
    webhook_labels: str = setting(
        "",
        "--webhook-labels",
        "Labels of the webhook configurations, as key1:value1,key2:value2.",
        is_list=True,
    )
    min_tls_version: str = setting(
        "tls1_2",
        "--min-tls-version",
        "Lowest TLS version that the webhook accepts: `tls1_2` or `tls1_3`.",
        choices=("", "tls1_2", "tls1_3"),  # upstream takes an empty version for 1.2
    )
    tls_ciphers: str = setting(
        "",
        "--tls-ciphers",
        "Ciphers of TLS 1.2 that the webhook accepts, by their IANA names, separated by commas or colons; empty means the defaults of OpenSSL.",
        is_list=True,
    )
    max_allowed_cpu_boost: str = setting(
        "",
        "--max-allowed-cpu-boost",
        "The most CPU that a container gets by its startup boost; empty means no bound.",
    )
    status_lease_name: str = setting(
        STATUS_LEASE_NAME, "--status-lease-name", "Lease that admission renews to show that it runs."
    )
    status_lease_namespace: str = setting(
        "",
        "--status-lease-namespace",
        "Namespace of that Lease; empty means kube-system.",
        variables=("NAMESPACE",),
    )
    status_lease_update_interval: timedelta = setting(
        timedelta(seconds=10),
        "--status-lease-update-interval",
        "How often that Lease is renewed; keep it well below --admission-controller-status-lease-timeout.",
    )
    webhook_service: str = setting(
        "trimtab-webhook",
        "--webhook-service",
        "Name of the Service through which the API server reaches the webhook.",
        why="The name that the chart gives it.",
    )
    webhook_url: str = setting(
        "",
        "--webhook-url",
        "Address of the webhook outside of the cluster, https://host:port; empty means through the Service.",
        why="Only for running beside a cluster instead of inside.",
    )
    webhook_port: int = setting(
        8000, "--webhook-port", "Port that the webhook listens on; 0 picks a free one."
    )
    webhook_address: str = setting(
        "127.0.0.1",
        "--webhook-address",
        "Address that the webhook listens on.",
        why="Local by default; the chart sets :: inside the pod.",
    )
    webhook_timeout_seconds: int = setting(
        2,
        "--webhook-timeout-seconds",
        "How long the API server waits for the webhook before it goes on without it; 1 to 3, with --webhook-naming=upstream 1 to 30.",
        why="Every pod creation waits this long when the webhook hangs; answers take milliseconds.",
    )
    register_webhook: bool = setting(
        True,
        "--register-webhook",
        "Keep the webhook configurations and their CA up to date.",
        why="Upstream's default; off if another tool does it.",
    )
    webhook_registration: str = setting(
        "whole",
        "--webhook-registration",
        "What --register-webhook writes: `whole` (the configurations) or `ca-bundle` (only the CA, into configurations that the installation contains).",
        why="Upstream's default. The chart contains the configurations and sets ca-bundle, so that the account may change nothing else.",
        choices=("whole", "ca-bundle"),
    )
    tls_cert_file: str = setting(
        "",
        "--tls-cert-file",
        "Certificate of the webhook, if another tool makes it; read again when it changes.",
        why="Without it we make and rotate our own.",
    )
    tls_key_file: str = setting(
        "",
        "--tls-private-key-file",
        "Key of that certificate.",
        why="Without it we make and rotate our own.",
        aliases=("--tls-private-key",),
    )
    tls_ca_file: str = setting(
        "",
        "--client-ca-file",
        "CA that signed that certificate, for the webhook configurations.",
        why="Without it we make and rotate our own.",
    )


def reject_long_timeout(settings: AdmissionSettings) -> None:
    """Raise ValueError if the timeout of webhooks is out of range."""
    seconds, most = settings.webhook_timeout_seconds, MOST_SECONDS[settings.webhook_naming]
    if not 1 <= seconds <= most:
        raise ValueError(
            f"--webhook-timeout-seconds={seconds}: every pod creation waits this long when the webhook hangs; "
            f"use 1 to {most}"
        )
