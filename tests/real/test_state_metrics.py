"""The real kube-state-metrics tells Trimtab's objects as metrics, with our configuration and the rights that come with it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.model.crds.objects import HPA, SCOPE, VPA
from tools.peers import build, processes
from tools.peers.cluster import PeerError, RealCluster, free_port
from trimtab.install import manifests, set_values
from trimtab.model.crds import all_crds

pytestmark = pytest.mark.real

NAME = "trimtab-kube-state-metrics"
PROGRAM = "kube-state-metrics"
NAMESPACE = "state-metrics"
SETTINGS = ("kubeStateMetrics.enabled=true", f"kubeStateMetrics.namespace={NAMESPACE}")
IDLE = {**HPA, "metadata": {"name": "idle"}}
"""An HPA that nobody has decided about: it has no status."""
HPA_STATUS = {
    "currentReplicas": 3,
    "desiredReplicas": 4,
    "observedGeneration": 1,
    "lastScaleTime": "2026-01-15T12:00:00Z",
    "conditions": [
        {"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric"},
        {"type": "ScaledToZero", "status": "True", "reason": "ScaledToZero"},
    ],
}
VPA_STATUS = {
    "conditions": [{"type": "RecommendationProvided", "status": "True"}],
    "recommendation": {
        "containerRecommendations": [
            {
                "containerName": "app",
                "target": {"cpu": "250m", "memory": "1Gi"},
                "lowerBound": {"cpu": "100m", "memory": "1Gi"},
                "upperBound": {"cpu": "2", "memory": "4Gi"},
            }
        ]
    },
}


@pytest.fixture(scope="module")
def samples(
    real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[str, dict[str, str], float]]]:
    """What kube-state-metrics tells of one HPA, one VPA and one scope."""
    program = build.find(PROGRAM)
    if program is None:
        pytest.skip(f"{PROGRAM} is not there; `python -m tools.peers.build {PROGRAM}` builds it")
    _apply(real_cluster, *all_crds())
    names = [f"crd/{crd['metadata']['name']}" for crd in all_crds()]
    real_cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    _apply(real_cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    installed = [one for one in manifests(set_values(SETTINGS)) if one["metadata"]["name"] == NAME]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PROGRAM}}
    _apply(real_cluster, *installed, _here(account), *map(_here, (HPA, IDLE, VPA, SCOPE)))
    _report(real_cluster, "thpa", "web", HPA_STATUS, "--subresource=status")
    _report(real_cluster, "tvpa", "db", VPA_STATUS, "--subresource=status")
    directory = Path(tmp_path_factory.mktemp("state-metrics"))
    (directory / "kubeconfig").write_text(_kubeconfig(real_cluster))
    config = next(one for one in installed if one["kind"] == "ConfigMap")["data"]["config.yaml"]
    (directory / "config.yaml").write_text(config)
    port = free_port()
    process = processes.start(
        [
            str(program), "--kubeconfig=kubeconfig", "--custom-resource-state-only=true",
            "--custom-resource-state-config-file=config.yaml", "--host=127.0.0.1", f"--port={port}",
            "--telemetry-host=127.0.0.1", f"--telemetry-port={free_port()}",
        ],
        directory, directory / "log",
    )  # fmt: skip
    try:
        yield _scraped(f"http://127.0.0.1:{port}/metrics", directory / "log")
    finally:
        process.kill()
        process.wait()
        real_cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        real_cluster.kubectl("delete", "clusterrole,clusterrolebinding", NAME)


def _here(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}}


def _apply(cluster: RealCluster, *objects: dict[str, Any]) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=body)


def _report(cluster: RealCluster, kind: str, name: str, status: Any, *flags: str) -> None:
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", kind, name, "-n", NAMESPACE, "--type=merge", *flags, "-p", patch)


def _kubeconfig(cluster: RealCluster) -> str:
    """Return a kubeconfig with the account that the installation gives its rights to."""
    config = json.loads(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", PROGRAM, "-n", NAMESPACE, "--duration=1h").strip()
    config["users"][0]["user"] = {"token": token}
    return json.dumps(config)


def _scraped(url: str, log: Path) -> list[tuple[str, dict[str, str], float]]:
    """Return the samples once our objects of all three kinds are told; other tests have some of their own."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                text = answer.read().decode()
        except (OSError, urllib.error.URLError):
            text = ""
        if all(_is_told(text, kind) for kind in KINDS):
            break
        if time.monotonic() > deadline:
            raise PeerError(f"{PROGRAM} does not tell all kinds; its log ends with {log.read_text()[-2000:]}")
        time.sleep(0.2)
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("namespace") == NAMESPACE
    ]


def _is_told(text: str, kind: str) -> bool:
    here = f'namespace="{NAMESPACE}"'
    return any(line.startswith(f"kube_{kind}_info{{") and here in line for line in text.splitlines())


KINDS = ("trimtab_horizontalpodautoscaler", "verticalpodautoscaler", "vpascope")
H, V = "kube_trimtab_horizontalpodautoscaler", "kube_verticalpodautoscaler"
R = f"{V}_status_recommendation_containerrecommendations"
WANTED = [
    (f"{H}_spec_min_replicas", {}, 1),
    (f"{H}_status_current_replicas", {"horizontalpodautoscaler": "idle"}, 0),
    (f"{H}_spec_max_replicas", {}, 5),
    (f"{H}_status_current_replicas", {}, 3),
    (f"{H}_status_desired_replicas", {}, 4),
    (f"{H}_status_observed_generation", {}, 1),
    (f"{H}_metadata_generation", {}, 1),
    (f"{H}_status_last_scale_time", {}, 1768478400),
    (f"{H}_status_condition", {"condition": "ScalingActive", "status": "False"}, 1),
    (f"{H}_status_condition", {"condition": "ScalingActive", "status": "True"}, 0),
    (f"{H}_status_condition", {"condition": "ScaledToZero", "status": "True"}, 1),
    (f"{H}_status_condition_reason", {"condition": "ScalingActive", "reason": "FailedGetExternalMetric"}, 1),
    (f"{H}_info", {"scaletargetref_kind": "Deployment", "selection_strategy": "OwnerReference"}, 1),
    (f"{V}_info", {"verticalpodautoscaler": "db", "vpascope": "leader"}, 1),
    (f"{V}_spec_updatepolicy_updatemode", {"update_mode": "InPlaceOrRecreate"}, 1),
    (f"{V}_spec_updatepolicy_updatemode", {"update_mode": "Off"}, 0),
    (f"{V}_status_condition", {"condition": "RecommendationProvided", "status": "True"}, 1),
    (f"{R}_target_cpu", {"container": "app", "target_name": "db", "unit": "core"}, 0.25),
    (f"{R}_target_memory", {"container": "app", "unit": "byte"}, 2**30),
    (f"{R}_lowerbound_cpu", {"container": "app"}, 0.1),
    (f"{R}_upperbound_memory", {"container": "app"}, 4 * 2**30),
    (f"{V}_spec_resourcepolicy_container_policies_minallowed_cpu", {"container": "app"}, 0.1),
    (f"{V}_spec_resourcepolicy_container_policies_maxallowed_memory", {"container": "app"}, 4 * 2**30),
    ("kube_vpascope_info", {"vpascope": "leader", "pod_label_app_kubernetes_io_name": "db"}, 1),
    ("kube_vpascope_metadata_generation", {"vpascope": "leader"}, 1),
]


@pytest.mark.parametrize(
    ("name", "labels", "value"), WANTED, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_field_is_told(samples, name, labels, value):
    if name.startswith(H):
        labels = {"horizontalpodautoscaler": "web"} | labels
    told = [found for metric, given, found in samples if metric == name and labels.items() <= given.items()]
    assert told == [pytest.approx(value)]


def test_an_object_without_status_has_no_conditions(samples):
    idle = [name for name, labels, _ in samples if labels.get("horizontalpodautoscaler") == "idle"]
    assert f"{H}_spec_max_replicas" in idle
    assert f"{H}_status_condition" not in idle


def test_no_series_is_told_twice(samples):
    series = [(name, frozenset(labels.items())) for name, labels, _ in samples]
    assert len(series) == len(set(series))
