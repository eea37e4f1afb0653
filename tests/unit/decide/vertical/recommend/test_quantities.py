"""How recommended amounts are written: multiples, binary units, whole cores."""

import pytest

from tests.unit.decide.vertical.policy_builders import recommended
from trimtab.decide.vertical.recommend.quantities import (
    RecommendationRounding,
    humanized,
    memory_quantity,
    round_to_whole_cores,
    round_up,
)
from trimtab.model.json import wire
from trimtab.model.vpa.types import RecommendedPodResources, VerticalPodAutoscaler


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1.00Ki"),
        (2**20 - 1, "1024.00Ki"),
        (2**20, "1.00Mi"),
        (3 * 2**29, "1.50Gi"),
        (2**30, "1.00Gi"),
        (2**40, "1.00Ti"),
    ],
)
def test_bytes_are_written_in_the_largest_unit_that_they_fill(amount, want):
    assert humanized(amount) == want


def test_no_memory_is_written_as_0():
    assert str(memory_quantity(0, RecommendationRounding(humanize_memory=True))) == "0"


@pytest.mark.parametrize(
    ("amount", "multiple", "want"),
    [(0, 50, 0), (1, 50, 50), (50, 50, 50), (51, 50, 100), (7, 1, 7), (7, 2, 8), (7, 0, 7), (7, -1, 7)],
)
def test_amounts_are_rounded_up_to_multiples(amount, multiple, want):
    assert round_up(amount, multiple) == want


@pytest.mark.parametrize(
    ("annotation", "value", "is_rounded"),
    [
        ("vpa-post-processor.kubernetes.io/app_integerCPU", "true", True),
        ("vpa-post-processor.kubernetes.io/app_integerCPU", "false", False),
        ("vpa-post-processor.kubernetes.io/side_integerCPU", "true", False),
        ("vpa-post-processor.kubernetes.io/app", "true", False),
        ("other/app_integerCPU", "true", False),
        ("vpa-post-processor.kubernetes.io/_integerCPU", "true", False),
    ],
)
def test_whole_cores_are_for_the_container_that_the_annotation_names(annotation, value, is_rounded):
    owner = wire.convert({"metadata": {"annotations": {annotation: value}}}, VerticalPodAutoscaler)
    entry = recommended("1Gi", "1100m", lower={"cpu": "1001m"}, upper={"cpu": "3900m", "memory": "2Gi"})
    given = RecommendedPodResources(container_recommendations=(entry, recommended("1Gi", container="x")))
    app, other = round_to_whole_cores(owner, given).container_recommendations
    shown = [
        str(amounts["cpu"]) for amounts in (app.target, app.lower_bound, app.upper_bound, app.uncapped_target)
    ]
    assert shown == (["2", "2", "4", "2"] if is_rounded else ["1100m", "1001m", "3900m", "1100m"])
    assert (str(app.target["memory"]), str(app.upper_bound["memory"])) == ("1Gi", "2Gi")
    assert other == given.container_recommendations[1]
