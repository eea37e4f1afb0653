"""What is legal but surely not meant is said, with the field."""

from typing import Any

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, policy
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import default, ignored_annotations, read, to_v1, validate_create, warnings_for

GATES = FeatureGates.parse("AllAlpha=true")


def rps(**target: Any) -> Any:
    source = {
        "describedObject": {"kind": "Service", "name": "web"},
        "metric": {"name": "rps"},
        "target": target,
    }
    return {"type": "Object", "object": source}


def to_zero(**spec: Any) -> Any:
    return hpa(minReplicas=0, metrics=[QUEUE], **spec)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        pytest.param(hpa(minReplicas=1, metrics=[CPU]), [], id="an ordinary HPA"),
        pytest.param(to_zero(), [], id="an ordinary HPA that scales to zero"),
        pytest.param(to_zero(behavior={}), [], id="default rules leave zero"),
        pytest.param(
            to_zero(behavior={"scaleDown": {"tolerance": "1"}}),
            ["spec.behavior.scaleDown.tolerance"],
            id="a scaleDown tolerance of 1 never reaches zero",
        ),
        pytest.param(to_zero(behavior={"scaleDown": {"tolerance": "0.9"}}), [], id="0.9 does"),
        pytest.param(
            hpa(behavior={"scaleDown": {"tolerance": "2"}}),
            [],
            id="without zero a large tolerance is a choice",
        ),
        pytest.param(
            to_zero(behavior={"scaleUp": {"policies": [policy("Percent", 100)]}}),
            ["spec.behavior.scaleUp.policies"],
            id="Percent policies alone never leave zero",
        ),
        pytest.param(
            to_zero(behavior={"scaleUp": {"policies": [policy("Percent"), policy("Pods")]}}),
            [],
            id="a Pods policy does",
        ),
        pytest.param(
            to_zero(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
            ["spec.behavior.scaleUp.selectPolicy"],
            id="scaling up disabled at zero",
        ),
        pytest.param(
            to_zero(behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
            ["spec.behavior.scaleDown.selectPolicy"],
            id="scaling down disabled, zero wanted",
        ),
        pytest.param(
            hpa(minReplicas=0, metrics=[QUEUE, CPU]), ["spec.metrics[1]"], id="CPU keeps a pod alive"
        ),
        pytest.param(hpa(minReplicas=5), ["spec.maxReplicas"], id="nothing to scale"),
        pytest.param(
            hpa(metrics=[rps(type="Value", averageValue="1")]),
            ["spec.metrics[0].object.target.type"],
            id="an Object target without the number its type names",
        ),
        pytest.param(
            hpa(metrics=[rps(type="Value", value="1", averageValue="1")]),
            ["spec.metrics[0].object.target.averageValue"],
            id="an Object target with a number too many",
        ),
        pytest.param(
            hpa(
                metrics=[
                    {
                        **QUEUE,
                        "external": {**QUEUE["external"], "target": {"type": "Value", "averageValue": "1"}},
                    }
                ]
            ),
            ["spec.metrics[0].external.target.type"],
            id="External says Value and means AverageValue",
        ),
    ],
)
def test_warnings(given, fields):
    assert validate_create(given, GATES) == []
    found = warnings_for(read(default(given)))
    assert [warning.field for warning in found] == fields
    assert all(warning.message for warning in found)


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        pytest.param("metrics", "[{", True, id="broken JSON"),
        pytest.param("metrics", '[{"type": 3}]', True, id="JSON of another shape"),
        pytest.param("behavior", '{"ScaleUp": []}', True, id="a behavior of another shape"),
        pytest.param("behavior", '{"ScaleUp":null,"ScaleDown":null}', False, id="a behavior without rules"),
        pytest.param("conditions", "[]", False, id="an empty list"),
        pytest.param("conditions", "", False, id="an empty text says nothing"),
    ],
)
def test_v1_annotations_that_are_lost_are_named(name, text, is_named):
    name = f"autoscaling.alpha.kubernetes.io/{name}"
    data = hpa(version="autoscaling/v1", metadata={"annotations": {name: text}})
    found = [warning.field for warning in ignored_annotations(data)]
    assert found == ([f"metadata.annotations[{name}]"] if is_named else [])


def test_our_own_v1_has_nothing_to_ignore():
    assert ignored_annotations(to_v1(hpa(metrics=[QUEUE, CPU], behavior={}))) == []
    assert (
        ignored_annotations(hpa(metadata={"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "x"}}))
        == []
    )


SOURCES: dict[str, Any] = {
    "external": {"metric": {"name": "q"}, "target": {"type": "Value", "averageValue": "1"}},
    "object": {
        "metric": {"name": "q"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
        "target": {"type": "Value", "averageValue": "1"},
    },
}


@pytest.mark.parametrize("source", ["external", "object"])
@pytest.mark.parametrize("kind", ["External", "Object"])
def test_only_the_source_that_the_type_names_is_warned_of(source, kind):
    metric = {"type": kind, source: SOURCES[source]}
    found = [warning.field for warning in warnings_for(read(hpa(metrics=[metric])))]
    assert any(".target" in field for field in found) is (source == kind.lower())
