"""Values and targets of metrics as text, in one unit, for every kind of metric."""

import pytest

from trimtab.model.hpa.metric_values import UNKNOWN, metric_readings
from trimtab.model.hpa.types import SOURCE_FIELDS, HorizontalPodAutoscaler
from trimtab.model.json import wire

NUMBERS = [
    pytest.param(
        {"averageUtilization": 50},
        {"averageValue": "225m", "averageUtilization": 45},
        "45%/50%",
        id="Utilization",
    ),
    pytest.param({"averageValue": "30"}, {"averageValue": "26"}, "26/30 (avg)", id="AverageValue"),
    pytest.param({"value": "30"}, {"value": "78500m"}, "78500m/30", id="Value"),
]


def hpa(source, target, *statuses):
    name = {"name": "load"} if "esource" in source else {"metric": {"name": "load"}}
    return wire.convert(
        {
            "spec": {"metrics": [{"type": source, source: {**name, "target": target}}]},
            "status": {"currentMetrics": list(statuses)},
        },
        HorizontalPodAutoscaler,
    )


@pytest.mark.parametrize("source", SOURCE_FIELDS.values())
@pytest.mark.parametrize(("target", "current", "text"), NUMBERS)
def test_a_value_is_in_the_unit_of_its_target(source, target, current, text):
    (reading,) = metric_readings(hpa(source, target, {"type": source, source: {"current": current}}))
    assert str(reading).strip() == f"load {text}"


@pytest.mark.parametrize("source", SOURCE_FIELDS.values())
@pytest.mark.parametrize(("target", "current", "text"), NUMBERS)
@pytest.mark.parametrize("statuses", [(), ({"type": ""},)], ids=["not read yet", "cannot be read"])
def test_a_value_that_is_not_there_is_unknown_beside_its_target(source, target, current, text, statuses):
    (reading,) = metric_readings(hpa(source, target, *statuses))
    assert reading.current == UNKNOWN
    assert text.endswith(f"/{reading.target}")


def test_a_metric_without_a_source_is_unknown():
    found = wire.convert({"spec": {"metrics": [{"type": "Moon"}]}}, HorizontalPodAutoscaler)
    assert [str(reading) for reading in metric_readings(found)] == [f"Moon {UNKNOWN}/{UNKNOWN}"]
