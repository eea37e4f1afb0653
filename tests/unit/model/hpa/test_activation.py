"""`activation`: its rules, and the annotation that carries it on native objects."""

import json
from typing import Any

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, messages
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import (
    create_update,
    default,
    metric_fields_of_native,
    read,
    validate_create,
    warnings_for,
)
from trimtab.model.hpa.metric_annotations import ACTIVATION, apply_annotations, into_annotations, into_fields
from trimtab.model.quantity import Quantity

GATES = FeatureGates(hpa_scale_to_zero=True)
OWN = "autoscaling.trimtab.dev/v2"
PODS = {
    "type": "Pods",
    "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}


def with_level(metric: Any, level: Any) -> Any:
    field = metric["type"].lower()
    return {**metric, field: {**metric[field], "activation": level}}


def own(*metrics: Any, low: int = 0) -> Any:
    return hpa({"resourceVersion": ""}, version=OWN, metrics=list(metrics), minReplicas=low)


def native(text: str, *metrics: Any) -> Any:
    annotations = {ACTIVATION.name: text}
    return hpa({"annotations": annotations, "resourceVersion": ""}, metrics=list(metrics or (QUEUE, CPU)))


@pytest.mark.parametrize(
    ("level", "complaint"),
    [
        ("5", None),
        (5, None),
        ("500m", None),
        ("0", None),
        ("-1", "must not be negative"),
        ("some", "quantities must match"),
        (True, "Invalid value"),
    ],
)
def test_rules_of_the_field_and_of_the_annotation(level, complaint):
    found = messages(validate_create(own(with_level(QUEUE, level)), GATES))
    warned = metric_fields_of_native(native(json.dumps({"queue": level})))
    if complaint is None:
        assert (found, warned) == ([], [])
        return
    assert found[0].startswith("spec.metrics[0].external.activation: ")
    assert complaint in found[0]
    (warning,) = warned
    assert warning.field == f"metadata.annotations[{ACTIVATION.name}]"
    assert "is ignored, so any value above 0 asks for a pod: " in warning.message
    assert complaint in warning.message


def test_pods_metrics_have_one_and_resources_have_none():
    assert messages(validate_create(own(with_level(PODS, "3"), QUEUE), GATES)) == []
    (warning,) = metric_fields_of_native(native('{"cpu": "5"}'))
    assert warning.message.endswith("cpu is a Resource metric, which has no activation")


def test_a_level_that_never_counts_is_warned_of():
    (warning,) = warnings_for(read(default(own(with_level(QUEUE, "5"), low=2))))
    assert warning.field == "spec.metrics[0].external.activation"
    assert warning.message == "has no effect with minReplicas 2: set minReplicas to 0"
    assert warnings_for(read(default(own(with_level(QUEUE, "5"))))) == []


def test_kubernetes_own_kind_drops_the_field_and_validate_says_so():
    given = own(with_level(QUEUE, "5"))
    sent = given | {"apiVersion": "autoscaling/v2"}
    assert create_update.create(sent, GATES).stored["spec"]["metrics"] == [QUEUE]
    assert create_update.create(given, GATES).stored["spec"]["metrics"] == [with_level(QUEUE, "5")]
    (warning,) = metric_fields_of_native(sent)
    assert warning.field == "spec.metrics[0].external.activation"
    assert ACTIVATION.name in warning.message


def test_annotations_say_the_same_and_back():
    given = own(with_level(QUEUE, "5"), with_level(PODS, "3"), CPU)
    moved = into_annotations(given)
    assert json.loads(moved["metadata"]["annotations"][ACTIVATION.name]) == {"queue": "5", "hits": "3"}
    assert moved["spec"]["metrics"] == [QUEUE, PODS, CPU]
    assert into_fields(moved) == given


def test_a_native_hpa_decides_by_its_annotation():
    found = read(native('{"queue": "5"}'))
    spec = apply_annotations(found.spec, found.metadata.annotations)
    assert spec.metrics[0].external is not None
    assert spec.metrics[0].external.activation == Quantity.parse("5")
    assert spec.metrics[1] == found.spec.metrics[1]
