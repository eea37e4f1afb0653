"""Every misfit between JSON data and a wire type is named, not only the first."""

import pytest

from trimtab.model.core.meta import ObjectMeta
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import shape
from trimtab.model.json.shape import misfits, unknown_fields
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param({}, [], id="nothing is required by the shape"),
        pytest.param({"spec": None, "metadata": {"labels": None}}, [], id="null means absent"),
        pytest.param({"spec": {"extra": 1}}, [], id="unknown fields fit"),
        pytest.param([], ["."], id="a list is no object"),
        pytest.param(
            {"metadata": {"labels": {"a": 1, "b": True}}, "spec": {"maxReplicas": 1.5, "metrics": {}}},
            ["metadata.labels[a]", "metadata.labels[b]", "spec.maxReplicas", "spec.metrics"],
            id="all of them",
        ),
        pytest.param(
            {"spec": {"metrics": [None, {"type": 5}]}},
            ["spec.metrics[0]", "spec.metrics[1].type"],
            id="in lists",
        ),
        pytest.param({"spec": {"maxReplicas": True}}, ["spec.maxReplicas"], id="a boolean is no integer"),
        pytest.param({"spec": {"maxReplicas": 2**31}}, ["spec.maxReplicas"], id="32 bits"),
        pytest.param({"metadata": {"generation": 2**31}}, [], id="a generation has 64 bits"),
        pytest.param({"metadata": {"generation": 2**63}}, ["metadata.generation"], id="and not more"),
        pytest.param(
            {"metadata": {"creationTimestamp": "yesterday"}}, ["metadata.creationTimestamp"], id="times"
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": 5}}, ["metadata.creationTimestamp"], id="times are text"
        ),
        pytest.param(
            {"spec": {"behavior": {"scaleUp": {"tolerance": "5 %"}, "scaleDown": {"tolerance": []}}}},
            ["spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance"],
            id="quantities",
        ),
        pytest.param(
            {"spec": {"behavior": {"scaleUp": {"tolerance": 0.05}}}}, [], id="a bare number is a quantity"
        ),
    ],
)
def test_misfits_of_an_hpa(data, want):
    assert [error.field for error in misfits(data, HorizontalPodAutoscaler)] == want


@pytest.mark.parametrize(
    ("histogram", "want"),
    [
        ({"bucketWeights": {"3": 10000}, "totalWeight": 1}, []),
        ({"bucketWeights": {"three": 1}}, ["status.cpuHistogram.bucketWeights[three]"]),
        ({"totalWeight": "heavy"}, ["status.cpuHistogram.totalWeight"]),
        ({"totalWeight": 10**400}, ["status.cpuHistogram.totalWeight"]),
    ],
)
def test_misfits_of_a_checkpoint(histogram, want):
    found = misfits({"status": {"cpuHistogram": histogram}}, VerticalPodAutoscalerCheckpoint)
    assert [error.field for error in found] == want


def test_a_long_value_is_cut_in_the_message():
    (error,) = misfits({"spec": {"maxReplicas": "x" * 10_000}}, HorizontalPodAutoscaler)
    assert len(error.message) < 200


def test_unknown_fields_come_with_the_name_they_resemble():
    data = {"spec": {"minReplica": 1, "metrics": [{"typ": "Pods", "frobs": 1}], "behavior": {"scaleup": {}}}}
    found = {path.text: near for path, near in unknown_fields(data, HorizontalPodAutoscaler)}
    assert found == {
        "spec.minReplica": "minReplicas",
        "spec.metrics[0].typ": "type",
        "spec.metrics[0].frobs": "",
        "spec.behavior.scaleup": "scaleUp",
    }


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("odd", "count"), [(3, 1), (["x"], 1), (None, 0), ("y", 0)], ids=["number", "list", "null", "text"]
)
def test_every_value_of_a_map_is_checked(odd, count, order):
    labels = dict([("good", "x"), ("odd", odd)][::order])
    found = shape.misfits({"labels": labels}, ObjectMeta)
    assert [error.field for error in found] == ["labels[odd]"] * count
    assert [error.field for error in shape.misfits({"labels": "none"}, ObjectMeta)] == ["labels"]
