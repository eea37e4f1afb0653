"""`onLoss`: its rules, its defaults, and the annotation that carries it on native objects."""

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
from trimtab.model.hpa.metric_annotations import ON_LOSS, MetricAnnotationError

GATES = FeatureGates()
ANNOTATION = ON_LOSS.name
OWN = "autoscaling.trimtab.dev/v2"


def own(*losses: Any, **spec: Any) -> Any:
    """Build our kind with a queue, and CPU after it, that have these policies."""
    metrics = [
        metric if loss is None else {**metric, "onLoss": loss}
        for metric, loss in zip([QUEUE, CPU], losses, strict=False)
    ]
    return hpa({"resourceVersion": ""}, version=OWN, metrics=metrics, **spec)


def native(annotation: Any, metrics: Any = (QUEUE, CPU)) -> Any:
    text = annotation if isinstance(annotation, str) else json.dumps(annotation)
    return hpa({"annotations": {ANNOTATION: text}, "resourceVersion": ""}, metrics=list(metrics))


@pytest.mark.parametrize(
    ("loss", "complaint"),
    [
        pytest.param({"policy": "Hold"}, None, id="Hold"),
        pytest.param({"policy": "Ignore"}, None, id="Ignore"),
        pytest.param({"policy": "LastGood"}, None, id="LastGood with the default age"),
        pytest.param({"policy": "LastGood", "maxAgeSeconds": 3600}, None, id="the longest age"),
        pytest.param({"policy": "Replicas", "replicas": 3}, None, id="Replicas"),
        pytest.param({}, "policy: Required value: must be one of Hold, Ignore", id="no policy"),
        pytest.param({"policy": "hold"}, 'policy: Unsupported value: "hold"', id="another case"),
        pytest.param({"policy": "LastGood", "maxAgeSeconds": 0}, "must be between 1 and 3600", id="no time"),
        pytest.param(
            {"policy": "LastGood", "maxAgeSeconds": 3601}, "must be between 1 and 3600", id="too long"
        ),
        pytest.param(
            {"policy": "Ignore", "maxAgeSeconds": 5}, "may only be set with policy LastGood", id="a stray age"
        ),
        pytest.param({"policy": "Replicas"}, "replicas: Required value", id="Replicas without a number"),
        pytest.param({"policy": "Replicas", "replicas": 0}, "greater than or equal to 1", id="never zero"),
        pytest.param(
            {"policy": "Hold", "replicas": 1}, "may only be set with policy Replicas", id="a stray size"
        ),
        pytest.param({"policy": "Replicas", "replicas": "3"}, "onLoss.replicas: Invalid value", id="text"),
    ],
)
def test_rules(loss, complaint):
    found = messages(validate_create(own(loss), GATES))
    if complaint is None:
        assert found == []
    else:
        assert [complaint in message for message in found] == [True]
        assert found[0].startswith("spec.metrics[0].onLoss")


def test_only_the_age_has_a_default():
    metrics = default(own({"policy": "LastGood"}, {"policy": "Hold"}))["spec"]["metrics"]
    assert [metric["onLoss"] for metric in metrics] == [
        {"policy": "LastGood", "maxAgeSeconds": 300},
        {"policy": "Hold"},
    ]


def test_kubernetes_own_kind_drops_the_field_and_validate_says_so():
    sent = own({"policy": "Ignore"}) | {"apiVersion": "autoscaling/v2"}
    assert create_update.create(sent, GATES).stored["spec"]["metrics"] == [QUEUE]
    (warning,) = metric_fields_of_native(sent)
    assert warning.field == "spec.metrics[0].onLoss"
    assert ANNOTATION in warning.message


def test_our_kind_keeps_it():
    stored = create_update.create(own({"policy": "Ignore"}), GATES).stored
    assert stored["spec"]["metrics"][0]["onLoss"] == {"policy": "Ignore"}


@pytest.mark.parametrize(
    ("losses", "annotation"),
    [
        ([{"policy": "Ignore"}, None], {"queue": {"policy": "Ignore"}}),
        ([None, {"policy": "Replicas", "replicas": 2}], {"cpu": {"policy": "Replicas", "replicas": 2}}),
    ],
)
def test_an_annotation_says_the_same_and_back(losses, annotation):
    given = own(*losses)
    moved = ON_LOSS.into_annotation(given)
    assert json.loads(moved["metadata"]["annotations"][ANNOTATION]) == annotation
    assert moved["spec"]["metrics"] == [QUEUE, CPU][: len(losses)]
    assert ON_LOSS.into_field(moved) == given


def test_metrics_of_one_name_are_told_apart_by_their_place():
    twice = own({"policy": "Ignore"}, None)
    twice["spec"]["metrics"][1] = {**QUEUE, "onLoss": {"policy": "Hold"}}
    moved = ON_LOSS.into_annotation(twice)
    assert json.loads(moved["metadata"]["annotations"][ANNOTATION]) == {
        "[0]": {"policy": "Ignore"},
        "[1]": {"policy": "Hold"},
    }
    assert ON_LOSS.into_field(moved) == twice


def test_without_a_policy_nothing_is_annotated():
    assert ON_LOSS.into_annotation(own(None, None)) == own(None, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is no JSON"),
        ("[]", "must be an object from metric names to policies, not a list"),
        ('{"quue": {"policy": "Ignore"}}', "'quue' is no metric of the spec; its metrics are queue, cpu"),
        ('{"[2]": {"policy": "Ignore"}}', "is no metric of the spec"),
        ('{"queue": "Ignore"}', "queue: Invalid value"),
        ('{"queue": {"policy": "Guess"}}', "queue.policy: Unsupported value"),
        ('{"queue": {"policy": "Ignore", "maxAge": "5m"}}', "unknown field"),
    ],
)
def test_an_annotation_that_is_wrong_says_why(text, complaint):
    with pytest.raises(MetricAnnotationError) as caught:
        ON_LOSS.parse_values(text, read(native("{}")).spec.metrics)
    assert complaint in str(caught.value)
    (warning,) = metric_fields_of_native(native(text))
    assert warning.field == f"metadata.annotations[{ANNOTATION}]"
    assert complaint in warning.message


def test_doubtful_policies_are_said():
    alone = hpa(version=OWN, metrics=[{**QUEUE, "onLoss": {"policy": "Ignore"}}])
    far = own({"policy": "Replicas", "replicas": 9}, None)
    assert [warning.field for warning in warnings_for(read(default(alone)))] == [
        "spec.metrics[0].onLoss.policy"
    ]
    assert [warning.field for warning in warnings_for(read(default(far)))] == [
        "spec.metrics[0].onLoss.replicas"
    ]
    assert warnings_for(read(default(own({"policy": "Ignore"}, {"policy": "Hold"})))) == []


def test_an_annotation_about_the_default_metric_is_not_warned_of():
    assert metric_fields_of_native(native({"cpu": {"policy": "Ignore"}}, metrics=())) == []
