"""What the API server fills in, and what it leaves alone."""

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, policy
from trimtab.model.hpa import default

UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [policy("Pods", 4, 15), policy("Percent", 100, 15)],
}
DOWN = {"selectPolicy": "Max", "policies": [policy("Percent", 100, 15)]}


def test_an_hpa_without_metrics_scales_on_80_percent_cpu_and_keeps_one_replica():
    spec = default(hpa())["spec"]
    target = {"type": "Utilization", "averageUtilization": 80}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert spec["minReplicas"] == 1
    assert "behavior" not in spec
    assert "selectionStrategy" not in spec


def test_what_is_given_stays():
    spec = default(hpa(minReplicas=0, metrics=[QUEUE]))["spec"]
    assert (spec["minReplicas"], spec["metrics"]) == (0, [QUEUE])


@pytest.mark.parametrize(
    ("behavior", "up", "down"),
    [
        pytest.param({}, UP, DOWN, id="an empty behavior is filled in both directions"),
        pytest.param(
            {"scaleUp": {"tolerance": "0.05"}}, {**UP, "tolerance": "50m"}, DOWN, id="a tolerance alone"
        ),
        pytest.param(
            {"scaleDown": {"policies": [policy()], "selectPolicy": None}},
            UP,
            {**DOWN, "policies": [policy()]},
            id="own policies replace the default ones",
        ),
        pytest.param(
            {"scaleDown": {"stabilizationWindowSeconds": 0}},
            UP,
            {**DOWN, "stabilizationWindowSeconds": 0},
            id="a window of zero is a choice",
        ),
    ],
)
def test_behavior(behavior, up, down):
    assert default(hpa(behavior=behavior))["spec"]["behavior"] == {"scaleUp": up, "scaleDown": down}


def test_defaults_are_not_shared_between_objects():
    first = default(hpa(behavior={}))
    first["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] = 99
    assert default(hpa(behavior={}))["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] == 4


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_a_loss_policy_gets_its_defaults_beside_a_metric_without_one(order):
    metrics = [CPU, {**QUEUE, "onLoss": {"policy": "LastGood"}}][::order]
    filled = default(hpa(metrics=metrics))["spec"]["metrics"][::order]
    assert filled == [CPU, {**QUEUE, "onLoss": {"policy": "LastGood", "maxAgeSeconds": 300}}]
