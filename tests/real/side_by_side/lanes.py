"""The workloads that both autoscalers drive: one per lane, each lane in a namespace of its own.

Half an hour passes in half a minute: what is 15 s in the trace is a quarter of a second here, and windows are shorter alike.
"""

from dataclasses import dataclass
from typing import Any

from tests.support.objects import cpu_metric, external_metric
from trimtab.cluster.resource import Json

LOAD = external_metric("load", average="100")


def policies(*rules: tuple[str, int, int]) -> Json:
    return {
        "policies": [{"type": kind, "value": value, "periodSeconds": each} for kind, value, each in rules]
    }


@dataclass(frozen=True)
class Lane:
    """A workload and its HPA."""

    name: str
    spec: dict[str, Any]
    replicas: int = 6
    pods: int = 0
    """Pods that there are all the time, because the moment at which the peer's cache has a new one is not known."""
    fails: bool = False


LANES = (
    Lane("plain", {"maxReplicas": 30, "metrics": [LOAD]}),
    Lane(
        "rates",
        {
            "maxReplicas": 30,
            "metrics": [LOAD],
            "behavior": {
                "scaleUp": policies(("Pods", 2, 3), ("Percent", 50, 5)) | {"selectPolicy": "Min"},
                "scaleDown": policies(("Pods", 3, 4)) | {"stabilizationWindowSeconds": 5},
            },
        },
    ),
    Lane(
        "tolerant",
        {
            "maxReplicas": 30,
            "metrics": [LOAD],
            "behavior": {
                "scaleUp": {"tolerance": "0.02", "stabilizationWindowSeconds": 2},
                "scaleDown": {"tolerance": "0.3", "stabilizationWindowSeconds": 0},
            },
        },
    ),
    Lane(
        "zero",
        {
            "minReplicas": 0,
            "maxReplicas": 30,
            "metrics": [LOAD],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 2}},
        },
    ),
    Lane("cpu", {"maxReplicas": 8, "metrics": [cpu_metric(80)]}, replicas=3, pods=8),
    Lane(
        "failing",
        {"maxReplicas": 30, "metrics": [LOAD, external_metric("steady", average="100")]},
        fails=True,
    ),
)
