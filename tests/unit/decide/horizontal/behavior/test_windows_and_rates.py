"""Stabilization windows and scaling policies at their edges, in both directions."""

import pytest

from tests.unit.decide.horizontal.builders import T, hpa, observe, rules
from trimtab.decide.horizontal.limits import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    Bounds,
    Windows,
    change_within,
    limit_by_behavior,
    limit_by_rules,
    rate_limit,
    recommendations_after,
    scale_events,
    windows_of,
    within_both_windows,
    within_windows,
)
from trimtab.decide.horizontal.memory import Memory, Recommendation, ScaleEvent
from trimtab.decide.horizontal.reasons import ROWS, WITHIN_RANGE, Code, Count, Earlier, Reason, Set
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior

INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)


def known(*pairs):
    return tuple(Recommendation(replicas, T - age) for replicas, age in pairs)


@pytest.mark.parametrize("of", [Rules.TRIMTAB, Rules.KUBERNETES_1_37], ids=["ours", "upstream"])
@pytest.mark.parametrize(
    ("history", "desired", "want"),
    [
        pytest.param([(8, 299.4)], 5, 8, id="in the window"),
        pytest.param([(8, 301)], 5, 5, id="outside of the window"),
        pytest.param([(8, 10)], 9, 9, id="growth is not held back"),
        pytest.param([(8, 10)], 8, 8, id="the same"),
        pytest.param([(6, 10), (9, 20), (7, 30)], 5, 9, id="the highest of several"),
        pytest.param([(9, 400), (6, 10)], 5, 6, id="the highest of those that count"),
        pytest.param([], 5, 5, id="nothing is known"),
    ],
)
def test_without_behavior_the_highest_of_the_window_counts(history, desired, want, of):
    seen, memory = observe(hpa(), 9, rules=of), Memory(recommendations=known(*history))
    found = within_windows(asked(desired), seen, memory, T)
    assert found.replicas == want
    assert found == asked(desired) if want == desired else found.why.code is Code.DOWN_WINDOW
    assert Recommendation(desired, T) in recommendations_after(seen, memory, desired, T)


def asked(replicas):
    return Count(replicas, Reason(code=Code.ENOUGH))


@pytest.mark.parametrize(
    ("history", "current", "desired", "want", "reason"),
    [
        pytest.param([(3, 59)], 4, 9, 4, "ScaleUpStabilized", id="growth waits while less was asked for"),
        pytest.param([(3, 60)], 4, 9, 9, "", id="an entry as old as the window does not count"),
        pytest.param([(6, 59)], 4, 9, 6, "ScaleUpStabilized", id="growth to the lowest of the window"),
        pytest.param(
            [(9, 119)], 6, 2, 6, "ScaleDownStabilized", id="shrinking waits while more was asked for"
        ),
        pytest.param([(9, 120)], 6, 2, 2, "", id="an entry as old as the other window does not count"),
        pytest.param([(4, 119)], 6, 2, 4, "ScaleDownStabilized", id="shrinking to the highest of the window"),
        pytest.param([(9, 1), (1, 1)], 5, 5, 5, "", id="nothing to do"),
        pytest.param([(5, 1), (8, 2), (3, 90)], 6, 4, 6, "ScaleDownStabilized", id="several entries"),
    ],
)
def test_each_direction_has_its_window(history, current, desired, want, reason):
    windows = Windows(up=60.0, down=120.0)
    for order in (1, -1):
        remembered = known(*history)[::order]
        assert within_both_windows(remembered, current, desired, T, windows) == want
        both = HorizontalPodAutoscalerBehavior(scale_up=rules(window=60), scale_down=rules(window=120))
        seen = observe(hpa(behavior=both), current)
        found = within_windows(asked(desired), seen, Memory(recommendations=remembered), T)
        shown = {"": (), "ScaleUpStabilized": ("ScaleUpStabilized",)}.get(reason, ("ScaleDownStabilized",))
        assert (
            tuple(
                condition.reason
                for condition in ROWS[found.why.code].conditions
                if isinstance(condition, Set)
            )
            == shown
        )
        if reason:
            assert isinstance(found.why.facts, Earlier)
            assert found.why.facts.window == (60.0 if reason == "ScaleUpStabilized" else 120.0)


def test_the_default_windows():
    assert Windows() == Windows(up=0.0, down=300.0)


def test_the_latest_recommendation_of_the_held_replicas_is_named():
    memory = Memory(recommendations=known((8, 90), (8, 30), (7, 10)))
    held = within_windows(asked(3), observe(hpa(), 9), memory, T)
    assert held.why.facts == Earlier(replicas=8, at=T - 30, window=300.0)
    assert str(held.why.facts) == (
        "8 replicas were recommended at 2026-01-15T11:59:30Z, within the window of 300 s"
    )


EVENTS = (ScaleEvent(1, T - 60), ScaleEvent(2, T - 59), ScaleEvent(4, T))


@pytest.mark.parametrize(("period", "want"), [(1, 4), (59, 4), (60, 6), (61, 7)])
def test_events_younger_than_the_period_count(period, want):
    assert change_within(period, EVENTS, T) == want


@pytest.mark.parametrize(
    ("policies", "select", "up", "down"),
    [
        pytest.param([("Pods", 3, 60)], "Max", 13, 7, id="pods"),
        pytest.param([("Percent", 50, 60)], "Max", 15, 5, id="percent"),
        pytest.param([("Pods", 3, 60), ("Percent", 50, 60)], "Max", 15, 5, id="the most generous, last"),
        pytest.param([("Percent", 50, 60), ("Pods", 3, 60)], "Max", 15, 5, id="the most generous, first"),
        pytest.param([("Pods", 3, 60), ("Percent", 50, 60)], "Min", 13, 7, id="the strictest, first"),
        pytest.param([("Percent", 50, 60), ("Pods", 3, 60)], "Min", 13, 7, id="the strictest, last"),
        pytest.param([("Pods", 3, 60)], "Disabled", 10, 10, id="switched off"),
        pytest.param([("Percent", 90, 60)], "Max", 19, 0, id="upstream's floats: 0.9999999999999998 is 0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compat", [Rules.TRIMTAB, Rules.KUBERNETES_1_36], ids=["ours", "upstream"])
def test_policies_limit_both_directions_from_ten_replicas(policies, select, up, down, compat):
    chosen = rules(*policies, select=select)
    grown = rate_limit(10, Memory(), chosen, T, compat, is_up=True)
    shrunk = rate_limit(10, Memory(), chosen, T, compat, is_up=False)
    assert (grown.replicas, shrunk.replicas) == (up, down)
    assert grown.is_disabled is shrunk.is_disabled is (select == "Disabled")
    if select == "Disabled":
        assert grown.policy is None
    else:
        assert grown.policy in chosen.policies
        assert shrunk.policy in chosen.policies


def test_changes_of_the_period_count_against_a_policy_in_both_directions():
    memory = Memory(scale_up=(ScaleEvent(2, T - 10),), scale_down=(ScaleEvent(5, T - 10),))
    policy = rules(("Pods", 3, 60))
    # The period began with 10 - 2 + 5 replicas.
    assert rate_limit(10, memory, policy, T, Rules.TRIMTAB, is_up=True).replicas == 16
    assert rate_limit(10, memory, policy, T, Rules.TRIMTAB, is_up=False).replicas == 10
    later = rules(("Pods", 3, 5))
    assert rate_limit(10, memory, later, T, Rules.TRIMTAB, is_up=True).replicas == 13
    assert rate_limit(10, memory, later, T, Rules.TRIMTAB, is_up=False).replicas == 7


@pytest.mark.parametrize(
    ("compat", "percent", "want"),
    [(Rules.TRIMTAB, 50, 1), (Rules.KUBERNETES_1_36, 50, 0), (Rules.TRIMTAB, 0, 0), (Rules.TRIMTAB, 300, 1)],
    ids=["ours", "upstream", "nothing of nothing", "three times nothing"],
)
def test_a_percentage_leaves_zero_by_one(compat, percent, want):
    assert rate_limit(0, Memory(), rules(("Percent", percent, 60)), T, compat, is_up=True).replicas == want
    assert rate_limit(1, Memory(), rules(("Percent", 50, 60)), T, compat, is_up=True).replicas == 2


def test_without_policies_nothing_limits():
    assert rate_limit(5, Memory(), rules(), T, Rules.TRIMTAB, is_up=True).replicas == INT32_MIN
    assert rate_limit(5, Memory(), rules(select="Min"), T, Rules.TRIMTAB, is_up=True).replicas == INT32_MAX
    assert rate_limit(5, Memory(), rules(), T, Rules.TRIMTAB, is_up=False).replicas == INT32_MAX
    assert rate_limit(5, Memory(), rules(select="Min"), T, Rules.TRIMTAB, is_up=False).replicas == INT32_MIN


@pytest.mark.parametrize("compact", [True, False], ids=["ours", "upstream"])
@pytest.mark.parametrize(("before", "after"), [(3, 7), (7, 3)], ids=["up", "down"])
def test_a_change_is_an_event_of_its_direction(before, after, compact):
    both = HorizontalPodAutoscalerBehavior(
        scale_up=rules(("Pods", 1, 60), ("Pods", 1, 30)), scale_down=rules(("Pods", 1, 30), ("Pods", 1, 60))
    )
    memory = Memory(scale_up=(ScaleEvent(1, T - 50),), scale_down=(ScaleEvent(1, T - 50),))
    events = scale_events(memory, both, before, after, T, compact=compact)
    changed, other = events if after > before else events[::-1]
    assert changed == (ScaleEvent(1, T - 50), ScaleEvent(4, T))
    assert other == (ScaleEvent(1, T - 50),)
    without_behavior = scale_events(memory, None, before, after, T, compact=compact)
    assert without_behavior == (events if compact else (memory.scale_up, memory.scale_down))


@pytest.mark.parametrize(("age", "held"), [(299.4, True), (299.6, False), (300.0, False)])
def test_a_window_of_a_whole_number_of_syncs_ends_at_that_sync(age, held):
    """W1: a window of 60 s lasted 75."""
    memory = Memory(recommendations=known((8, age)))
    for made in (hpa(), hpa(behavior=HorizontalPodAutoscalerBehavior())):
        found = within_windows(asked(5), observe(made, 8), memory, T)
        assert found.replicas == (8 if held else 5)
    edge = Memory(recommendations=known((8, 300.0)))
    theirs = within_windows(asked(5), observe(hpa(), 8, rules=Rules.KUBERNETES_1_37), edge, T)
    assert theirs.replicas == 8, "upstream includes the edge"


@pytest.mark.parametrize(("age", "allowed"), [(14.4, 4), (14.6, 7), (15.0, 7)])
def test_a_period_of_a_whole_number_of_syncs_ends_at_that_sync(age, allowed):
    """W1: milliseconds of jitter decided whether a step came after 15 or after 30 seconds."""
    memory = Memory(scale_up=(ScaleEvent(3, T - age),))
    policy = rules(("Pods", 3, 15))
    assert rate_limit(4, memory, policy, T, Rules.TRIMTAB, is_up=True).replicas == allowed
    upstream = rate_limit(4, memory, policy, T, Rules.KUBERNETES_1_37, is_up=True).replicas
    assert upstream == (7 if age >= 15 else 4)


def limits(current, desired, *, low=1, high=100, behavior=None, memory=Memory()):  # noqa: B008 - frozen
    count, bounds = asked(desired), Bounds(low, high)
    if behavior is None:
        found = limit_by_rules(count, current, bounds, HpaSettings())
    else:
        found = limit_by_behavior(count, observe(hpa(behavior=behavior), current), bounds, memory, T)
    condition = WITHIN_RANGE if found is count else ROWS[found.why.code].conditions[0]
    assert isinstance(condition, Set)
    return found.replicas, condition.reason


@pytest.mark.parametrize(
    ("current", "desired", "bounds", "want"),
    [
        pytest.param(5, 10, {}, (10, "DesiredWithinRange"), id="twice as many"),
        pytest.param(5, 11, {}, (10, "ScaleUpLimit"), id="more than twice"),
        pytest.param(1, 4, {}, (4, "DesiredWithinRange"), id="four from one"),
        pytest.param(1, 5, {}, (4, "ScaleUpLimit"), id="more than four from one"),
        pytest.param(5, 10, {"high": 10}, (10, "DesiredWithinRange"), id="the maximum"),
        pytest.param(5, 11, {"high": 10}, (10, "TooManyReplicas"), id="above maximum and rate at once"),
        pytest.param(5, 9, {"high": 8}, (8, "TooManyReplicas"), id="above the maximum"),
        pytest.param(5, 2, {"low": 2}, (2, "DesiredWithinRange"), id="the minimum"),
        pytest.param(5, 1, {"low": 2}, (2, "TooFewReplicas"), id="below the minimum"),
    ],
)
def test_without_behavior_replicas_double_at_most(current, desired, bounds, want):
    assert limits(current, desired, **bounds) == want


SLOW = HorizontalPodAutoscalerBehavior(scale_up=rules(("Pods", 3, 60)), scale_down=rules(("Pods", 2, 60)))
PAST = Memory(scale_up=(ScaleEvent(5, T - 1),), scale_down=(ScaleEvent(5, T - 1),))


@pytest.mark.parametrize(
    ("desired", "bounds", "want"),
    [
        pytest.param(13, {}, (13, "DesiredWithinRange"), id="up to the rate"),
        pytest.param(14, {}, (13, "ScaleUpLimit"), id="above the rate"),
        pytest.param(14, {"high": 13}, (13, "TooManyReplicas"), id="maximum and rate at once"),
        pytest.param(12, {"high": 11}, (11, "TooManyReplicas"), id="above the maximum"),
        pytest.param(8, {}, (8, "DesiredWithinRange"), id="down to the rate"),
        pytest.param(7, {}, (8, "ScaleDownLimit"), id="below the rate"),
        pytest.param(7, {"low": 8}, (8, "TooFewReplicas"), id="minimum and rate at once"),
        pytest.param(8, {"low": 9}, (9, "TooFewReplicas"), id="below the minimum"),
        pytest.param(10, {"low": 11}, (10, "DesiredWithinRange"), id="no change is not limited"),
    ],
)
def test_with_behavior_policies_and_bounds_limit_ten_replicas(desired, bounds, want):
    assert limits(10, desired, behavior=SLOW, **bounds) == want


@pytest.mark.parametrize(("desired", "want"), [(20, (10, "ScaleUpLimit")), (1, (10, "ScaleDownLimit"))])
def test_a_rate_that_is_exceeded_already_holds_and_never_reverses(desired, want):
    memory = Memory(scale_up=PAST.scale_up) if desired > 10 else Memory(scale_down=PAST.scale_down)
    assert limits(10, desired, behavior=SLOW, memory=memory) == want


@pytest.mark.parametrize(
    ("behavior", "want"),
    [
        (None, (0.0, 300.0)),
        (HorizontalPodAutoscalerBehavior(), (0.0, 300.0)),
        (HorizontalPodAutoscalerBehavior(scale_up=rules(window=7), scale_down=rules(window=9)), (7.0, 9.0)),
        (
            HorizontalPodAutoscalerBehavior(scale_up=rules(window=None), scale_down=rules(window=0)),
            (0.0, 0.0),
        ),
    ],
    ids=["no behavior", "empty", "both", "zero is a window"],
)
def test_windows_are_those_of_the_spec_or_the_controllers(behavior, want):
    windows = windows_of(behavior, HpaSettings())
    assert (windows.up, windows.down) == want


def test_the_default_policies_are_those_of_the_api():
    assert [(policy.type, policy.value, policy.period_seconds) for policy in DEFAULT_UP.policies] == [
        ("Pods", 4, 15),
        ("Percent", 100, 15),
    ]
    assert [(policy.type, policy.value, policy.period_seconds) for policy in DEFAULT_DOWN.policies] == [
        ("Percent", 100, 15)
    ]
