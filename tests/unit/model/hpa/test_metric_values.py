"""Values and targets of metrics as text, in one unit, for every kind of metric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def name_in(source):
    return {"name": "load"} if "esource" in source else {"metric": {"name": "load"}}


def hpa(source, target, *statuses):
    return hpa_of([{"type": source, source: {**name_in(source), "target": target}}], statuses)


def hpa_of(metrics, statuses):
    return wire.convert(
        {"spec": {"metrics": list(metrics)}, "status": {"currentMetrics": list(statuses)}},
        HorizontalPodAutoscaler,
    )


@pytest.mark.parametrize("source", SOURCE_FIELDS.values())
@pytest.mark.parametrize(("target", "current", "text"), NUMBERS)
def test_a_value_is_in_the_unit_of_its_target(source, target, current, text):
    status = {"type": source, source: {**name_in(source), "current": current}}
    (reading,) = metric_readings(hpa(source, target, status))
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


def queue(name, **labels):
    return {"name": name, "selector": {"matchLabels": labels}}


UNLIKE = [
    ("Resource", "resource", {"name": "cpu"}),
    ("Resource", "resource", {"name": "memory"}),
    ("ContainerResource", "containerResource", {"name": "cpu", "container": "web"}),
    ("ContainerResource", "containerResource", {"name": "cpu", "container": "proxy"}),
    ("Pods", "pods", {"metric": {"name": "load"}}),
    ("External", "external", {"metric": {"name": "load"}}),
    ("External", "external", {"metric": queue("load", queue="mail")}),
    ("External", "external", {"metric": queue("load", queue="print")}),
    ("Object", "object", {"metric": {"name": "load"}, "describedObject": {"kind": "Service", "name": "a"}}),
    ("Object", "object", {"metric": {"name": "load"}, "describedObject": {"kind": "Service", "name": "b"}}),
]
"""Metrics that differ from another in one part of what identifies them."""


def spec_of(index):
    kind, field, names = UNLIKE[index]
    return {"type": kind, field: {**names, "target": {"averageValue": "30"}}}


def status_of(index):
    kind, field, names = UNLIKE[index]
    return {"type": kind, field: {**names, "current": {"averageValue": str(100 + index)}}}


@given(st.permutations(range(len(UNLIKE))), st.permutations(range(len(UNLIKE))), st.integers(0, len(UNLIKE)))
def test_no_metric_shows_the_value_of_another(specs, statuses, read):
    """A metric that failed had no entry, and showed the value of the metric behind it."""
    found = hpa_of(map(spec_of, specs), map(status_of, statuses[:read]))
    want = [str(100 + index) if index in statuses[:read] else UNKNOWN for index in specs]
    assert [reading.current for reading in metric_readings(found)] == want


def test_two_targets_for_one_metric_have_the_value_at_their_place():
    """The second entry is of an AverageValue target, and has no utilization."""
    target, current = {"averageUtilization": 50}, {"averageValue": "225m"}
    cpu = [{"type": "Resource", "resource": {"name": "cpu", "target": one}} for one in (current, target)]
    values = [current, current | {"averageUtilization": 45}]
    statuses = [{"type": "Resource", "resource": {"name": "cpu", "current": value}} for value in values]
    assert [reading.current for reading in metric_readings(hpa_of(cpu, statuses))] == ["225m", "45%"]
