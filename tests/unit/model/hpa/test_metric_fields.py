"""`maxAgeSeconds` and `activation`: their rules, and the annotations that carry them on native objects."""

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
from trimtab.model.hpa.metric_annotations import (
    ACTIVATION,
    MAX_AGE,
    ON_LOSS,
    apply_annotations,
    into_annotations,
    into_fields,
)
from trimtab.model.quantity import Quantity

GATES = FeatureGates(hpa_scale_to_zero=True)
OWN = "autoscaling.trimtab.dev/v2"
CONSEQUENCES = {
    MAX_AGE: "is ignored, so the operator's limits hold for every metric: ",
    ACTIVATION: "is ignored, so any value above 0 asks for a pod: ",
}
FIELDS = [pytest.param(MAX_AGE, 600, id="maxAgeSeconds"), pytest.param(ACTIVATION, "5", id="activation")]


def own(*metrics: Any, low: int = 0) -> Any:
    return hpa({"resourceVersion": ""}, version=OWN, metrics=list(metrics), minReplicas=low)


def native(annotation: Any, text: str) -> Any:
    return hpa({"annotations": {annotation.name: text}, "resourceVersion": ""}, metrics=[QUEUE, CPU])


@pytest.mark.parametrize(
    ("annotation", "value", "complaint"),
    [
        (MAX_AGE, 1, None),
        (MAX_AGE, 86_400, None),
        (MAX_AGE, 0, "must be between 1 and 86400"),
        (MAX_AGE, -5, "must be between 1 and 86400"),
        (MAX_AGE, 86_401, "must be between 1 and 86400"),
        (MAX_AGE, "5m", "Invalid value"),
        (MAX_AGE, 1.5, "Invalid value"),
        (MAX_AGE, True, "Invalid value"),
        (ACTIVATION, "5", None),
        (ACTIVATION, 5, None),
        (ACTIVATION, "0", None),
        (ACTIVATION, "-1", "must not be negative"),
        (ACTIVATION, "some", "quantities must match"),
        (ACTIVATION, True, "Invalid value"),
    ],
)
def test_rules_of_the_field_and_of_the_annotation(annotation, value, complaint):
    found = messages(validate_create(own(annotation.write(QUEUE, value)), GATES))
    warned = metric_fields_of_native(native(annotation, json.dumps({"queue": value})))
    if complaint is None:
        assert (found, warned) == ([], [])
        return
    assert found[0].startswith(f"spec.metrics[0].{annotation.path(QUEUE)}: ")
    assert complaint in found[0]
    (warning,) = warned
    assert warning.field == f"metadata.annotations[{annotation.name}]"
    assert CONSEQUENCES[annotation] in warning.message
    assert complaint in warning.message


@pytest.mark.parametrize(("annotation", "value"), FIELDS)
def test_kubernetes_own_kind_drops_the_field_and_validate_says_so(annotation, value):
    given = own(annotation.write(QUEUE, value))
    sent = given | {"apiVersion": "autoscaling/v2"}
    assert create_update.create(sent, GATES).stored["spec"]["metrics"] == [QUEUE]
    assert create_update.create(given, GATES).stored["spec"]["metrics"] == given["spec"]["metrics"]
    (warning,) = metric_fields_of_native(sent)
    assert warning.field == f"spec.metrics[0].{annotation.path(QUEUE)}"
    assert annotation.name in warning.message


@pytest.mark.parametrize(("annotation", "value"), FIELDS)
def test_annotations_say_the_same_and_back(annotation, value):
    given = own(
        *(ON_LOSS.write(metric, {"policy": "Ignore"}) for metric in (annotation.write(QUEUE, value), CPU))
    )
    moved = into_annotations(given)
    annotations = moved["metadata"]["annotations"]
    assert json.loads(annotations[annotation.name]) == {"queue": value}
    assert set(json.loads(annotations[ON_LOSS.name])) == {"queue", "cpu"}
    assert moved["spec"]["metrics"] == [QUEUE, CPU]
    assert into_fields(moved) == given


def test_pods_metrics_have_an_activation_and_resources_have_none():
    hits = {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    pods = ACTIVATION.write({"type": "Pods", "pods": hits}, "3")
    assert messages(validate_create(own(pods, QUEUE), GATES)) == []
    (warning,) = metric_fields_of_native(native(ACTIVATION, '{"cpu": "5"}'))
    assert warning.message.endswith("cpu is a Resource metric, which has no activation")


def test_an_activation_that_never_counts_is_warned_of():
    (warning,) = warnings_for(read(default(own(ACTIVATION.write(QUEUE, "5"), low=2))))
    assert warning.field == "spec.metrics[0].external.activation"
    assert warning.message == "has no effect with minReplicas 2: set minReplicas to 0"
    assert warnings_for(read(default(own(ACTIVATION.write(QUEUE, "5"))))) == []


def test_a_wrong_annotation_costs_the_others_nothing():
    annotations = {
        ON_LOSS.name: '{"queue": {"policy": "Guess"}}',
        MAX_AGE.name: '{"[1]": 60}',
        ACTIVATION.name: '{"queue": "5"}',
    }
    spec = apply_annotations(read(native(MAX_AGE, "{}")).spec, annotations)
    assert [metric.max_age_seconds for metric in spec.metrics] == [None, 60]
    assert [metric.on_loss for metric in spec.metrics] == [None, None]
    assert spec.metrics[0].external is not None
    assert spec.metrics[0].external.activation == Quantity.parse("5")


@pytest.mark.parametrize("annotation", [MAX_AGE, ON_LOSS], ids=["age", "loss"])
def test_one_annotation_is_enough_to_write_down_the_metric_that_a_server_adds(annotation):
    text = {MAX_AGE.name: '{"cpu": 60}', ON_LOSS.name: '{"cpu": {"policy": "Ignore"}}'}[annotation.name]
    sent = hpa({"annotations": {annotation.name: text}})
    moved = into_fields(sent)
    (metric,) = moved["spec"]["metrics"]
    assert metric["resource"]["name"] == "cpu"
    assert metric[annotation.field] == json.loads(text)["cpu"]
    assert "metrics" not in into_fields(hpa())["spec"]


@pytest.mark.parametrize("wrong", [MAX_AGE, ON_LOSS], ids=["age", "loss"])
def test_a_wrong_annotation_does_not_hide_the_other(wrong):
    texts = {MAX_AGE.name: '{"cpu": 60}', ON_LOSS.name: '{"cpu": {"policy": "Ignore"}}'} | {wrong.name: "{"}
    spec = apply_annotations(read(hpa(metrics=[QUEUE, CPU])).spec, texts)
    applied = [spec.metrics[1].max_age_seconds is not None, spec.metrics[1].on_loss is not None]
    assert applied == [wrong is ON_LOSS, wrong is MAX_AGE]
