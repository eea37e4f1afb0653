"""What is legal but surely not meant is said, with the field."""

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, policy
from trimtab.model.gates import FeatureGates
from trimtab.model.hpa import default, read, validate_create, warnings_for

GATES = FeatureGates.parse("AllAlpha=true")


def rps(**target):
    source = {
        "describedObject": {"kind": "Service", "name": "web"},
        "metric": {"name": "rps"},
        "target": target,
    }
    return {"type": "Object", "object": source}


def to_zero(**spec):
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
