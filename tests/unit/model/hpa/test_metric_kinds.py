"""Names, values and targets of metrics as text, for every type of metric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.hpa.metric_kinds import (
    KINDS,
    UNKNOWN,
    label_of,
    metric_readings,
    name_of,
    plain_names,
    targets_text,
)
from trimtab.model.hpa.types import HorizontalPodAutoscaler, MetricSpec
from trimtab.model.json import wire

SOURCES = [(kind.type_name, kind.field) for kind in KINDS.values()]
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


def hpa(kind, source, target, *statuses):
    return hpa_of([{"type": kind, source: {**name_in(source), "target": target}}], statuses)


def hpa_of(metrics, statuses):
    return wire.convert(
        {"spec": {"metrics": list(metrics)}, "status": {"currentMetrics": list(statuses)}},
        HorizontalPodAutoscaler,
    )


@pytest.mark.parametrize(("kind", "source"), SOURCES)
@pytest.mark.parametrize(("target", "current", "text"), NUMBERS)
def test_a_value_is_in_the_unit_of_its_target(kind, source, target, current, text):
    status = {"type": kind, source: {**name_in(source), "current": current}}
    (reading,) = metric_readings(hpa(kind, source, target, status))
    assert str(reading).strip() == f"load {text}"


@pytest.mark.parametrize(("kind", "source"), SOURCES)
@pytest.mark.parametrize(("target", "current", "text"), NUMBERS)
@pytest.mark.parametrize("statuses", [(), ({"type": ""},)], ids=["not read yet", "cannot be read"])
def test_a_value_that_is_not_there_is_unknown_beside_its_target(
    kind, source, target, current, text, statuses
):
    (reading,) = metric_readings(hpa(kind, source, target, *statuses))
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


@pytest.mark.parametrize(
    ("source", "target", "current", "text"),
    [
        pytest.param("resource", "256Mi", "268435456", "256Mi/256Mi (avg)", id="memory"),
        pytest.param("resource", "268435456", "134217728", "128Mi/256Mi (avg)", id="memory written in bytes"),
        pytest.param("containerResource", "1Gi", "1610612736", "1.5Gi/1Gi (avg)", id="memory of a container"),
        pytest.param("pods", "200Mi", "209715200", "200Mi/200Mi (avg)", id="a metric with a binary target"),
        pytest.param(
            "pods", "200M", "209715200", "209715200/200M (avg)", id="a metric with a decimal target"
        ),
        pytest.param("resource", "1938Mi", "965482455", "921Mi/1938Mi (avg)", id="a target as it is written"),
        pytest.param("resource", "200M", "100M", "100M/200M (avg)", id="memory in decimal units"),
        pytest.param("resource", "1Ki", "800", "800/1Ki (avg)", id="fewer than 1 Ki"),
    ],
)
def test_bytes_are_written_as_in_manifests(source, target, current, text):
    names = {"name": "memory"} if "esource" in source else {"metric": {"name": "heap"}}
    kind = f"{source[:1].upper()}{source[1:]}"
    spec = {"type": kind, source: {**names, "target": {"averageValue": target}}}
    status = {"type": kind, source: {**names, "current": {"averageValue": current}}}
    (reading,) = metric_readings(hpa_of([spec], [status]))
    assert f"{reading.current}/{reading.target}" == text


def cpu(current=45):
    spec = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}
    status = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current}}}
    return spec, status


def series(name, **labels):
    metric = queue(name, **labels)
    spec = {"type": "External", "external": {"metric": metric, "target": {"averageValue": "10"}}}
    return spec, {"type": "External", "external": {"metric": metric, "current": {"averageValue": "3"}}}


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        pytest.param([], "", id="no metric"),
        pytest.param([cpu()], "cpu: 45%/50%", id="one"),
        pytest.param(
            [cpu(), series("jobs", queue="a")], "cpu: 45%/50%, jobs: 3/10 (avg)", id="two, without selectors"
        ),
        pytest.param(
            [series("jobs", queue="a"), series("jobs", queue="b")],
            'jobs{queue="a"}: 3/10 (avg), jobs{queue="b"}: 3/10 (avg)',
            id="two of the same name",
        ),
        pytest.param(
            [cpu(), series("a"), series("b"), series("c")],
            "cpu: 45%/50%, a: 3/10 (avg) + 2 more...",
            id="as many as a column holds",
        ),
    ],
)
def test_the_targets_of_an_hpa_fit_into_a_column(metrics, text):
    specs, statuses = [spec for spec, _status in metrics], [status for _spec, status in metrics]
    found = hpa_of(specs, statuses)
    assert targets_text(found.spec.metrics, found.status.current_metrics) == text


CPU = {"type": "Resource", "resource": {"name": "cpu"}}
CONTAINER = {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app"}}


def metric(data):
    return wire.convert(data, MetricSpec)


def external(name, selector=None):
    identifier = {"name": name} if selector is None else {"name": name, "selector": selector}
    return {"type": "External", "external": {"metric": identifier}}


def expression(operator, *values):
    return {"matchExpressions": [{"key": "queue", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("data", "name", "label"),
    [
        pytest.param(CPU, "cpu", "cpu", id="a resource"),
        pytest.param(CONTAINER, "memory", "app memory", id="a resource of a container"),
        pytest.param({"type": "Pods", "pods": {"metric": {"name": "qps"}}}, "qps", "qps", id="a metric of pods"),
        pytest.param({"type": "Object", "object": {"metric": {"name": "rps"}}}, "rps", "rps", id="of an object"),
        pytest.param(external("depth"), "depth", "depth", id="an external metric"),
        pytest.param(external("depth", {}), "depth", "depth", id="a selector of everything"),
        pytest.param(external("depth", {"matchLabels": {"queue": "mail"}}), "depth", 'depth{queue="mail"}', id="a label"),
        pytest.param(external("depth", expression("In", "a", "b")), "depth", 'depth{queue in ("a", "b")}', id="in"),
        pytest.param(external("depth", expression("NotIn", "a", "b")), "depth", 'depth{queue notin ("a", "b")}', id="not in"),
        pytest.param(external("depth", expression("Exists")), "depth", "depth{queue}", id="exists"),
        pytest.param(external("depth", expression("DoesNotExist")), "depth", "depth{!queue}", id="does not exist"),
        pytest.param(external("depth", expression("Near", "a")), "depth", "depth", id="a selector that cannot be read"),
        pytest.param({"type": "External"}, "", "External", id="no source"),
    ],
)  # fmt: skip
def test_names_and_labels(data, name, label):
    assert (name_of(metric(data)), label_of(metric(data))) == (name, label)


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "external metric depth(nil) above target", "external metric depth above target", id="no selector"
        ),
        pytest.param("unable to get depth/nil: gone", "unable to get depth: gone", id="with a slash"),
        pytest.param("nothing to replace", "nothing to replace", id="another text"),
    ],
)
def test_upstreams_texts_get_short_names_whatever_stands_beside(text, want, order):
    metrics = [metric(external("depth")), metric(CPU)][::order]
    assert plain_names(text, metrics) == want
