"""Replica policies: a field of our own kind, an annotation on native HPAs."""

import json
from typing import Any

import pytest

from trimtab.model.field_errors import FieldPath
from trimtab.model.hpa.manifest import read, to_native_v1, to_native_v2, to_own, to_v2
from trimtab.model.hpa.metric_annotations import MetricAnnotationError
from trimtab.model.hpa.replica_policies import (
    ANNOTATION,
    apply_annotation,
    parse_annotation,
    validate_policies,
)
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, ReplicaPolicySpec
from trimtab.model.hpa.warnings import metric_fields_of_native

PLAN: dict[str, Any] = {
    "name": "example.com/StepPlan",
    "parameters": {"metric": "rps", "steps": [{"above": 0, "pods": 3}]},
}


def own(*policies):
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling.trimtab.dev/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 5, "replicaPolicies": list(policies)},
    }


@pytest.mark.parametrize("write", [to_native_v1, to_native_v2])
def test_a_policy_goes_into_the_annotation_of_a_native_hpa_and_back(write):
    native = write(own(PLAN))
    assert "replicaPolicies" not in native["spec"]
    assert json.loads(native["metadata"]["annotations"][ANNOTATION]) == [PLAN]
    again = to_own(native)
    assert again["spec"]["replicaPolicies"] == [PLAN]
    assert ANNOTATION not in again["metadata"].get("annotations", {})
    assert read(again).spec.replica_policies == read(own(PLAN)).spec.replica_policies


def test_the_operator_reads_the_annotation_of_a_native_hpa():
    native = read(to_native_v2(own(PLAN)))
    assert native.spec.replica_policies == ()
    applied = apply_annotation(native.spec, native.metadata.annotations)
    assert applied.replica_policies == (ReplicaPolicySpec(name=PLAN["name"], parameters=PLAN["parameters"]),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is no JSON"),
        ("{}", "must be a list"),
        ('[{"name": "StepPlan"}]', "a domain and a name"),
        ('[{"name": "example.com/A"}, {"name": "example.com/A"}]', "Duplicate value"),
        ('[{"name": "example.com/A", "parameter": {}}]', "unknown field; did you mean parameters"),
        ('[{"name": "example.com/A", "parameters": 3}]', "parameters"),
        (json.dumps([{"name": f"example.com/{n}"} for n in range(5)]), "Too many: 5: must have at most 4"),
        (json.dumps([{"name": "example.com/A", "parameters": {"a": "x" * 5000}}]), "at most 4096 bytes"),
    ],
)
def test_a_wrong_annotation_is_reported(text, words):
    with pytest.raises(MetricAnnotationError, match=words):
        parse_annotation(text)
    spec = HorizontalPodAutoscalerSpec()
    assert apply_annotation(spec, {ANNOTATION: text}) is spec
    native = to_native_v2(own())
    native["metadata"]["annotations"] = {ANNOTATION: text}
    (warning,) = metric_fields_of_native(native)
    assert "replicas are not lowered" in warning.message


def test_the_field_of_a_native_hpa_is_reported():
    native = {**to_v2(own(PLAN)), "apiVersion": "autoscaling/v2"}
    assert [warning.field for warning in metric_fields_of_native(native)] == ["spec.replicaPolicies"]


def test_valid_policies_have_no_errors():
    assert validate_policies((ReplicaPolicySpec(name="example.com/A"),), FieldPath("spec")) == []
