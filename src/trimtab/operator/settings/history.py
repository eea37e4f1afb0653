"""Settings of the history that a recommender starts from. Names and defaults are upstream's."""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.operator.settings.flags import settings_in

# ruff: noqa: RUF009 - `setting` makes a dataclass field

CHECKPOINT, PROMETHEUS = "checkpoint", "prometheus"
"""The values of --storage."""

setting = settings_in("History")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """Where the samples of the past come from, and how their series are named."""

    storage: str = setting(
        "checkpoint",
        "--storage",
        "Where history comes from at start: `checkpoint`, or `prometheus` with checkpoints for what it does not have.",
        choices=(CHECKPOINT, PROMETHEUS),
    )
    prometheus_address: str = setting(
        "http://prometheus.monitoring.svc",
        "--prometheus-address",
        "Where Prometheus is; used with --storage=prometheus.",
    )
    prometheus_insecure: bool = setting(
        False, "--prometheus-insecure", "Do not check the certificate of an https address."
    )
    prometheus_bearer_token_file: str = setting(
        "",
        "--prometheus-bearer-token-file",
        "File with the token for Prometheus; read again when it changes.",
        why="Most Prometheus servers inside a cluster ask for nothing.",
    )
    prometheus_bearer_token: str = setting(
        "",
        "--prometheus-bearer-token",
        "The token itself; better set by its environment variable, where other users of the machine do not see it.",
        why="A file is the better place.",
        is_secret=True,
    )
    prometheus_username: str = setting(
        "", "--username", "User name for Prometheus, if it asks for one.", variables=("PROMETHEUS_USERNAME",)
    )
    prometheus_password: str = setting(
        "",
        "--password",
        "Password for Prometheus; better set by its environment variable.",
        variables=("PROMETHEUS_PASSWORD",),
        is_secret=True,
    )
    prometheus_query_timeout: timedelta = setting(
        timedelta(minutes=5),
        "--prometheus-query-timeout",
        "How long one question to Prometheus may take; after that, history comes from checkpoints.",
    )
    history_length: str = setting(
        "8d",
        "--history-length",
        "How far back history is read, as Prometheus writes durations.",
        why="Upstream's default, and as long as the model remembers memory.",
    )
    history_resolution: str = setting(
        "1h",
        "--history-resolution",
        "How finely history is read: CPU is averaged and memory's peak taken over this.",
    )
    history_cpu_metric: str = setting(
        "container_cpu_usage_seconds_total",
        "--history-cpu-metric",
        "Counter of CPU seconds that a container used.",
    )
    history_memory_metric: str = setting(
        "container_memory_working_set_bytes",
        "--history-memory-metric",
        "Gauge of the bytes that a container uses.",
    )
    prometheus_cadvisor_job_name: str = setting(
        "kubernetes-cadvisor",
        "--prometheus-cadvisor-job-name",
        "Scrape job of container usage; empty means any.",
    )
    container_namespace_label: str = setting(
        "namespace", "--container-namespace-label", "Label of container series that names the namespace."
    )
    container_pod_name_label: str = setting(
        "pod_name",
        "--container-pod-name-label",
        "Label of container series that names the pod; `pod` on newer kubelets.",
    )
    container_name_label: str = setting(
        "name",
        "--container-name-label",
        "Label of container series that names the container; `container` on newer kubelets.",
    )
    metric_for_pod_labels: str = setting(
        'up{job="kubernetes-pods"}',
        "--metric-for-pod-labels",
        "Series that carry the labels of pods, such as kube_pod_labels. They show which role a pod had at which time.",
    )
    pod_label_prefix: str = setting(
        "pod_label_",
        "--pod-label-prefix",
        "What precedes a pod's label in the labels of that series; `label_` for kube_pod_labels.",
    )
    pod_namespace_label: str = setting(
        "kubernetes_namespace", "--pod-namespace-label", "Label of that series that names the namespace."
    )
    pod_name_label: str = setting(
        "kubernetes_pod_name", "--pod-name-label", "Label of that series that names the pod."
    )
