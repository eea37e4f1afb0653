"""Why nothing happens: each reason for not scaling is provoked once and told apart from the others."""

import pytest

from tests.unit.decide.horizontal.builders import (
    JOB,
    NO_WINDOW,
    REPLICA_SET,
    T,
    average,
    behavior,
    cpu,
    external,
    hpa,
    losing,
    marked,
    observe,
    pod,
    pods,
    rules,
    run,
    samples,
    scale,
    series,
    unreadable,
    usage_of,
    value,
)
from trimtab.decide.horizontal import Gone, Memory, Rival, ScaleFailure, Unread, Verdict, explain, verdict_of
from trimtab.decide.horizontal.memory import Recommendation, ScaleEvent
from trimtab.decide.horizontal.wording import SUMMARIES

QUEUE = external(average(100))
FULL = pods(4)


def by_queue(load, replicas=4, **fields):
    autoscaler = hpa(
        QUEUE, **{key: fields.pop(key) for key in ("low", "high", "behavior", "status") if key in fields}
    )
    return observe(autoscaler, replicas, series(load), **({"settings": NO_WINDOW} | fields))


def slow_up(select="Max", window=0):
    return behavior(
        rules(("Pods", 1, 600), window=window, select=select), rules(("Percent", 100, 15), window=0)
    )


def slow_down(select="Max"):
    return behavior(down=rules(("Pods", 1, 600), window=0, select=select))


def remembering(*recommendations, up=(), down=()):
    kept = tuple(Recommendation(replicas, T - ago) for replicas, ago in recommendations)
    return Memory(uid="uid-of-hpa", recommendations=kept, scale_up=up, scale_down=down)


STANDING_STILL = {
    Verdict.SCALE_UNREADABLE: observe(hpa(), 4, scale=None, scale_failure=ScaleFailure(message="not found")),
    Verdict.PAUSED: by_queue(500, 0),
    Verdict.SELECTOR_MISSING: observe(hpa(), 4, scale=scale(4, selector="")),
    Verdict.SELECTOR_INVALID: observe(hpa(), 4, scale=scale(4, selector="a in (")),
    Verdict.AMBIGUOUS: by_queue(400, rivals=(Rival(key="shop/other", selector="app=web"),)),
    Verdict.METRICS_FAILED: observe(hpa(QUEUE), 4, unreadable()),
    Verdict.METRICS_INCOMPLETE: observe(hpa(cpu(), QUEUE), 4, unreadable(), series(100)),
    Verdict.OWNERS_UNREAD: observe(
        hpa(cpu(), selection_strategy="OwnerReference"),
        1,
        samples({"web-1": 0, "scrape-1": 0}),
        pods=(pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,))),
        owners={REPLICA_SET.uid: Unread(error="timeout"), JOB.uid: Gone()},
    ),
    Verdict.LOSS_POLICY: observe(hpa(losing(QUEUE, "Replicas", replicas=4)), 4, unreadable()),
    Verdict.WITHIN_TOLERANCE: by_queue(420),
    Verdict.WITHIN_AFTER_FILLING: observe(hpa(cpu(100)), 10, usage_of(pods(10)[:9], 120), pods=pods(10)),
    Verdict.DIRECTION_UNSURE: observe(hpa(cpu(50)), 4, usage_of(FULL[:1], 10), pods=FULL),
    Verdict.NO_READY_PODS: observe(hpa(external(value(10))), 4, series(90), pods=pods(4, ready="False")),
    Verdict.IDLE_AT_ZERO: by_queue(0, 0, low=0, status=marked()),
    Verdict.ENOUGH: observe(hpa(external(average(100))), 1, series(70), settings=NO_WINDOW),
    Verdict.DOWN_WINDOW: observe(hpa(QUEUE), 4, series(100), memory=remembering((4, 60))),
    Verdict.UP_WINDOW: by_queue(700, behavior=slow_up(window=300), memory=remembering((4, 60))),
    Verdict.AT_MAXIMUM: by_queue(900, high=4),
    Verdict.AT_MINIMUM: by_queue(100, low=4),
    Verdict.UP_RATE: by_queue(
        900, behavior=slow_up(), memory=remembering((4, 60), up=(ScaleEvent(1, T - 60),))
    ),
    Verdict.DOWN_RATE: by_queue(
        100, behavior=slow_down(), memory=remembering((4, 60), down=(ScaleEvent(1, T - 60),))
    ),
    Verdict.UP_DISABLED: by_queue(900, behavior=slow_up("Disabled")),
    Verdict.DOWN_DISABLED: by_queue(100, behavior=slow_down("Disabled")),
}


@pytest.mark.parametrize("verdict", STANDING_STILL, ids=str)
def test_a_reason_for_not_scaling(verdict):
    decision = run(STANDING_STILL[verdict])
    assert decision.desired == decision.current
    assert verdict_of(decision) == verdict


def test_a_write_that_failed_is_told_apart():
    decision = run(by_queue(700), error="conflict")
    assert verdict_of(decision) == Verdict.SCALE_NOT_WRITTEN
    assert explain(decision).summary == "stays at 4: the new size could not be written"


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (by_queue(700), Verdict.SCALES_UP),
        (by_queue(200), Verdict.SCALES_DOWN),
        (by_queue(200, 20), Verdict.ABOVE_MAXIMUM),
        (by_queue(200, 1, low=2), Verdict.BELOW_MINIMUM),
        (observe(hpa(QUEUE, low=2, status=marked()), 0, unreadable(), pods=()), Verdict.BELOW_MINIMUM),
    ],
)
def test_a_reason_for_scaling(seen, verdict):
    assert verdict_of(run(seen)) == verdict


def test_there_are_more_than_twelve_reasons_for_not_scaling_and_each_is_said_differently():
    texts = {explain(run(seen)).summary for seen in STANDING_STILL.values()}
    assert len(texts) == len(STANDING_STILL) > 12
    assert len(set(SUMMARIES.values())) == len(SUMMARIES) == len(Verdict)


@pytest.mark.parametrize("verdict", STANDING_STILL, ids=str)
def test_every_standstill_says_what_would_change_it(verdict):
    assert explain(run(STANDING_STILL[verdict])).next_step


class TestExplanation:
    def test_it_names_the_values_at_which_the_replicas_would_change(self):
        story = explain(run(observe(hpa(cpu(50)), 4, usage_of(FULL, 48), pods=FULL)))
        metric = story.metrics[0]
        assert (metric.value, metric.target) == ("48 %", "50 %")
        assert (metric.scales_up_above, metric.scales_down_below) == ("55 %", "45 %")
        assert "scales up above 55 %, down below 45 %" in str(story)

    def test_it_names_who_was_left_out_and_why(self):
        both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
        seen = observe(
            hpa(cpu(50), selection_strategy="OwnerReference"),
            1,
            samples({"web-1": 50, "scrape-1": 900}),
            pods=both,
            owners={REPLICA_SET.uid: Gone(), JOB.uid: Gone()},
        )
        story = explain(run(seen))
        assert story.pods_left_out["scrape-1"] == "its owner Job/scrape is gone: it no longer exists"
        assert "2 left out" in str(story)

    def test_it_says_how_long_the_window_holds(self):
        story = explain(run(STANDING_STILL[Verdict.DOWN_WINDOW]))
        assert story.next_step == "the recommendation must stay at 1 until 2026-01-15T12:04:00Z"
        assert [one.replicas for one in story.window] == [4, 1]

    def test_it_says_when_the_rate_allows_more(self):
        story = explain(run(STANDING_STILL[Verdict.UP_RATE]))
        assert story.next_step == "the policy allows more from 2026-01-15T12:09:00Z"

    def test_it_says_which_values_would_change_a_standstill(self):
        assert (
            explain(run(STANDING_STILL[Verdict.WITHIN_TOLERANCE])).next_step
            == "external metric queue must go above 110 or below 90"
        )
        assert (
            explain(run(observe(hpa(QUEUE), 4, series(350), settings=NO_WINDOW))).next_step
            == "external metric queue must go above 110, or to 75 or less"
        )

    def test_it_names_the_policy_that_limits(self):
        assert explain(run(STANDING_STILL[Verdict.UP_RATE])).limit == "1 pods per 600 s"
        assert explain(run(by_queue(2000))).limit == "at most 8 in one sync"

    def test_the_winner_and_the_failures_are_marked(self):
        seen = observe(
            hpa(cpu(50), QUEUE, external(average(10), name="b")),
            4,
            unreadable("gone"),
            series(500),
            series(80),
        )
        story = explain(run(seen))
        assert [one.is_winner for one in story.metrics] == [False, False, True]
        assert story.metrics[0].problem.endswith("gone")
        assert (
            str(story).splitlines()[0] == "ScalesUp: scales from 4 to 8: external metric b(nil) above target"
        )

    def test_amounts_are_told_in_their_own_unit(self):
        seen = observe(hpa(external(average("1500m"))), 2, series(3), pods=pods(2))
        assert explain(run(seen)).metrics[0].target == "1.5"
