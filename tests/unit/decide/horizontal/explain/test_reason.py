"""Why nothing happens: each reason for not scaling is provoked once and told apart from the others."""

import pytest

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    EVERY_GATE,
    JOB,
    NO_WINDOW,
    OWNER,
    REPLICA_SET,
    T,
    average,
    behavior,
    condition,
    cpu,
    cpu_value,
    explained,
    external,
    hpa,
    later,
    losing,
    marked,
    memory_value,
    observe,
    pod,
    pods,
    pods_metric,
    rules,
    run,
    samples,
    scale,
    series,
    unreadable,
    usage_of,
    value,
)
from trimtab.decide.horizontal import (
    Code,
    ConflictingHpa,
    Memory,
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    ScaleFailure,
)
from trimtab.decide.horizontal.memory import Recommendation, ScaleEvent
from trimtab.decide.horizontal.observation.observation import StaleInput
from trimtab.decide.horizontal.observation.plugin_answers import FilterAnswer, PolicyAnswer
from trimtab.decide.horizontal.reasons import ROWS
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import ReplicaPolicySpec

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


def test_a_missing_target_is_named_and_has_no_number_of_replicas():
    """It said that nothing is known about it, and 0 replicas."""
    failure = ScaleFailure(message='deployments.apps "web" not found')
    seen = observe(hpa(), 4, scale=None, scale_failure=failure)
    told = explained(seen)
    assert (told.current, told.desired) == (None, None)
    reason, _, summary = str(told).splitlines()[0].partition(": ")
    assert reason == "FailedGetScale"
    assert summary == 'its target Deployment/web cannot be read: deployments.apps "web" not found'


def remembering(*recommendations, up=(), down=()):
    kept = tuple(Recommendation(replicas, T - ago) for replicas, ago in recommendations)
    return Memory(owner=OWNER, recommendations=kept, scale_up=up, scale_down=down)


STANDING_STILL = {
    Code.SCALE_UNREADABLE: observe(hpa(), 4, scale=None, scale_failure=ScaleFailure(message="not found")),
    Code.PAUSED: by_queue(500, 0),
    Code.SELECTOR_MISSING: observe(hpa(), 4, scale=scale(4, selector="")),
    Code.SELECTOR_INVALID: observe(hpa(), 4, scale=scale(4, selector="a in (")),
    Code.AMBIGUOUS: by_queue(400, conflicting_hpas=(ConflictingHpa(key="shop/other", selector="app=web"),)),
    Code.METRICS_FAILED: observe(hpa(QUEUE), 4, unreadable()),
    Code.METRICS_INCOMPLETE: observe(hpa(cpu(), QUEUE), 4, unreadable(), series(100)),
    Code.ALL_LEFT_OUT: observe(
        hpa(cpu(50), selection_strategy="example.com/None"),
        1,
        samples({"web-1": 100}),
        pods=(pod("web-1"),),
        filter_answer=FilterAnswer(plugin="example.com/None", left_out={"web-1": "it is Monday"}),
    ),
    Code.OWNERS_UNREAD: observe(
        hpa(cpu(), selection_strategy="OwnerReference"),
        1,
        samples({"web-1": 0, "scrape-1": 0}),
        pods=(pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,))),
        owners={REPLICA_SET.uid: OwnerUnavailable(error="timeout"), JOB.uid: OwnerNotFound()},
    ),
    Code.PLUGIN_FAILED: observe(
        hpa(QUEUE, replica_policies=(ReplicaPolicySpec(name="example.com/Plan"),)),
        4,
        series(100),
        policy_answers=(PolicyAnswer(plugin="example.com/Plan", failure="it raised", reason="PluginRaised"),),
        settings=NO_WINDOW,
    ),
    Code.REPLICA_POLICY: observe(
        hpa(QUEUE, replica_policies=(ReplicaPolicySpec(name="example.com/Plan"),)),
        4,
        series(100),
        policy_answers=(PolicyAnswer(plugin="example.com/Plan", replicas=4, reason="by the plan"),),
        settings=NO_WINDOW,
    ),
    Code.CACHES_STALE: observe(
        hpa(QUEUE),
        4,
        series(100),
        stale_inputs=(StaleInput(input="pods", message="pods"),),
        settings=NO_WINDOW,
    ),
    Code.LOSS_POLICY: observe(hpa(losing(QUEUE, "Replicas", replicas=4)), 4, unreadable()),
    Code.WITHIN_TOLERANCE: by_queue(420),
    Code.WITHIN_AFTER_FILLING: observe(hpa(cpu(100)), 10, usage_of(pods(10)[:9], 120), pods=pods(10)),
    Code.DIRECTION_UNSURE: observe(hpa(cpu(50)), 4, usage_of(FULL[:1], 10), pods=FULL),
    Code.NO_READY_PODS: observe(hpa(external(value(10))), 4, series(90), pods=pods(4, ready="False")),
    Code.IDLE_AT_ZERO: by_queue(0, 0, low=0, status=marked()),
    Code.ENOUGH: observe(hpa(external(average(100))), 1, series(70), settings=NO_WINDOW),
    Code.DOWN_WINDOW: observe(hpa(QUEUE), 4, series(100), memory=remembering((4, 60))),
    Code.UP_WINDOW: by_queue(700, behavior=slow_up(window=300), memory=remembering((4, 60))),
    Code.AT_MAXIMUM: by_queue(900, high=4),
    Code.SURGE: by_queue(430, high=4, scale=scale(4, seen=5)),
    Code.AT_MINIMUM: by_queue(100, low=4),
    Code.UP_RATE: by_queue(900, behavior=slow_up(), memory=remembering((4, 60), up=(ScaleEvent(1, T - 60),))),
    Code.DOWN_RATE: by_queue(
        100, behavior=slow_down(), memory=remembering((4, 60), down=(ScaleEvent(1, T - 60),))
    ),
    Code.UP_DISABLED: by_queue(900, behavior=slow_up("Disabled")),
    Code.DOWN_DISABLED: by_queue(100, behavior=slow_down("Disabled")),
}


@pytest.mark.parametrize("reason", STANDING_STILL, ids=str)
def test_a_reason_for_not_scaling(reason):
    decision = run(STANDING_STILL[reason])
    assert decision.desired == decision.current
    assert decision.reason.code == reason


def test_a_write_that_failed_is_told_apart():
    story = explained(by_queue(700), error="conflict")
    assert story.reason == Code.SCALE_NOT_WRITTEN
    assert story.summary == "stays at 4: the new size could not be written"


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (by_queue(700), Code.SCALES_UP),
        (by_queue(200), Code.SCALES_DOWN),
        (by_queue(200, 20), Code.ABOVE_MAXIMUM),
        (by_queue(200, 1, low=2), Code.BELOW_MINIMUM),
        (observe(hpa(QUEUE, low=2, status=marked()), 0, unreadable(), pods=()), Code.BELOW_MINIMUM),
    ],
)
def test_a_reason_for_scaling(seen, reason):
    assert run(seen).reason.code == reason


def test_there_are_more_than_twelve_reasons_for_not_scaling_and_each_is_said_differently():
    texts = {explained(seen).summary for seen in STANDING_STILL.values()}
    assert len(texts) == len(STANDING_STILL) > 12
    assert len({row.says for row in ROWS.values()}) == len(ROWS) == len(Code)


@pytest.mark.parametrize("reason", STANDING_STILL, ids=str)
def test_every_standstill_says_what_would_change_it(reason):
    assert explained(STANDING_STILL[reason]).next_step


class TestExplanation:
    def test_it_names_the_values_at_which_the_replicas_would_change(self):
        story = explained(observe(hpa(cpu(50)), 4, usage_of(FULL, 48), pods=FULL))
        metric = story.metrics[0]
        assert (metric.value, metric.target) == ("48 %", "50 %")
        # 4 pods at 44 % still need 4: only at 37 % do 3 suffice.
        assert (metric.more_above, metric.fewer) == ("55 %", "at 37 % or less")
        assert "asks for more above 55 %, fewer at 37 % or less" in str(story)

    def test_it_names_who_was_left_out_and_why(self):
        both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
        seen = observe(
            hpa(cpu(50), selection_strategy="OwnerReference"),
            1,
            samples({"web-1": 50, "scrape-1": 900}),
            pods=both,
            owners={REPLICA_SET.uid: OwnerNotFound(), JOB.uid: OwnerNotFound()},
        )
        story = explained(seen)
        assert story.pods_left_out["scrape-1"] == "its owner Job/scrape is gone: it no longer exists"
        assert "2 left out" in str(story)

    def test_it_says_how_long_the_window_holds(self):
        story = explained(STANDING_STILL[Code.DOWN_WINDOW])
        assert story.next_step == "the metrics must ask for fewer than 4 until 2026-01-15T12:04:00Z"
        assert [one.replicas for one in story.recommendations] == [4, 1]

    def test_it_says_when_the_rate_allows_more(self):
        story = explained(STANDING_STILL[Code.UP_RATE])
        assert story.next_step == "the scale-up policies allow more from 2026-01-15T12:09:00Z"

    def test_it_says_which_values_would_change_a_standstill(self):
        assert explained(STANDING_STILL[Code.WITHIN_TOLERANCE]).next_step == (
            "more replicas when queue is above 110 per pod; or fewer replicas when queue is at 75 per pod or less"
        )

    def test_a_window_and_a_bound_that_hold_together_are_both_named(self):
        told = explained(observe(hpa(QUEUE, low=4), 4, series(100), memory=remembering((4, 60))))
        assert told.reason == Code.DOWN_WINDOW
        assert told.next_step == (
            "the metrics must ask for fewer than 4 until 2026-01-15T12:04:00Z, and lower minReplicas"
        )

    def test_it_names_the_policy_that_limits(self):
        assert explained(STANDING_STILL[Code.UP_RATE]).limit == "1 pod per 600 s"
        assert explained(by_queue(2000)).limit == "at most 8 in one sync"

    def test_the_winner_and_the_failures_are_marked(self):
        seen = observe(
            hpa(cpu(50), QUEUE, external(average(10), name="b")),
            4,
            unreadable("gone"),
            series(500),
            series(80),
        )
        story = explained(seen)
        assert [one.is_winner for one in story.metrics] == [False, False, True]
        assert story.metrics[0].problem.endswith("gone")
        assert str(story).splitlines()[0] == "ScalesUp: scales from 4 to 8: b above target"

    def test_amounts_are_told_in_their_own_unit(self):
        seen = observe(hpa(external(average("1500m"))), 2, series(3), pods=pods(2))
        assert explained(seen).metrics[0].target == "1.5 per pod"


class TestTheDirectionThatTheMetricsAskFor:
    def test_a_remembered_peak_above_the_maximum_is_no_reason_to_raise_it(self):
        """W1: the window holds an idle workload; its bounds point the other way."""
        told = explained(observe(hpa(QUEUE, high=4), 4, series(100), memory=remembering((22, 60))))
        assert told.reason == Code.DOWN_WINDOW
        assert told.next_step == "the metrics must ask for fewer than 4 until 2026-01-15T12:04:00Z"

    def test_an_earlier_recommendation_that_is_carried_out_is_named_with_its_time(self):
        """W3: the metrics ask for what is there, and the window for more."""
        seen = observe(hpa(QUEUE), 4, series(400), memory=remembering((7, 60)))
        why = "7 replicas were recommended at 2026-01-15T11:59:00Z, within the window of 300 s"
        told = explained(seen)
        assert (told.reason, told.desired) == (Code.EARLIER_RECOMMENDATION, 7)
        assert told.summary == f"scales from 4 to 7: {why}"
        assert run(seen).events[-1].message == f"New size: 7; reason: {why}"

    def test_growing_to_an_earlier_recommendation_is_not_called_below_target(self):
        told = explained(observe(hpa(QUEUE), 4, series(100), memory=remembering((7, 60))))
        assert told.summary.startswith("scales from 4 to 7: 7 replicas were recommended at")

    def test_at_zero_any_value_wakes(self):
        """W4: neither the tolerance nor the target matters there."""
        told = explained(STANDING_STILL[Code.IDLE_AT_ZERO])
        assert told.next_step == "more replicas when queue is above 0"
        assert str(told).splitlines()[2] == (
            "metric: queue is 0 in all, target 100 per pod, asks for 0 (wins); asks for more above 0; every sample is zero"
        )


class TestForeignPods:
    """W5: the cheaper cause comes first, and the foreign pod is named."""

    OWNED = Owner(uid=REPLICA_SET.uid, owners=(DEPLOYMENT,))
    BOTH = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))

    def seen(self, owners, gates=EVERY_GATE):
        reading = samples({"web-1": 50, "scrape-1": 900})
        return observe(hpa(cpu(50), high=1), 1, reading, pods=self.BOTH, owners=owners, gates=gates)

    def test_counting_by_owner_comes_before_a_larger_maximum(self):
        told = explained(self.seen({REPLICA_SET.uid: self.OWNED, JOB.uid: Owner(uid=JOB.uid)}))
        assert told.reason == Code.AT_MAXIMUM
        assert told.pods_foreign == {"scrape-1": "it belongs to Job/scrape"}
        assert told.next_step == (
            "set selectionStrategy to OwnerReference, because 1 counted pod is not the target's own; "
            "the metrics then ask for 1"
        )

    def test_a_maximum_that_the_own_pods_exceed_too_is_still_named(self):
        owners = {REPLICA_SET.uid: self.OWNED, JOB.uid: Owner(uid=JOB.uid)}
        busy = samples({"web-1": 90, "scrape-1": 900})
        told = explained(
            observe(hpa(cpu(50), high=1), 1, busy, pods=self.BOTH, owners=owners, gates=EVERY_GATE)
        )
        assert told.next_step.endswith("the metrics then ask for 2; or raise maxReplicas")

    def test_without_owners_the_number_is_all_that_is_known(self):
        told = explained(self.seen({}))
        assert told.pods_foreign == {}
        assert told.next_step == (
            "set selectionStrategy to OwnerReference, because 1 more pod is counted than the target has; or raise maxReplicas"
        )

    def test_with_the_gate_off_the_gate_is_part_of_the_advice(self):
        told = explained(self.seen({}, FeatureGates(hpa_scale_to_zero=False)))
        assert told.next_step.startswith("turn on the operator's feature gate HPASelectionStrategy, and set")


class TestSurge:
    """A rollout has more pods than replicas for a while; that alone is no reason for a larger maximum."""

    FIVE = pods(5)

    @pytest.mark.parametrize(
        ("metric", "reading", "is_surge"),
        [
            pytest.param(cpu(50), usage_of(FIVE, 43), True, id="4 pods would take it within the tolerance"),
            pytest.param(cpu(50), usage_of(FIVE, 60), False, id="every pod is above the target"),
            pytest.param(QUEUE, series(430), True, id="a total that 4 replicas take within the tolerance"),
            pytest.param(QUEUE, series(445), False, id="a total that needs 5 replicas"),
            pytest.param(external(value(100)), series(85), True, id="a value below its target"),
            pytest.param(external(value(100)), series(120), False, id="a value above its target"),
        ],
    )
    def test_at_the_maximum_only_what_the_replicas_cannot_take_asks_for_a_larger_one(
        self, metric, reading, is_surge
    ):
        seen = observe(hpa(metric, high=4), 4, reading, scale=scale(4, seen=5), pods=self.FIVE)
        told = explained(seen)
        assert (told.current, told.desired) == (4, 4)
        if is_surge:
            assert told.reason == Code.SURGE
            assert told.next_step == "the rollout must end, so that the target has as many pods as replicas"
        else:
            assert told.reason == Code.AT_MAXIMUM
            assert told.next_step == "raise maxReplicas"

    def test_one_metric_that_the_replicas_cannot_take_is_enough(self):
        readings = usage_of(self.FIVE, 43), series(445)
        seen = observe(hpa(cpu(50), QUEUE, high=4), 4, *readings, scale=scale(4, seen=5), pods=self.FIVE)
        assert explained(seen).reason == Code.AT_MAXIMUM

    def test_the_end_of_the_rollout_brings_what_was_said(self):
        after = observe(hpa(cpu(50), high=4), 4, usage_of(pods(4), 43 * 5 // 4), pods=pods(4))
        assert explained(after).reason == Code.WITHIN_TOLERANCE

    def test_a_foreign_pod_is_no_surge(self):
        seen = observe(hpa(cpu(50), high=4), 4, usage_of(self.FIVE, 43), pods=self.FIVE)
        told = explained(seen)
        assert told.reason == Code.AT_MAXIMUM
        assert told.summary.endswith("maxReplicas; the selector counts 1 pod more than the target has")


class TestFieldsWithoutEffect:
    """W9: what a gate that is off ignores is said, field by field."""

    ALL_OFF = FeatureGates.of({"HPAConfigurableTolerance": False, "HPAScaleToZero": False})
    TIGHT = behavior(rules(("Pods", 4, 15), window=0, tolerance=0.05))

    def seen(self, gates, load=0):
        autoscaler = hpa(QUEUE, low=0, behavior=self.TIGHT, selection_strategy="OwnerReference")
        return observe(
            autoscaler,
            1,
            series(load),
            gates=gates,
            owners={REPLICA_SET.uid: TestForeignPods.OWNED},
            settings=NO_WINDOW,
        )

    def test_each_has_a_line_in_the_condition_and_in_the_explanation(self):
        seen = self.seen(self.ALL_OFF)
        found = condition(run(seen), "FieldsIgnored")
        assert (found.status, found.reason) == ("True", "FeatureGateDisabled")
        assert found.message.split("; ") == list(explained(seen).ignored_fields)
        assert [
            line.split(": ")[1] for line in str(explained(seen)).splitlines() if line.startswith("ignored")
        ] == [
            "spec.minReplicas",
            "spec.selectionStrategy",
            "spec.behavior.scaleUp.tolerance",
        ]

    def test_with_the_gates_on_there_is_none(self):
        assert condition(run(self.seen(EVERY_GATE)), "FieldsIgnored") is None
        assert explained(self.seen(EVERY_GATE)).ignored_fields == ()

    def test_the_condition_goes_when_the_gate_comes_on(self):
        seen = self.seen(self.ALL_OFF)
        after, now = later(seen, run(seen), gates=EVERY_GATE)
        assert condition(run(after, now), "FieldsIgnored") is None

    def test_a_minimum_of_zero_that_counts_as_one_is_not_called_the_minimum(self):
        told = explained(
            observe(
                hpa(QUEUE, low=0),
                1,
                series(0),
                gates=FeatureGates(hpa_scale_to_zero=False),
                settings=NO_WINDOW,
            )
        )
        assert told.reason == Code.AT_MINIMUM
        assert (
            "spec.minReplicas: 0 has no effect while the feature gate HPAScaleToZero is off" in told.summary
        )
        assert told.next_step == "turn on the operator's feature gate HPAScaleToZero"


def test_a_dry_run_is_told_in_the_first_line():
    """W8."""
    annotated = hpa(QUEUE, metadata={"annotations": {"autoscaling.trimtab.dev/mode": "DryRun"}})
    lines = str(explained(observe(annotated, 4, series(400)))).splitlines()
    assert lines[0].endswith("(dry run: nothing is scaled)")


@pytest.mark.parametrize(
    ("metric", "reading", "text"),
    [
        (external(average(30), "queue_length", {"matchLabels": {"queue": "mail"}}), series(78),
         'queue_length{queue="mail"} is 26 per pod (78 in all), target 30 per pod'),
        (external(value(30)), series(78), "queue is 78, target 30"),
        (cpu(50), usage_of(pods(3), 50), "cpu is 50 %, target 50 %"),
        (cpu_value("70m"), usage_of(pods(3), 50), "cpu is 0.05 cores per pod, target 0.07 cores per pod"),
        (cpu_value("2"), usage_of(pods(3), 1000), "cpu is 1 core per pod, target 2 cores per pod"),
        (memory_value("64Mi"), usage_of(pods(3), 32 * 2**20 * 1000), "memory is 32 MiB per pod, target 64 MiB per pod"),
        (pods_metric("30"), usage_of(pods(3), 20_000), "qps is 20 per pod, target 30 per pod"),
    ],
)  # fmt: skip
def test_values_have_units_and_averages_say_per_pod(metric, reading, text):
    assert f"metric: {text}, asks for" in str(explained(observe(hpa(metric), 3, reading)))
