"""Conditions and recommendations of one VPA: what is set, and what is taken back."""

import pytest

from tests.unit.decide.vertical.policy_builders import recommended, vpa
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.model.labels.selector import EVERYTHING
from trimtab.model.times import from_ns
from trimtab.model.vpa.types import RecommendedPodResources, VPAConditionType

SOME = RecommendedPodResources(container_recommendations=(recommended("1Gi"),))
NONE = RecommendedPodResources()
SECOND = 10**9
OBSTACLES = [
    kind
    for kind in VPAConditionType
    if kind not in {"RecommendationProvided", "NoPodsMatched", "ConfigUnsupported"}
]


def state(pods=1):
    made = VPAState(vpa(), EVERYTHING)
    made.pod_count = pods
    return made


def statuses(made):
    return {kind: condition.status for kind, condition in made.conditions.items()}


@pytest.mark.parametrize(
    ("pods", "recommendation", "want"),
    [
        pytest.param(1, SOME, {"RecommendationProvided": "True"}, id="pods and a recommendation"),
        pytest.param(1, NONE, {"RecommendationProvided": "False"}, id="pods and no recommendation"),
        pytest.param(0, SOME, {"NoPodsMatched": "True", "RecommendationProvided": "True"}, id="a recommendation without pods"),
        pytest.param(0, NONE, {"NoPodsMatched": "True", "RecommendationProvided": "False"}, id="neither"),
    ],
)  # fmt: skip
def test_conditions_follow_from_pods_and_recommendation(pods, recommendation, want):
    made = state(pods)
    made.recommend(recommendation, SECOND)
    assert statuses(made) == want
    assert made.has_recommendation is (recommendation is SOME)
    assert made.has_matched_pods is (pods > 0)
    provided = made.conditions["RecommendationProvided"]
    assert (provided.reason == "NoPodsMatched") is (pods == 0 and recommendation is NONE)


def test_pods_that_come_back_end_no_pods_matched():
    made = state(0)
    made.recommend(SOME, SECOND)
    made.pod_count = 1
    made.recommend(SOME, SECOND)
    assert statuses(made) == {"RecommendationProvided": "True"}


def test_a_recommendation_ends_config_unsupported():
    made = state()
    made.mark_unsupported("no such scope", SECOND)
    assert (statuses(made), made.conditions["ConfigUnsupported"].message) == (
        {"ConfigUnsupported": "True"},
        "no such scope",
    )
    made.recommend(SOME, SECOND)
    assert statuses(made) == {"RecommendationProvided": "True"}


@pytest.mark.parametrize("kind", OBSTACLES)
def test_an_obstacle_is_set_and_taken_back(kind):
    made = state()
    made.set_obstacle(kind, "words", SECOND)
    assert (made.conditions[kind].status, made.conditions[kind].message) == ("True", "words")
    made.set_obstacle(kind, "", 2 * SECOND)
    assert made.conditions == {}
    made.set_obstacle(kind, "", 3 * SECOND)
    assert made.conditions == {}


def test_the_time_of_a_condition_moves_with_its_status_only():
    made = state()
    made.set_condition("X", True, "a", "first", SECOND)
    made.set_condition("X", True, "b", "second", 2 * SECOND)
    assert made.conditions["X"].last_transition_time == from_ns(SECOND)
    assert made.conditions["X"].message == "second"
    made.set_condition("X", False, "", "", 3 * SECOND)
    assert made.conditions["X"].last_transition_time == from_ns(3 * SECOND)


def test_a_status_lists_conditions_by_type():
    made = state(0)
    made.recommend(SOME, SECOND)
    made.set_condition("A", True, "", "", SECOND)
    assert [condition.type for condition in made.status().conditions] == [
        "A",
        "NoPodsMatched",
        "RecommendationProvided",
    ]
    assert made.status().recommendation == SOME
