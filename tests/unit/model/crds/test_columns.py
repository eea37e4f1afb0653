"""`kubectl get thpa` shows current value and target for every kind of metric."""

import pytest

from trimtab.lab.tables.tables import find_path
from trimtab.model.crds.hpa import HORIZONTAL_POD_AUTOSCALERS
from trimtab.model.hpa.types import SOURCE_FIELDS

PATHS = {column.name: column.path for column in HORIZONTAL_POD_AUTOSCALERS.columns}


def shown(hpa, column):
    """Return what a server prints, which is the first value that the path finds."""
    found = find_path(hpa, PATHS[column])
    return found[0] if found else None


def hpa(source, target, current):
    """Return an HPA with a metric of this source before a second one."""
    return {
        "spec": {
            "metrics": [
                {"type": "of any type", SOURCE_FIELDS[source]: {"name": "x", "target": target}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 99}}},
            ]
        },
        "status": {
            "currentMetrics": [
                {"type": "of any type", SOURCE_FIELDS[source]: {"name": "x", "current": current}}
                if current
                else {"type": ""},
                {"type": "Resource", "resource": {"name": "memory", "current": {"averageUtilization": 98}}},
            ]
        },
    }


@pytest.mark.parametrize("source", SOURCE_FIELDS)
@pytest.mark.parametrize(
    ("target", "current"),
    [
        ({"averageUtilization": 50}, {"averageValue": "225m", "averageUtilization": 45}),
        ({"averageValue": "30"}, {"averageValue": "26"}),
        ({"value": "30"}, {"value": "78"}),
    ],
    ids=["Utilization", "AverageValue", "Value"],
)
def test_every_kind_of_metric_shows_its_value_and_its_target_in_one_unit(source, target, current):
    """Only utilizations of Resource metrics had a column, without their target."""
    unit = next(iter(target))
    found = hpa(source, {"type": "of any type", **target}, current)
    assert shown(found, "Current") == current[unit]
    assert shown(found, "Target") == target[unit]


@pytest.mark.parametrize("source", SOURCE_FIELDS)
def test_the_value_of_another_metric_is_not_shown_beside_the_target(source):
    """The first metric cannot be read, and the second can."""
    found = hpa(source, {"value": "30"}, {})
    assert shown(found, "Current") is None
    assert shown(found, "Target") == "30"


def test_an_hpa_that_is_not_decided_yet_has_a_target_only():
    found = hpa("External", {"value": "30"}, {}) | {"status": {}}
    assert shown(found, "Current") is None
    assert shown(found, "Target") == "30"
