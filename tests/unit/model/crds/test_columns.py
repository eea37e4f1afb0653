"""`kubectl get thpa` shows values and targets of metrics and the reason as the operator writes them into the status."""

from trimtab.model.crds.hpa import HORIZONTAL_POD_AUTOSCALERS
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus
from trimtab.model.json import wire
from trimtab_lab.tables.tables import find_path

PATHS = {column.name: column.path for column in HORIZONTAL_POD_AUTOSCALERS.columns}


def test_the_targets_are_those_of_the_status():
    """A path finds a single value, so an HPA with two metrics showed the first of them, without its unit."""
    status = HorizontalPodAutoscalerStatus(targets="cpu: 45%/50%, jobs: 3/10 (avg)")
    assert find_path({"status": wire.to_builtins(status)}, PATHS["Targets"]) == [status.targets]


def test_the_reason_is_that_of_the_decision():
    """It was that of the condition ScalingActive: `ValidMetricFound` at the maximum, and none without the target."""
    status = HorizontalPodAutoscalerStatus(reason="FailedGetScale")
    assert find_path({"status": wire.to_builtins(status)}, PATHS["Reason"]) == ["FailedGetScale"]


def test_an_hpa_that_is_not_decided_yet_has_no_targets():
    assert find_path({"status": {}}, PATHS["Targets"]) == []
