"""One document of any kind becomes a typed object and everything that can be said about it."""

from typing import Any

import pytest

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.manifest import read_manifest
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint

GATES = FeatureGates.parse("AllAlpha=true")
SPEC: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 1,
    "maxReplicas": 5,
}


def hpa(version="autoscaling/v2", metadata=None, **spec):
    return {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"} if metadata is None else metadata,
        "spec": {**SPEC, **spec},
    }


@pytest.mark.parametrize(
    "version",
    [
        "autoscaling/v1",
        "autoscaling/v2",
        "autoscaling/v2beta1",
        "autoscaling/v2beta2",
        "autoscaling.trimtab.dev/v2",
    ],
)
def test_an_hpa_of_any_version_becomes_one_type(version):
    manifest = read_manifest(hpa(version), GATES)
    assert isinstance(manifest.object, HorizontalPodAutoscaler)
    assert (manifest.kind, manifest.key, manifest.errors) == ("HorizontalPodAutoscaler", "default/web", ())


def test_the_metrics_specificity_example_is_accepted_with_its_bare_number():
    metric = {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "foo"},
            "target": {"type": "Value", "value": 2},
            "metric": {"name": "queue_length", "selector": {"matchLabels": {"queue": "some-jobs"}}},
        },
    }
    manifest = read_manifest(hpa(metrics=[metric]), GATES)
    assert (manifest.errors, manifest.warnings) == ((), ())


def test_the_pod_selection_example_is_read_in_the_canonical_spelling():
    manifest = read_manifest(
        hpa(version="autoscaling.trimtab.dev/v2", SelectionStrategy="OwnerReference"), GATES
    )
    assert isinstance(manifest.object, HorizontalPodAutoscaler)
    assert manifest.object.spec.selection_strategy == "OwnerReference"
    assert manifest.warnings == ()


def test_an_annotation_that_cannot_be_read_is_named():
    name = "autoscaling.alpha.kubernetes.io/metrics"
    manifest = read_manifest(
        hpa("autoscaling/v1", metadata={"name": "web", "annotations": {name: "[{"}}), GATES
    )
    assert [warning.field for warning in manifest.warnings] == [f"metadata.annotations[{name}]"]


def test_a_name_that_is_to_be_generated_is_a_name():
    manifest = read_manifest(hpa(metadata={"generateName": "web-"}), GATES)
    assert manifest.errors == ()


def test_a_nameless_object_is_an_error():
    (error,) = read_manifest(hpa(metadata={}), GATES).errors
    assert error.field == "metadata.name"


def test_a_kind_that_is_not_ours_is_left_alone():
    manifest = read_manifest(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}, GATES
    )
    assert not manifest.is_known
    assert manifest.errors == ()


def test_a_kind_of_ours_in_another_group_is_left_alone():
    assert not read_manifest({"apiVersion": "example.com/v1", "kind": "VPAScope"}, GATES).is_known


def test_a_checkpoint_must_say_whose_it_is():
    checkpoint = {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "web-app"},
        "spec": {"vpaObjectName": "web"},
    }
    manifest = read_manifest(checkpoint, GATES)
    assert isinstance(manifest.object, VerticalPodAutoscalerCheckpoint)
    assert [error.field for error in manifest.errors] == ["spec.containerName"]


def test_unknown_fields_of_metadata_are_none_of_our_business():
    assert read_manifest(hpa(metadata={"name": "web", "selfLink": "/x"}), GATES).warnings == ()


@pytest.mark.parametrize("name", ["apiVersion", "kind"])
@pytest.mark.parametrize(
    ("given", "words"), [(None, "Required value"), ("", "Required value"), (3, "must be text, not an integer"), ([], "must be text, not a list")]
)  # fmt: skip
def test_every_object_names_its_version_and_kind(name, given, words):
    manifest = read_manifest({**hpa(), name: given}, GATES)
    assert [error.field for error in manifest.errors] == [name]
    assert words in str(manifest.errors[0])
    both = read_manifest({"metadata": {}}, GATES)
    assert [error.field for error in both.errors] == ["apiVersion", "kind"]


LONG = "x" * 3000


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"scaleTargetRef": {**SPEC["scaleTargetRef"], "name": LONG}}, "spec.scaleTargetRef.name", id="a long name"),
        pytest.param(
            {"metrics": [{"type": "External", "external": {"metric": {"name": LONG}, "target": {"type": "Value", "value": "1"}}}]},
            "spec.metrics[0].external.metric.name",
            id="a long name of a metric",
        ),
        pytest.param(
            {"metrics": [{"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1e99"}}}]},
            "spec.metrics[0].external.target.value",
            id="a value of too many digits",
        ),
        pytest.param(
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1e99"}}}]},
            "spec.metrics[0].resource.target.averageValue",
            id="an average of too many digits",
        ),
        pytest.param(
            {"behavior": {"scaleDown": {"tolerance": "1e99", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}},
            "spec.behavior.scaleDown.tolerance",
            id="a tolerance of too many digits",
        ),
    ],
)  # fmt: skip
def test_what_is_excessive_is_an_error_of_our_kind_and_a_warning_of_kubernetes_own(spec, field):
    ours = read_manifest(hpa("autoscaling.trimtab.dev/v2", **spec), GATES)
    native = read_manifest(hpa(**spec), GATES)
    assert field in [error.field for error in ours.errors]
    assert field not in [error.field for error in native.errors]
    assert field in [warning.field for warning in native.warnings]


@pytest.mark.parametrize("name", ["selectionStrategy", "SelectionStrategy"])
def test_a_strategy_field_of_kubernetes_own_kind_is_warned_of(name):
    found = [warning.field for warning in read_manifest(hpa(**{name: "OwnerReference"}), GATES).warnings]
    assert f"spec.{name}" in found
    own = read_manifest(hpa("autoscaling.trimtab.dev/v2", selectionStrategy="OwnerReference"), GATES)
    assert "spec.selectionStrategy" not in [warning.field for warning in own.warnings]


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
@pytest.mark.parametrize(("gate", "want"), [("true", False), ("false", True)], ids=["gate on", "gate off"])
def test_a_tolerance_without_its_gate_is_warned_of(direction, gate, want):
    gates = FeatureGates.parse(f"HPAConfigurableTolerance={gate}")
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 15}]
    spec = {"behavior": {direction: {"tolerance": "0.2", "policies": policies}}}
    for made, is_warned in ((spec, want), ({"behavior": {direction: {"policies": policies}}}, False)):
        found = [warning.field for warning in read_manifest(hpa(**made), gates).warnings]
        assert any("tolerance" in field for field in found) is is_warned
