"""A real API server takes our definitions, and judges objects by them as `trimtab validate` does."""

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.model.crds.objects import BAD, GONE, HPA, SCOPE, VPA, changed
from tools.peers.cluster import RealCluster
from trimtab.model.crds import all_crds
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.manifest import read_manifest

pytestmark = [pytest.mark.real, pytest.mark.versions]

OURS = {"autoscaling.trimtab.dev/v2", "autoscaling.trimtab.dev/v1"}
NATIVE = ("autoscaling/v2",)
GATES = FeatureGates.parse("AllAlpha=true")


@pytest.fixture(scope="module")
def server(real_cluster: RealCluster):
    definitions = {"apiVersion": "v1", "kind": "List", "items": all_crds()}
    real_cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(definitions))
    names = [f"crd/{crd['metadata']['name']}" for crd in all_crds()]
    real_cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    for namespace in ("logging", "search", "shop"):
        real_cluster.kubectl("create", "namespace", namespace, check=False)
    return real_cluster


def create(server, *objects):
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return server.kubectl(
        "create",
        "--validate=false",
        "--dry-run=server",
        "-o",
        "name",
        "-f",
        "-",
        stdin=json.dumps(items),
        check=False,
    )


def test_the_whole_objects_are_accepted(server):
    assert all(not read_manifest(one, GATES).errors for one in (HPA, VPA, SCOPE))
    assert create(server, HPA, VPA, SCOPE).split() == [
        "horizontalpodautoscaler.autoscaling.trimtab.dev/web",
        "verticalpodautoscaler.autoscaling.trimtab.dev/db",
        "vpascope.autoscaling.trimtab.dev/leader",
    ]


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "examples").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_example_is_accepted(server, path):
    objects = [
        example
        for example in yaml.safe_load_all(path.read_text())
        if example["apiVersion"] in (*OURS, *NATIVE)
    ]
    assert objects
    answer = create(server, *objects)
    assert len(answer.split()) == len(objects), answer


def test_the_default_is_one_replica_at_least(server):
    absent = changed(HPA, "spec.minReplicas", GONE)
    text = server.kubectl(
        "create",
        "--dry-run=server",
        "-o",
        "jsonpath={.spec.minReplicas}",
        "-f",
        "-",
        stdin=json.dumps(absent),
    )
    assert text == "1"


@pytest.mark.parametrize(("good", "path", "value", "field"), BAD)
def test_both_refuse_the_same_and_name_the_field(server, good, path, value, field):
    bad = changed(good, path, value)
    answer = create(server, bad)
    assert "is invalid" in answer
    assert field in answer
    assert any(error.field.startswith(field) for error in read_manifest(bad, GATES).errors)


def test_zero_replicas_need_a_metric_that_is_there_without_pods(server):
    bad = changed(changed(HPA, "spec.minReplicas", 0), "spec.metrics", HPA["spec"]["metrics"][1:])
    assert "spec.metrics: Forbidden: must specify at least one Object or External metric" in create(
        server, bad
    )
    assert "created" not in create(server, bad)


@pytest.mark.parametrize("spelling", ["selectionStrategy", "SelectionStrategy"])
def test_kubectl_shows_the_strategy_in_either_spelling(server, spelling):
    spec = {name: value for name, value in HPA["spec"].items() if name != "selectionStrategy"}
    server.kubectl(
        "create", "-f", "-", stdin=json.dumps({**HPA, "spec": spec | {spelling: "OwnerReference"}})
    )
    shown = server.kubectl("get", "thpa", "web", "-o", "wide")
    server.kubectl("delete", "thpa", "web")
    assert shown.splitlines()[1].split().count("OwnerReference") == 1


def test_kubectl_shows_the_targets_that_the_operator_writes(server):
    server.kubectl("create", "-f", "-", stdin=json.dumps(HPA))
    text = "q: 7/5, cpu: 45%/50% + 1 more..."
    patch = json.dumps({"status": {"targets": text}})
    server.kubectl("patch", "thpa", "web", "--subresource=status", "--type=merge", "-p", patch)
    header, row = server.kubectl("get", "thpa", "web").splitlines()
    server.kubectl("delete", "thpa", "web")
    assert row[header.index("TARGETS") :].startswith(text)


@pytest.mark.parametrize(
    ("tolerance", "words"),
    [
        ("-0.05", "tolerance in body should match '^(?P<must_not_be_negative>[^-]|$)'"),
        (-0.05, "tolerance in body should be greater than or equal to 0"),
    ],
)
def test_a_negative_tolerance_is_refused_with_words(server, tolerance, words):
    """CEL sees no field without a type, so the name of a group has to be the message."""
    answer = create(server, changed(HPA, "spec.behavior.scaleUp.tolerance", tolerance))
    assert "is invalid" in answer
    assert words in answer
    assert "KMGTPE" not in answer


def test_two_spellings_with_two_values_are_refused(server):
    bad = changed(HPA, "spec.SelectionStrategy", "LabelSelector")
    assert "is given in two spellings" in create(server, bad)


def test_status_is_written_apart_and_an_empty_metric_in_it_is_kept(server):
    server.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(HPA))
    status = {
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "targets": "cpu:7%/50%",
        "currentMetrics": [
            {"type": ""},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}},
        ],
        "conditions": [
            {"type": "ScalingActive", "status": "True", "lastTransitionTime": "2026-01-15T12:00:00Z"}
        ],
    }
    patch = json.dumps({"status": status, "spec": {"maxReplicas": 50}})
    server.kubectl("patch", "thpa", "web", "--subresource=status", "--type=merge", "-p", patch)
    seen = json.loads(server.kubectl("get", "thpa", "web", "-o", "json"))
    row = server.kubectl("get", "thpa", "web").splitlines()[1].split()
    server.kubectl("delete", "thpa", "web")
    assert seen["status"] == status
    assert seen["spec"]["maxReplicas"] == 5
    assert row[:8] == ["web", "Deployment", "web", "cpu:7%/50%", "1", "5", "1", "2"]


def test_kubectl_shows_a_dry_run(server):
    """W8, on both servers: the column reads an annotation."""
    annotated = changed(HPA, "metadata.annotations", {"autoscaling.trimtab.dev/mode": "DryRun"})
    server.kubectl("create", "-f", "-", stdin=json.dumps(annotated))
    head, row = server.kubectl("get", "thpa", "web").splitlines()
    server.kubectl("delete", "thpa", "web")
    assert "MODE" in head.split()
    assert row[head.index("MODE") :].split()[0] == "DryRun"
