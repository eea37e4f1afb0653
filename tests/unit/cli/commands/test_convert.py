"""`trimtab convert`, from outside."""

import json
from pathlib import Path

import pytest
import yaml

from trimtab.cli import answer
from trimtab.model.hpa import default

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.yaml"))

V1 = """\
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1  # a comment
  maxReplicas: 5
  targetCPUUtilizationPercentage: 60
"""
BETA = """\
apiVersion: autoscaling/v2beta1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
  metrics:
  - type: Resource
    resource: {name: cpu, targetAverageUtilization: 60}
"""


def convert(capsys, *arguments):
    code = answer(["convert", *arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def with_defaults(document):
    """Return an HPA as an API server stores it: v1 needs defaults written out that v2 may leave to the server."""
    return default(document) if document["kind"] == "HorizontalPodAutoscaler" else document


@pytest.mark.parametrize("text", [V1, BETA])
def test_older_versions_become_v2(text, tmp_path, capsys):
    file = tmp_path / "hpa.yaml"
    file.write_text(text)
    (hpa,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "v2"))
    assert list(hpa) == ["apiVersion", "kind", "metadata", "spec"]
    assert hpa["apiVersion"] == "autoscaling/v2"
    assert hpa["spec"]["metrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
        }
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_survives_v1_and_back(example, tmp_path, capsys):
    once = convert(capsys, str(example), "--to", "v2")
    v1, v2 = tmp_path / "v1.yaml", tmp_path / "v2.yaml"
    v2.write_text(once)
    v1.write_text(convert(capsys, str(v2), "--to", "v1"))
    back = convert(capsys, str(v1), "--to", "v2")
    assert [with_defaults(one) for one in yaml.safe_load_all(back)] == [
        with_defaults(one) for one in yaml.safe_load_all(once)
    ]
    assert "autoscaling/v2" not in [one["apiVersion"] for one in yaml.safe_load_all(v1.read_text())]


def test_other_kinds_pass_and_keep_their_place(tmp_path, capsys):
    config = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "1"}}
    file = tmp_path / "list.yaml"
    file.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [config, yaml.safe_load(V1)]})
    )
    (whole,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "trimtab"))
    assert whole["items"][0] == config
    assert whole["items"][1]["apiVersion"] == "autoscaling.trimtab.dev/v2"


def test_json_holds_several_documents_in_a_list(tmp_path, capsys):
    file = tmp_path / "two.yaml"
    file.write_text(f"{V1}---\n{BETA}")
    data = json.loads(convert(capsys, str(file), "--to", "v2", "-o", "json"))
    assert data["kind"] == "List"
    assert len(data["items"]) == 2


def test_an_object_that_cannot_be_read_is_named_and_nothing_is_written(tmp_path, capsys):
    file = tmp_path / "bad.yaml"
    file.write_text(V1.replace("maxReplicas: 5", "maxReplicas: many"))
    assert answer(["convert", str(file), "--to", "v2"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "bad.yaml:7: HorizontalPodAutoscaler web: spec.maxReplicas: Invalid value" in err
    assert err.count("\n") == 1


def test_an_empty_file_cannot_be_converted(tmp_path, capsys):
    file = tmp_path / "empty.yaml"
    file.write_text("")
    assert answer(["convert", str(file), "--to", "v2"]) == 2
    assert "holds no documents" in capsys.readouterr().err


LIVE = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
  namespace: shop
  uid: 84d71580-cdbe-401f-a22d-710271d4de1c
  resourceVersion: "142"
  creationTimestamp: "2026-11-16T06:41:07Z"
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", owner: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 20
status: {desiredReplicas: 3, currentReplicas: 3}
"""


def test_a_live_object_of_the_other_group_becomes_one_that_can_be_applied(tmp_path, capsys):
    path = tmp_path / "live.yaml"
    path.write_text(LIVE)
    made = yaml.safe_load(convert(capsys, "--to", "trimtab", str(path)))
    assert made["apiVersion"] == "autoscaling.trimtab.dev/v2"
    assert made["metadata"] == {"name": "web", "namespace": "shop", "annotations": {"owner": "shop"}}
    assert "status" not in made


def test_within_one_group_a_live_object_stays_the_same_object(tmp_path, capsys):
    path = tmp_path / "live.yaml"
    path.write_text(LIVE)
    made = yaml.safe_load(convert(capsys, "--to", "v1", str(path)))
    assert made["metadata"]["resourceVersion"] == "142"
    assert "status" in made


LOST = """\
apiVersion: autoscaling.trimtab.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  metrics:
  - type: External
    external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "10"}}
    onLoss: {policy: Replicas, replicas: 3}
"""


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_loss_policy_goes_into_an_annotation_that_kubernetes_keeps_and_comes_back(
    version, tmp_path, capsys
):
    file = tmp_path / "hpa.yaml"
    file.write_text(LOST)
    native = convert(capsys, str(file), "--to", version)
    (hpa,) = yaml.safe_load_all(native)
    note = hpa["metadata"]["annotations"]["autoscaling.trimtab.dev/on-loss"]
    assert json.loads(note) == {"queue": {"policy": "Replicas", "replicas": 3}}
    assert "onLoss" not in native
    file.write_text(native)
    (back,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "trimtab"))
    assert back == yaml.safe_load(LOST)


def test_a_loss_annotation_that_is_wrong_is_named_and_nothing_is_written(tmp_path, capsys):
    file = tmp_path / "hpa.yaml"
    file.write_text(
        V1.replace("{name: web}", "{name: web, annotations: {autoscaling.trimtab.dev/on-loss: '{'}}", 1)
    )
    assert answer(["convert", str(file), "--to", "trimtab"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "HorizontalPodAutoscaler web: annotation autoscaling.trimtab.dev/on-loss: it is no JSON" in err


@pytest.mark.parametrize("version", ["v1", "v2", "trimtab"])
def test_two_different_strategies_are_named_and_nothing_is_written(version, tmp_path, capsys):
    """The first one was written, and the other one was lost."""
    annotations = (
        "autoscaling.trimtab.dev/selection-strategy: OwnerReference, "
        "autoscaling.alpha.kubernetes.io/pod-selection-strategy: LabelSelector"
    )
    file = tmp_path / "hpa.yaml"
    file.write_text(V1.replace("{name: web}", f"{{name: web, annotations: {{{annotations}}}}}", 1))
    assert answer(["convert", str(file), "--to", version]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "selection-strategy is 'OwnerReference' and annotation autoscaling.alpha.kubernetes.io" in err


ANNOTATED = """\
apiVersion: autoscaling/%s
kind: HorizontalPodAutoscaler
metadata: {name: web, annotations: {%s: '%s'}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
"""


@pytest.mark.parametrize("version", ["v1", "v2", "trimtab"])
@pytest.mark.parametrize(
    ("note", "text"),
    [("metrics", "[{"), ("behavior", "{"), ("behavior", '{"ScaleUp": 1}'), ("metrics", '{"type": 1}')],
)
def test_an_annotation_that_holds_a_part_of_the_spec_and_is_broken_is_refused(
    note, text, version, tmp_path, capsys
):
    file = tmp_path / "hpa.yaml"
    file.write_text(ANNOTATED % ("v1", f"autoscaling.alpha.kubernetes.io/{note}", text))
    assert answer(["convert", str(file), "--to", version]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"annotation autoscaling.alpha.kubernetes.io/{note} cannot be read" in err


def test_an_annotation_may_be_about_the_metric_that_is_the_default(tmp_path, capsys):
    file = tmp_path / "hpa.yaml"
    file.write_text(ANNOTATED % ("v2", "autoscaling.trimtab.dev/on-loss", '{"cpu": {"policy": "Ignore"}}'))
    (hpa,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "trimtab"))
    (metric,) = hpa["spec"]["metrics"]
    assert metric["onLoss"] == {"policy": "Ignore"}
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_a_new_object_has_no_memory_of_the_old_one(tmp_path, capsys):
    file = tmp_path / "hpa.yaml"
    file.write_text(ANNOTATED % ("v2", "autoscaling.trimtab.dev/memory", "{}"))
    (hpa,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "trimtab"))
    assert "annotations" not in hpa["metadata"]


NATIVE_VPA = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: db
  uid: 1f0c
  annotations: {autoscaling.trimtab.dev/vpa-scope: leader}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
status:
  recommendation: {containerRecommendations: []}
"""


def test_a_vpa_becomes_one_of_the_own_kind_with_its_status_and_back(tmp_path, capsys):
    file = tmp_path / "vpa.yaml"
    file.write_text(NATIVE_VPA)
    text = convert(capsys, str(file), "--to", "trimtab")
    (own,) = yaml.safe_load_all(text)
    assert own["apiVersion"] == "autoscaling.trimtab.dev/v1"
    assert own["metadata"] == {"name": "db"}
    assert own["spec"]["vpaScope"] == {"name": "leader"}
    assert own["status"] == {"recommendation": {"containerRecommendations": []}}
    file.write_text(text)
    (native,) = yaml.safe_load_all(convert(capsys, str(file), "--to", "native"))
    (written,) = yaml.safe_load_all(NATIVE_VPA)
    del written["metadata"]["uid"]
    assert native == written


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param("status:", "  vpaScope: {name: other}\nstatus:", "names 'other'", id="two scopes"),
        pytest.param("spec:", "spec: 5\nx:", "must be an object", id="no spec"),
    ],
)
def test_a_vpa_that_cannot_be_converted_is_named(old, new, why, tmp_path, capsys):
    file = tmp_path / "vpa.yaml"
    file.write_text(NATIVE_VPA.replace(old, new, 1))
    assert answer(["convert", str(file), "--to", "trimtab"]) == 1
    assert why in capsys.readouterr().err
