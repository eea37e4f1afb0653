"""`maxAgeSeconds`: its rules, and the annotation that carries it on native objects."""

import json
from typing import Any

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, messages
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import create_update, metric_fields_of_native, read, validate_create
from trimtab.model.hpa.metric_annotations import (
    MAX_AGE,
    ON_LOSS,
    apply_annotations,
    into_annotations,
    into_fields,
)

GATES = FeatureGates()
OWN = "autoscaling.trimtab.dev/v2"


def own(*ages: Any, **fields: Any) -> Any:
    metrics = [
        {**metric, **fields} | ({} if age is None else {"maxAgeSeconds": age})
        for metric, age in zip([QUEUE, CPU], ages, strict=False)
    ]
    return hpa({"resourceVersion": ""}, version=OWN, metrics=metrics)


def native(text: str) -> Any:
    return hpa({"annotations": {MAX_AGE.name: text}, "resourceVersion": ""}, metrics=[QUEUE, CPU])


@pytest.mark.parametrize(
    ("age", "complaint"),
    [
        (1, None),
        (86_400, None),
        (0, "must be between 1 and 86400"),
        (-5, "must be between 1 and 86400"),
        (86_401, "must be between 1 and 86400"),
        ("5m", "Invalid value"),
        (1.5, "Invalid value"),
        (True, "Invalid value"),
    ],
)
def test_rules_of_the_field_and_of_the_annotation(age, complaint):
    found = messages(validate_create(own(age), GATES))
    warned = metric_fields_of_native(native(json.dumps({"queue": age})))
    if complaint is None:
        assert (found, warned) == ([], [])
        return
    assert found[0].startswith("spec.metrics[0].maxAgeSeconds: ")
    assert complaint in found[0]
    (warning,) = warned
    assert warning.field == f"metadata.annotations[{MAX_AGE.name}]"
    assert "is ignored, so the operator's limits hold for every metric: queue: " in warning.message
    assert complaint in warning.message


def test_kubernetes_own_kind_drops_the_field_and_validate_says_so():
    sent = own(600) | {"apiVersion": "autoscaling/v2"}
    assert create_update.create(sent, GATES).stored["spec"]["metrics"] == [QUEUE]
    assert create_update.create(own(600), GATES).stored["spec"]["metrics"][0]["maxAgeSeconds"] == 600
    (warning,) = metric_fields_of_native(sent)
    assert warning.field == "spec.metrics[0].maxAgeSeconds"
    assert MAX_AGE.name in warning.message


def test_annotations_say_the_same_and_back():
    given = own(600, None, onLoss={"policy": "Ignore"})
    moved = into_annotations(given)
    annotations = moved["metadata"]["annotations"]
    assert json.loads(annotations[MAX_AGE.name]) == {"queue": 600}
    assert set(json.loads(annotations[ON_LOSS.name])) == {"queue", "cpu"}
    assert moved["spec"]["metrics"] == [QUEUE, CPU]
    assert into_fields(moved) == given


def test_a_wrong_annotation_costs_the_other_nothing():
    annotations = {ON_LOSS.name: '{"queue": {"policy": "Guess"}}', MAX_AGE.name: '{"[1]": 60}'}
    spec = apply_annotations(read(native("{}")).spec, annotations)
    assert [metric.max_age_seconds for metric in spec.metrics] == [None, 60]
    assert [metric.on_loss for metric in spec.metrics] == [None, None]


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
