"""What an API server says about replicas, target, metrics and behavior (SPEC-V1, TOL-U1, Z-I4)."""

from typing import Any

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, messages, policy
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import validate_create

ON = FeatureGates.parse("AllAlpha=true")
OFF = FeatureGates(hpa_scale_to_zero=False)

TO_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


def metric(kind: Any, **source: Any) -> Any:
    return {"type": kind, kind[0].lower() + kind[1:]: source}


def external(name: Any = "queue", **target: Any) -> Any:
    return metric("External", metric={"name": name}, target=target)


@pytest.mark.parametrize(
    ("spec", "gates", "want"),
    [
        pytest.param({}, OFF, [], id="min omitted is 1"),
        pytest.param(
            {"minReplicas": 0, "metrics": [CPU]},
            ON,
            [f"spec.metrics: Forbidden: {TO_ZERO}"],
            id="Z-I4 CPU alone cannot scale to zero",
        ),
        pytest.param(
            {"minReplicas": 0, "metrics": [QUEUE]},
            OFF,
            ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
            id="Z-I4 zero needs the gate",
        ),
        pytest.param(
            {"minReplicas": 0, "metrics": [QUEUE]}, ON, [], id="zero with an External metric is fine"
        ),
        pytest.param({"minReplicas": 0, "metrics": [CPU, QUEUE]}, ON, [], id="one waking metric is enough"),
        pytest.param(
            {"minReplicas": -1},
            ON,
            ["spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative is never allowed, and the gate shows in the bound",
        ),
        pytest.param(
            {"maxReplicas": 0, "minReplicas": 1},
            OFF,
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            ],
            id="max 0 is missing and too small",
        ),
        pytest.param(
            {"maxReplicas": -2, "minReplicas": -3},
            OFF,
            [
                "spec.minReplicas: Invalid value: -3: must be greater than or equal to 1",
                "spec.maxReplicas: Invalid value: -2: must be greater than or equal to 1",
            ],
            id="negative max",
        ),
        pytest.param(
            {"maxReplicas": 2, "minReplicas": 3},
            OFF,
            ["spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
            id="max below min",
        ),
    ],
)
def test_replicas(spec, gates, want):
    assert messages(validate_create(hpa(**spec), gates)) == want


@pytest.mark.parametrize(
    ("ref", "want"),
    [
        pytest.param(
            {"kind": "ReplicationController", "name": "web"}, [], id="the core group needs no apiVersion"
        ),
        pytest.param(
            {"kind": "Deployment", "name": "web"},
            ['apiVersion: Invalid value: "": apiVersion must specify API group'],
            id="other kinds need a group",
        ),
        pytest.param(
            {"apiVersion": "a/b/c", "kind": "Deployment", "name": "web"},
            ['apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
            id="an apiVersion has one slash",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "..", "name": "a/b%"},
            [
                "kind: Invalid value: \"..\": may not be '..'",
                "name: Invalid value: \"a/b%\": may not contain '/'",
                "name: Invalid value: \"a/b%\": may not contain '%'",
            ],
            id="kind and name stand in a path",
        ),
        pytest.param(
            {"apiVersion": "apps/v1"},
            ["kind: Required value", "name: Required value"],
            id="kind and name are needed",
        ),
    ],
)
def test_scale_target_ref(ref, want):
    errors = validate_create(hpa(scaleTargetRef=ref), OFF)
    assert messages(errors) == [f"spec.scaleTargetRef.{line}" for line in want]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(CPU, [], id="CPU utilization"),
        pytest.param(QUEUE, [], id="External per pod"),
        pytest.param(
            {"type": "Cheddar"},
            [
                (
                    'type: Unsupported value: "Cheddar": supported values: '
                    '"ContainerResource", "External", "Object", "Pods", "Resource"'
                )
            ]
            * 2,
            id="SPEC-V1 an unknown type is said twice, as upstream does",
        ),
        pytest.param(
            {"type": "Pods"},
            ["pods: Required value: must populate information for the given metric source"],
            id="SPEC-V1 the source is missing",
        ),
        pytest.param(
            {**CPU, **QUEUE, "type": "Resource"},
            ["external: Forbidden: must populate the given metric source only"],
            id="SPEC-V1 a second source",
        ),
        pytest.param(
            external("", type="Value", value="1"),
            ["external.metric.name: Required value: must specify a metric name"],
            id="SPEC-V1 a metric needs a name",
        ),
        pytest.param(
            external("a/b", type="Value", value="1"),
            ["external.metric.name: Invalid value: \"a/b\": may not contain '/'"],
            id="SPEC-V1 a metric's name stands in a path",
        ),
        pytest.param(
            external(type="Value"),
            [
                (
                    "external.target.averageValue: Required value: "
                    "must set either a target value for metric or a per-pod target"
                )
            ],
            id="SPEC-V1 External needs a target",
        ),
        pytest.param(
            external(type="Value", value="1", averageValue="1"),
            [
                (
                    "external.target.value: Forbidden: "
                    "may not set both a target value for metric and a per-pod target"
                )
            ],
            id="SPEC-V1 External takes one target",
        ),
        pytest.param(
            external(type="Value", averageValue="1"),
            [],
            id="External with type Value and averageValue passes (4.3-7)",
        ),
        pytest.param(
            external(type="Value", value="0"),
            ['external.target.value: Invalid value: "0": must be positive'],
            id="SPEC-V1 a target of zero",
        ),
        pytest.param(
            metric(
                "Object",
                describedObject={"kind": "Service", "name": "web"},
                metric={"name": "rps"},
                target={"type": "Value", "value": "1", "averageValue": "1"},
            ),
            [],
            id="SPEC-V1 Object may have both targets and needs no group",
        ),
        pytest.param(
            metric(
                "Object",
                describedObject={"kind": "Service", "name": "web"},
                metric={"name": "rps"},
                target={"type": "Value"},
            ),
            ["object.target.averageValue: Required value: must set either a target value or averageValue"],
            id="SPEC-V1 Object needs a target",
        ),
        pytest.param(
            metric("Pods", metric={"name": "rps"}, target={"type": "AverageValue"}),
            ["pods.target.averageValue: Required value: must specify a positive target averageValue"],
            id="SPEC-V1 Pods needs averageValue",
        ),
        pytest.param(
            metric("Resource", name="cpu", target={"type": "Utilization", "averageUtilization": 0}),
            ["resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
            id="SPEC-V1 utilization of zero",
        ),
        pytest.param(
            metric(
                "Resource",
                name="cpu",
                target={"type": "Sometimes", "averageValue": "1", "averageUtilization": 1},
            ),
            [
                'resource.target.type: Invalid value: "Sometimes": must be either Utilization, Value, or AverageValue',
                "resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
            ],
            id="SPEC-V1 unknown target type and two targets",
        ),
        pytest.param(
            metric("ContainerResource", name="cpu", target={"type": "Utilization", "averageUtilization": 5}),
            ["containerResource.container: Required value: must specify a container"],
            id="SPEC-V1 a container is needed",
        ),
        pytest.param(
            metric(
                "ContainerResource",
                name="pods",
                container="a.b",
                target={"type": "Utilization", "averageUtilization": 5},
            ),
            [
                'containerResource.name: Invalid value: "pods": must be a standard resource for containers',
                'containerResource.container: Invalid value: "a.b": must not contain dots',
            ],
            id="SPEC-V1 a quota resource is not a container's, and containers have no dots",
        ),
        pytest.param(
            metric(
                "ContainerResource",
                name="requests.example.com/gpu",
                container="app",
                target={"type": "Utilization", "averageUtilization": 5},
            ),
            [
                (
                    'containerResource.name: Invalid value: "requests.example.com/gpu": '
                    "doesn't follow extended resource name standard"
                )
            ],
            id="SPEC-V1 an extended resource must not look like a quota",
        ),
    ],
)
def test_metrics(given, want):
    errors = validate_create(hpa(metrics=[given]), OFF)
    assert messages(errors) == [f"spec.metrics[0].{line}" for line in want]


def test_a_selector_that_makes_no_sense_is_accepted_as_upstream_does():
    selector = {"matchExpressions": [{"key": "a", "operator": "Resembles"}]}
    queue = metric(
        "External", metric={"name": "q", "selector": selector}, target={"type": "Value", "value": 1}
    )
    assert validate_create(hpa(metrics=[queue]), OFF) == []


@pytest.mark.parametrize(
    ("tolerance", "want"),
    [
        pytest.param("0", [], id="TOL-U1 zero"),
        pytest.param("0.1", [], id="TOL-U1 a tenth"),
        pytest.param(0.05, [], id="TOL-U1 a JSON number"),
        pytest.param("10", [], id="TOL-U1 ten"),
        pytest.param("1m", [], id="TOL-U1 a thousandth"),
        pytest.param("-0.001", ["-1m"], id="TOL-U1 barely negative"),
        pytest.param("-10m", ["-10m"], id="TOL-U1 negative"),
    ],
)
def test_tolerance(tolerance, want):
    errors = validate_create(hpa(behavior={"scaleUp": {"tolerance": tolerance}}), OFF)
    assert messages(errors) == [
        f'spec.behavior.scaleUp.tolerance: Invalid value: "{shown}": must be greater than or equal to 0'
        for shown in want
    ]


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        pytest.param({}, [], id="an empty block is filled in"),
        pytest.param(
            {"policies": []}, ["policies: Required value: must specify at least one Policy"], id="no policies"
        ),
        pytest.param(
            {"policies": [], "tolerance": "0.1"},
            ["policies: Required value: must specify at least one Policy"],
            id="a tolerance does not excuse missing policies",
        ),
        pytest.param(
            {"stabilizationWindowSeconds": 3601},
            ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
            id="a window is an hour at most",
        ),
        pytest.param(
            {"stabilizationWindowSeconds": -1},
            ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
            id="a window is not negative",
        ),
        pytest.param(
            {"selectPolicy": "max"},
            ['selectPolicy: Unsupported value: "max": supported values: "Disabled", "Max", "Min"'],
            id="case matters",
        ),
        pytest.param(
            {"policies": [policy("Half", 0, 1801)]},
            [
                'policies[0].type: Unsupported value: "Half": supported values: "Percent", "Pods"',
                "policies[0].value: Invalid value: 0: must be greater than zero",
                "policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ],
            id="everything wrong with a policy is said",
        ),
        pytest.param(
            {"policies": [policy(period=0)]},
            ["policies[0].periodSeconds: Invalid value: 0: must be greater than zero"],
            id="a period is positive",
        ),
    ],
)
def test_scaling_rules(rules, want):
    errors = validate_create(hpa(behavior={"scaleDown": rules}), OFF)
    assert messages(errors) == [f"spec.behavior.scaleDown.{line}" for line in want]


def test_metadata_is_checked_too():
    errors = validate_create(hpa(metadata={"name": "Web", "namespace": "a.b"}), OFF)
    assert [error.field for error in errors] == ["metadata.name", "metadata.namespace"]


def test_a_manifest_may_leave_the_namespace_to_the_request_and_the_name_to_the_server():
    manifest = hpa(metadata={"name": "", "namespace": "", "generateName": "web-"})
    assert validate_create(manifest, OFF, namespace="default") == []
    assert messages(validate_create(manifest, OFF)) == ["metadata.namespace: Required value"]
