"""Defaults that an API server fills into an HPA before it validates it.

They are filled into JSON, since the typed value cannot distinguish `policies: []` from absent `policies`, and only
absent ones get the default.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.hpa.metric_fields import default_loss
from trimtab.model.json.wire import Json

DEFAULT_MIN_REPLICAS = 1
DEFAULT_CPU_UTILIZATION = 80

_SCALE_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
# No window: the controller's own setting fills it in when it decides.
_SCALE_DOWN: Json = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def default(data: Mapping[str, Any]) -> Json:
    """Return an autoscaling/v2 object with its defaults filled in."""
    spec = dict(data.get("spec") or {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = DEFAULT_MIN_REPLICAS
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]
    elif any(metric.get("onLoss") for metric in spec["metrics"]):
        spec["metrics"] = [
            {**metric, "onLoss": default_loss(metric["onLoss"])} if metric.get("onLoss") else metric
            for metric in spec["metrics"]
        ]
    return {**data, "spec": with_default_behavior(spec)}


def default_v1(data: Mapping[str, Any]) -> Json:
    """Return an autoscaling/v1 object with its defaults, except the CPU target that conversion fills in."""
    spec = dict(data.get("spec") or {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = DEFAULT_MIN_REPLICAS
    return {**data, "spec": spec}


def with_default_behavior(spec: Mapping[str, Any]) -> Json:
    """Return a spec whose behavior, if it has one, is complete.

    A spec without `behavior` follows other rules than the defaults of a behavior: the controller's own window, and growth
    to the larger of 4 and twice the replicas per sync.
    """
    behavior = spec.get("behavior")
    return dict(spec) if behavior is None else {**spec, "behavior": default_behavior(behavior)}


def default_behavior(behavior: Mapping[str, Any]) -> Json:
    """Return a behavior with both directions complete."""
    return {
        **behavior,
        "scaleUp": _filled(behavior.get("scaleUp"), _SCALE_UP),
        "scaleDown": _filled(behavior.get("scaleDown"), _SCALE_DOWN),
    }


def cpu_utilization_metric(percent: int) -> Json:
    """Return the metric that an HPA without metrics scales on."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _filled(rules: Mapping[str, Any] | None, defaults: Json) -> Json:
    given = {name: value for name, value in (rules or {}).items() if value is not None}
    return {**defaults, "policies": [dict(policy) for policy in defaults["policies"]], **given}
