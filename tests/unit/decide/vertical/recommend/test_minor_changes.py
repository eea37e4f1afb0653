"""Which moves of a recommendation are worth a write."""

import random

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.recommend.minor_changes import MINOR_CHANGE, is_minor_change
from trimtab.decide.vertical.rules import Rules
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerStatus
from trimtab.operator.vertical.recommender.status_builder import change_of


def status(name="app", lower="100m", target="200m", upper="1000m", *, generation=1, reason="", **more):
    entry = {
        "containerName": name,
        "lowerBound": {"cpu": lower, **more},
        "target": {"cpu": target},
        "uncappedTarget": {"cpu": target},
        "upperBound": {"cpu": upper},
    }
    condition = {"type": "RecommendationProvided", "status": "True", "reason": reason}
    body = {
        "recommendation": {"containerRecommendations": [entry]},
        "conditions": [condition],
        "observedGeneration": generation,
    }
    return wire.convert(body, VerticalPodAutoscalerStatus)


@pytest.mark.parametrize(
    ("now", "is_small"),
    [
        pytest.param(status(), True, id="nothing moved"),
        pytest.param(status(upper="991m"), True, id="the upper bound fell by less than a hundredth"),
        pytest.param(status(upper="990m"), False, id="the upper bound fell by a hundredth"),
        pytest.param(status(upper="1009m"), True, id="the upper bound rose by less than a hundredth"),
        pytest.param(status(lower="101m"), False, id="the lower bound rose by a hundredth"),
        pytest.param(status(target="201m"), False, id="the target moved at all"),
        pytest.param(status(memory="1Gi"), False, id="memory is recommended now"),
        pytest.param(status("sidecar"), False, id="another container"),
        pytest.param(status(generation=2), False, id="the spec was looked at that is now"),
        pytest.param(status(reason="Why"), False, id="a condition changed"),
        pytest.param(
            msgspec.structs.replace(status(), recommendation=None),
            False,
            id="nothing is recommended any more",
        ),
    ],
)
def test_only_bounds_may_move_unwritten_and_only_by_little(now, is_small):
    assert is_minor_change(status(), now) == is_small


def test_bounds_of_nothing_move_as_soon_as_they_are_something():
    assert not is_minor_change(status(lower="0"), status(lower="1m"))
    assert is_minor_change(status(lower="0"), status(lower="0"))


@pytest.mark.parametrize(
    ("rules", "most"), [(Rules.TRIMTAB, 0.66), (Rules.VPA_1_8, 1.0)], ids=["ours", "upstream"]
)
def test_what_is_stored_is_never_far_from_what_is_recommended(rules, most):
    """Small moves in one direction add up; after the first hour a third of them and more wait."""
    usage = random.Random(1)
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    written = 0
    for minute in range(240):
        recommender.scrape({"db-0": Load(usage.randint(57, 63), usage.randint(95, 105) * 10**6)})
        recommender.recommend()
        state = recommender.state.vpas["shop/base"]
        change = change_of(state, rules)
        if change is not None:
            written += minute >= 60
            state.vpa = msgspec.structs.replace(state.vpa, status=change.status)
        assert is_minor_change(state.vpa.status, state.status()), f"stored is {MINOR_CHANGE:.0%} off"
    assert 0 < written / 180 <= most
    assert (written == 180) == (rules is Rules.VPA_1_8)


def joined(*statuses):
    """Make one status of the containers of several."""
    entries = tuple(entry for made in statuses for entry in made.recommendation.container_recommendations)
    recommendation = msgspec.structs.replace(statuses[0].recommendation, container_recommendations=entries)
    return msgspec.structs.replace(statuses[0], recommendation=recommendation)


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("odd", "is_small"),
    [
        pytest.param(status(upper="1009m"), True, id="little"),
        pytest.param(status(upper="1100m"), False, id="much, above"),
        pytest.param(status(lower="110m"), False, id="much, below"),
        pytest.param(status(target="210m"), False, id="the target"),
    ],
)
def test_every_container_must_have_moved_by_little(odd, is_small, order):
    calm = status("calm")
    before, after = joined(*[calm, status()][::order]), joined(*[calm, odd][::order])
    assert is_minor_change(before, after) is is_small
    assert not is_minor_change(before, joined(calm))


@pytest.mark.parametrize(("memory", "is_small"), [("1000m", True), ("1009m", True), ("1011m", False)])
def test_every_resource_of_a_bound_must_have_moved_by_little(memory, is_small):
    assert is_minor_change(status(memory="1"), status(memory=memory)) is is_small
