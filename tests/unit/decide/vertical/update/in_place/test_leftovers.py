"""What outlives its VPA on a pod: a boost, a refusal, or a resize that Trimtab requested and that waits."""

from datetime import timedelta

import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod, recommended, resize_condition
from tests.unit.decide.vertical.update.in_place.test_boost_end import boosted
from trimtab.decide.vertical.update.in_place.reverts import has_leftovers, has_waiting_request, is_outdated
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.model.core.pod import ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.vpa.types import RecommendedPodResources

DEFERRED, UNDER_WAY = resize_condition(), resize_condition("PodResizeInProgress", "")


def noted(**more):
    """Return the annotation of a resize that was requested for the pod's present spec."""
    last = ResizeAnnotation(vpa="shop/base", at=NOW - timedelta(minutes=1), **more)
    return {RESIZE_ANNOTATION: wire.encode(last).decode()}


@pytest.mark.parametrize(
    ("member", "want"),
    [
        pytest.param(pod(), False, id="nothing"),
        pytest.param(boosted(), True, id="a boost"),
        pytest.param(pod(annotations={REFUSED_ANNOTATION: "x"}), True, id="a refusal"),
        pytest.param(pod(annotations=noted(), conditions=[DEFERRED]), True, id="our resize waits"),
        pytest.param(pod(annotations=noted(), conditions=[UNDER_WAY]), True, id="our resize is under way"),
        pytest.param(pod(annotations=noted()), False, id="our resize is done"),
        pytest.param(pod(conditions=[DEFERRED]), False, id="a resize of others waits"),
    ],
)
def test_leftovers_of_a_pod(member, want):
    assert has_leftovers(member) is want


@pytest.mark.parametrize(
    ("member", "want"),
    [
        pytest.param(pod(annotations=noted(), conditions=[DEFERRED]), True, id="our resize waits"),
        pytest.param(
            pod(annotations=noted(ends_boost=True), conditions=[DEFERRED]), False, id="the end of a boost"
        ),
        pytest.param(pod(annotations=noted(), conditions=[UNDER_WAY]), False, id="it is under way"),
        pytest.param(pod(annotations=noted()), False, id="it is done"),
        pytest.param(pod(conditions=[DEFERRED]), False, id="a resize of others"),
        pytest.param(
            pod(
                annotations=noted(
                    resources={"app": wire.convert({"requests": {"cpu": "9"}}, ResourceRequirements)}
                ),
                conditions=[DEFERRED],
            ),
            False,
            id="the spec was changed by others since then",
        ),
    ],
)
def test_a_request_that_waits_is_ours(member, want):
    assert has_waiting_request(member, NOW) is want


WIDE = {"lower": {"cpu": "1m"}, "upper": {"cpu": "10"}}


@pytest.mark.parametrize(
    ("target", "bounds", "want"),
    [
        pytest.param("100m", WIDE, False, id="what was requested"),
        pytest.param("109m", WIDE, False, id="near, within the bounds"),
        pytest.param("110m", WIDE, True, id="exactly the least change, within the bounds"),
        pytest.param("90m", WIDE, True, id="the least change downwards, within the bounds"),
        pytest.param("200m", WIDE, True, id="far, within the bounds"),
        pytest.param("101m", {}, True, id="near, but below the bounds"),
        pytest.param("99m", {}, True, id="near, but above the bounds"),
    ],
)
def test_a_request_is_outdated_outside_of_the_bounds_or_by_the_least_change(target, bounds, want):
    entries = (recommended(cpu=target, **bounds),)
    recommendation = RecommendedPodResources(container_recommendations=entries)
    assert is_outdated(pod(cpu="100m", memory=None), recommendation, 0.1) is want
