"""A workload of half-core pods, and load in whole cores by the minute."""

from trimtab.library.simulator import Candidate, Model, read_trace
from trimtab.model import hpa as rules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire

GATES = FeatureGates(hpa_selection_strategy=True, hpa_configurable_tolerance=True, hpa_scale_to_zero=True)
HALF_CORE = Model(requests={"cpu": 500})
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def queue(average="10", selector=None):
    metric = {"name": "queue_length"} | ({"selector": {"matchLabels": selector}} if selector else {})
    return {
        "type": "External",
        "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": average}},
    }


def candidate(*metrics, name="web", **spec):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 20, "metrics": list(metrics or [CPU])}
    data = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": whole | spec,
    }
    return Candidate(name, wire.convert(rules.default(data), HorizontalPodAutoscaler), gates=GATES)


def minutes(*values, column="cpu"):
    """Make a trace with one value per minute, the last one held for a minute."""
    rows = [f"{index * 60},{value}" for index, value in enumerate([*values, values[-1]])]
    return read_trace([f"time,{column}", *rows], "load.csv")
