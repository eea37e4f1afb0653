"""Condition NoNodeFits: set while no node has room, taken back as soon as one has."""

import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.resources.test_node_fit import node
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.recommend.recommender import PostProcessing, recommend_vpas
from trimtab.decide.vertical.resources.capping import Cause
from trimtab.decide.vertical.resources.node_fit import node_rooms

SMALL, LARGE = node("small", "1", "1Gi"), node("large", "64", "256Gi")


def busy() -> Recommender:
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    for _ in range(5):
        recommender.scrape({"db-0": Load(4000, 10**8)})
    return recommender


def recommend(recommender, nodes, **options):
    post = PostProcessing(rooms=tuple(node_rooms(nodes)), **options)
    states = list(recommender.state.vpas.values())
    (found,) = recommend_vpas(recommender.state, states, recommender.settings, post, recommender.now_ns)
    return found


def told(found):
    return [condition.message for condition in found.status.conditions if condition.type == "NoNodeFits"]


def target(found):
    (entry,) = found.status.recommendation.container_recommendations
    return entry.target["cpu"].milli_value()


def test_a_target_that_no_node_holds_is_told_and_taken_back():
    recommender = busy()
    small = recommend(recommender, [SMALL])
    (message,) = told(small)
    assert message.startswith("no node has room for cpu ")
    assert message.endswith("on node small")
    assert (target(small) > 4000, small.cuts) == (True, ())
    assert told(recommend(recommender, [SMALL, LARGE])) == []


@pytest.mark.parametrize("nodes", [[], [LARGE], [SMALL, LARGE], [LARGE, SMALL]])
def test_a_target_that_a_node_holds_is_not_told(nodes):
    assert told(recommend(busy(), nodes)) == []


def test_a_target_may_be_cut_to_the_node_that_comes_nearest():
    recommender = busy()
    found = recommend(recommender, [SMALL], caps_to_nodes=True)
    assert target(found) == 1000
    assert {cut.cause for cut in found.cuts} == {Cause.LARGEST_NODE}
    assert told(found) == []
    assert target(recommend(recommender, [LARGE], caps_to_nodes=True)) > 4000
