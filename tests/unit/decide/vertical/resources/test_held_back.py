"""The recommendation that matches a size which a rule of the API server held back."""

import pytest

from trimtab.decide.vertical.resources.fitting import HeldBack
from trimtab.decide.vertical.resources.pod_resources import _with_given
from trimtab.decide.vertical.resources.pod_rules import PodRule, Violation
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedContainerResources

RULE = Violation(next(iter(PodRule)), "memory", "app", "no")


def entry(**bounds) -> RecommendedContainerResources:
    return wire.convert({"containerName": "app", **bounds}, RecommendedContainerResources)


def both(cpu, memory):
    return {"cpu": cpu, "memory": memory}


WHOLE = entry(target=both("1", "4Gi"), lowerBound=both("500m", "2Gi"), upperBound=both("2", "8Gi"))


@pytest.mark.parametrize(
    ("resource", "given", "want"),
    [
        pytest.param("memory", "3Gi", {"target": both("1", "3Gi")}, id="within its bounds"),
        pytest.param("memory", "1Gi", {"target": both("1", "1Gi"), "lowerBound": both("500m", "1Gi")}, id="below its lower bound"),
        pytest.param("memory", "9Gi", {"target": both("1", "9Gi"), "upperBound": both("2", "9Gi")}, id="above its upper bound"),
        pytest.param("cpu", "100m", {"target": both("100m", "4Gi"), "lowerBound": both("100m", "2Gi")}, id="the other resource"),
        pytest.param("memory", None, {"target": {"cpu": "1"}, "lowerBound": {"cpu": "500m"}, "upperBound": {"cpu": "2"}}, id="nothing"),
    ],
)  # fmt: skip
def test_the_given_amount_is_the_target_within_bounds(resource, given, want):
    amount = Quantity.parse(given) if given else None
    found = _with_given(WHOLE, HeldBack("app", resource, Quantity.parse("16Gi"), amount, RULE))
    parts = {"target": "target", "lowerBound": "lower_bound", "upperBound": "upper_bound"}
    expected = entry(
        **{name: want.get(name) or wire.to_builtins(getattr(WHOLE, part)) for name, part in parts.items()}
    )
    assert found == expected


def test_bounds_that_are_missing_stay_missing():
    found = _with_given(
        entry(target=both("1", "4Gi")),
        HeldBack("app", "memory", Quantity.parse("4Gi"), Quantity.parse("3Gi"), RULE),
    )
    assert found == entry(target=both("1", "3Gi"))
