"""Every default, by name.

Users who leave a flag away depend on its default. The reference page is generated from the declarations, so it would
follow a default that changed by mistake. The values here are written by hand.
"""

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from trimtab.operator.settings.declare import Form, Setting, setting, settings_group, settings_in
from trimtab.operator.settings.horizontal import HorizontalSettings, MetricsSettings
from trimtab.operator.settings.process import ClientSettings, DashboardSettings, LeaseSettings
from trimtab.operator.settings.settings import Settings, compat_defaults, declared
from trimtab.operator.settings.vertical import (
    STATUS_LEASE_NAME,
    STATUS_LEASE_NAMESPACE,
    AdmissionSettings,
    EstimationSettings,
    HistorySettings,
    RecommenderLoopSettings,
    UpdaterLoopSettings,
)

PROCESS = {
    "components": ("horizontal",),
    "watch_namespaces": (),
    "feature_gates": "",
    "compat": "",
    "plugins": (),
    "dry_run": False,
    "namespace": "trimtab",
    "ignored_namespaces": (),
    "include_kube_system": False,
    "bind_address": "127.0.0.1",
    "port": 8080,
    "records": 20,
    "verbosity": 4,
    "log_format": "text",
}
CLIENT = {"kubeconfig": "", "context": "", "kube_api_qps": 0.0, "kube_api_burst": 100.0}
LEASES = {
    "leader_elect": True,
    "leader_elect_lease_duration": timedelta(seconds=15),
    "leader_elect_renew_deadline": timedelta(seconds=10),
    "leader_elect_retry_period": timedelta(seconds=2),
    "leader_elect_resource_namespace": "trimtab",
    "leader_elect_resource_name": "",
    "shards": 1,
    "split_namespaces": (),
    "shard_seed": 0,
}
DASHBOARD = {
    "dashboard_address": "127.0.0.1",
    "dashboard_port": 8081,
    "dashboard_hosts": (),
    "dashboard_login": "cluster",
    "dashboard_address_file": ".trimtab/dashboard",
    "dashboard_cert_file": "",
    "dashboard_key_file": "",
}
HORIZONTAL = {
    "native_hpas": False,
    "own_hpas": True,
    "sync_period": timedelta(seconds=15),
    "look_period": timedelta(seconds=2),
    "tolerance": 0.1,
    "downscale_stabilization": timedelta(minutes=5),
    "cpu_initialization_period": timedelta(minutes=5),
    "initial_readiness_delay": timedelta(seconds=30),
    "concurrent_writes": 16,
    "status_max_age": timedelta(minutes=1),
    "status_visible_change": 0.05,
    "owner_cache_ttl": timedelta(minutes=1),
}
METRICS = {
    "metrics_deadline": timedelta(seconds=10),
    "metrics_max_bytes": 16_777_216,
    "stale_after": timedelta(minutes=2),
    "stale_windows": 3.0,
    "ahead_limit": timedelta(minutes=1),
    "adapter_config": "",
}
ESTIMATION = {
    "recommendation_margin_fraction": 0.15,
    "target_cpu_percentile": 0.9,
    "lower_bound_cpu_percentile": 0.5,
    "upper_bound_cpu_percentile": 0.95,
    "target_memory_percentile": 0.9,
    "lower_bound_memory_percentile": 0.5,
    "upper_bound_memory_percentile": 0.95,
    "confidence_interval_cpu": timedelta(days=1),
    "confidence_interval_memory": timedelta(days=1),
    "cpu_histogram_decay_half_life": timedelta(days=1),
    "memory_histogram_decay_half_life": timedelta(days=1),
    "memory_aggregation_interval": timedelta(days=1),
    "memory_aggregation_interval_count": 8,
    "oom_bump_up_ratio": 1.2,
    "oom_min_bump_up_bytes": 104_857_600.0,
    "round_cpu_millicores": 1,
    "round_memory_bytes": 1,
    "humanize_memory": False,
    "cpu_integer_post_processor_enabled": True,
    "pod_min_cpu_millicores": 25.0,
    "pod_min_memory_mb": 250.0,
    "container_max_allowed_cpu": "",
    "container_max_allowed_memory": "",
    "cap_to_largest_node": False,
}
RECOMMENDER = {
    "memory_saver": False,
    "recommender_interval": timedelta(minutes=1),
    "recommender_name": "default",
    "checkpoints_interval": timedelta(minutes=5),
    "checkpoints_timeout": timedelta(minutes=1),
    "checkpoints_gc_interval": timedelta(minutes=10),
    "update_worker_count": 10,
}
HISTORY = {
    "storage": "checkpoint",
    "prometheus_address": "http://prometheus.monitoring.svc",
    "prometheus_insecure": False,
    "prometheus_bearer_token_file": "",
    "prometheus_bearer_token": "",
    "prometheus_username": "",
    "prometheus_password": "",
    "prometheus_query_timeout": timedelta(minutes=5),
    "history_length": "8d",
    "history_resolution": "1h",
    "history_cpu_metric": "container_cpu_usage_seconds_total",
    "history_memory_metric": "container_memory_working_set_bytes",
    "prometheus_cadvisor_job_name": "kubernetes-cadvisor",
    "container_namespace_label": "namespace",
    "container_pod_name_label": "pod_name",
    "container_name_label": "name",
    "metric_for_pod_labels": 'up{job="kubernetes-pods"}',
    "pod_label_prefix": "pod_label_",
    "pod_namespace_label": "kubernetes_namespace",
    "pod_name_label": "kubernetes_pod_name",
}
UPDATER = {
    "max_evictions_per_minute": 10,
    "max_evicted_share_per_minute": 0.1,
    "max_missing_pods": 1,
    "fruitless_evictions": 3,
    "fruitless_eviction_pause": timedelta(hours=1),
    "refused_eviction_backoff": timedelta(minutes=1),
    "refused_eviction_backoff_limit": timedelta(minutes=10),
    "admission_lease_name": "vpa-admission-controller",
    "admission_lease_namespace": "",
    "admission_lease_timeout": timedelta(minutes=1),
    "updater_interval": timedelta(minutes=1),
    "min_replicas": 2,
    "eviction_tolerance": 0.5,
    "eviction_rate_limit": -1.0,
    "eviction_rate_burst": 1,
    "pod_update_threshold": 0.1,
    "in_bounds_lifetime": timedelta(hours=12),
    "evict_after_oom_threshold": timedelta(minutes=10),
    "in_place_skip_disruption_budget": False,
    "admission_check": "probe",
    "replacement_check": "dry-run",
    "node_fit": "free",
}
ADMISSION = {
    "webhook_failure_policy_fail": False,
    "webhook_naming": "trimtab",
    "webhook_labels": "",
    "min_tls_version": "tls1_2",
    "tls_ciphers": "",
    "max_allowed_cpu_boost": "",
    "status_lease_name": "vpa-admission-controller",
    "status_lease_namespace": "",
    "status_lease_update_interval": timedelta(seconds=10),
    "webhook_service": "trimtab-webhook",
    "webhook_url": "",
    "webhook_port": 8000,
    "webhook_address": "127.0.0.1",
    "webhook_timeout_seconds": 2,
    "register_webhook": True,
    "webhook_registration": "whole",
    "tls_cert_file": "",
    "tls_key_file": "",
    "tls_ca_file": "",
}


@pytest.mark.parametrize(
    ("group", "want"),
    [
        (ClientSettings(), CLIENT),
        (LeaseSettings(), LEASES),
        (DashboardSettings(), DASHBOARD),
        (HorizontalSettings(), HORIZONTAL),
        (MetricsSettings(), METRICS),
        (EstimationSettings(), ESTIMATION),
        (RecommenderLoopSettings(), RECOMMENDER),
        (HistorySettings(), HISTORY),
        (UpdaterLoopSettings(), UPDATER),
        (AdmissionSettings(), ADMISSION),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "",
)
def test_defaults_of_a_group(group: Any, want: dict[str, Any]) -> None:
    assert {field.name: getattr(group, field.name) for field in fields(group)} == want


def test_defaults_of_a_process():
    plain = Settings()
    groups = (
        CLIENT,
        LEASES,
        DASHBOARD,
        HORIZONTAL,
        METRICS,
        ESTIMATION,
        RECOMMENDER,
        HISTORY,
        UPDATER,
        ADMISSION,
    )
    want: dict[str, Any] = dict(PROCESS)
    for group in groups:
        want |= group
    assert {each.name: plain.value(each.name) for each in declared()} == want
    assert plain == Settings.of(**dict.fromkeys(want)) == Settings.of(**want)


def test_upstreams_status_lease():
    assert (STATUS_LEASE_NAMESPACE, STATUS_LEASE_NAME) == ("kube-system", "vpa-admission-controller")


VPA_DEFAULTS: dict[str, Any] = {
    "admission_check": "lease",
    "cpu_integer_post_processor_enabled": False,
    "max_evictions_per_minute": 0,
    "max_evicted_share_per_minute": 0.0,
    "max_missing_pods": 0,
    "fruitless_evictions": 0,
    "refused_eviction_backoff": timedelta(),
    "checkpoints_interval": timedelta(),
    "webhook_naming": "upstream",
    "include_kube_system": True,
}
HPA_DEFAULTS: dict[str, Any] = {
    "status_max_age": timedelta(),
    "look_period": timedelta(),
    "checkpoints_interval": timedelta(),
    "include_kube_system": True,
}


@pytest.mark.parametrize(
    ("compat", "want"),
    [
        ("vpa-1.8", VPA_DEFAULTS),
        ("kubernetes-1.36", HPA_DEFAULTS),
        ("kubernetes-1.37", HPA_DEFAULTS),
        ("kubernetes-1.37,vpa-1.8", {**HPA_DEFAULTS, **VPA_DEFAULTS}),
    ],
)
def test_defaults_with_upstreams_rules(compat, want):
    """Upstream has no limit per minute, no limit of missing pods and no pause after fruitless evictions."""
    plain, with_rules = Settings(), Settings.of(compat=compat)
    assert with_rules == plain.replace(compat=compat, **want)
    assert compat_defaults(compat) == {
        each.name: with_rules.value(each.name) for each in declared() if each.compat
    }


def test_a_given_value_wins_over_the_default_of_upstreams_rules():
    given = {name: Settings().value(name) for name in {**VPA_DEFAULTS, **HPA_DEFAULTS}}
    assert Settings.of(compat="kubernetes-1.37,vpa-1.8", **given) == Settings().replace(
        compat="kubernetes-1.37,vpa-1.8"
    )


@settings_group("Some", read_by="horizontal")
class Declared:
    """A group with a setting of each kind."""

    plain: int = setting(3, help="Help.", least=1, most=5)
    named: timedelta = setting("1m", "--its-own", read_by="a b", group="Other", help="Help.", why="Because.")
    names: tuple[str, ...] = setting((), help="Help.", form=Form("[a-z]+", "a word"))
    hidden: str = setting("", is_secret=True, help="Help.")


def test_a_declaration_is_completed_by_its_name_its_type_and_its_group():
    plain, named, names, _ = settings_in(Declared())
    assert plain == Setting(
        name="plain", type=int, default=3, help="Help.", group="Some", read_by=frozenset({"horizontal"}),
        flag="--plain", least=1, most=5,
    )  # fmt: skip
    assert (named.flag, named.key, named.environment) == ("--its-own", "its-own", "TRIMTAB_ITS_OWN")
    assert (named.default, named.read_by, named.group) == (timedelta(minutes=1), frozenset("ab"), "Other")
    assert (names.type, names.is_list) == (tuple, True)
    assert plain.why == "Upstream's default."


def test_only_a_secret_is_left_out_of_the_repr():
    assert repr(Declared()) == "Declared(plain=3, named=datetime.timedelta(seconds=60), names=())"


@pytest.mark.parametrize(
    "fact",
    [{"decides": True}, {"default": "changeme"}, {"choices": ("a", "b")}, {"type": int}],
    ids=lambda fact: next(iter(fact)),
)
def test_a_secret_cannot_be_published_or_shown(fact):
    with pytest.raises(TypeError, match="a secret is a text without default, and is never published"):
        Setting(**{"default": "", "help": "Help.", "is_secret": True, **fact})
