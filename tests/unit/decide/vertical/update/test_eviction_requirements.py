"""Eviction requirements on resources that are not recommended, or of which nothing is requested."""

import pytest

from tests.unit.decide.vertical.policy_builders import pod, recommended
from trimtab.decide.vertical.update.eligibility import admits_eviction
from trimtab.model.vpa.types import EvictionRequirement, RecommendedPodResources

HIGHER, LOWER = "TargetHigherThanRequests", "TargetLowerThanRequests"


@pytest.mark.parametrize(
    ("request_", "target", "change", "want"),
    [
        pytest.param("1m", None, LOWER, True, id="no target is lower than the least request"),
        pytest.param("1m", None, HIGHER, False, id="no target is not higher"),
        pytest.param("0", None, LOWER, False, id="no target is not lower than no request"),
        pytest.param("0", None, HIGHER, False, id="no target is not higher than no request"),
        pytest.param("0", "1m", HIGHER, True, id="the least target is higher than no request"),
        pytest.param("1m", "1m", HIGHER, False, id="the same is not higher"),
        pytest.param("1m", "1m", LOWER, False, id="the same is not lower"),
        pytest.param("1m", "2m", "Sideways", False, id="an unknown change is never met"),
    ],
)
def test_a_missing_amount_counts_as_zero(request_, target, change, want):
    recommendation = RecommendedPodResources(container_recommendations=(recommended("1Gi", target),))
    requirement = EvictionRequirement(resources=("cpu",), change_requirement=change)
    assert admits_eviction(pod(cpu=request_), recommendation, (requirement,)) is want
