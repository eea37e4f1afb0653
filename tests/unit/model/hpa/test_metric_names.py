"""Short names of metrics, alone and in upstream's texts."""

import pytest

from trimtab.model.hpa.metric_names import label_of, name_of, plain_names
from trimtab.model.hpa.types import MetricSpec
from trimtab.model.json import wire

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
