"""What a lost metric counts as: each policy, alone and beside others, over time and over a restart."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    NOW,
    OWNER,
    T,
    average,
    condition,
    cpu,
    explained,
    external,
    hpa,
    later,
    losing,
    marked,
    observe,
    pods,
    run,
    series,
    spec,
    told,
    unreadable,
    usage_of,
    value,
)
from trimtab.decide.horizontal import (
    Code,
    Record,
    Rules,
    replay,
)
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.memory import resume
from trimtab.decide.horizontal.records import record
from trimtab.model.hpa.types import MetricTarget

QUEUE = external(average(10))
OTHER = external(average(10), name="other")
GONE = unreadable("connection refused")


def looked(replicas, *pairs, is_explained=False, **fields):
    """Decide without windows about metrics and their readings."""
    metrics, found = [one for one, _ in pairs], [one for _, one in pairs]
    autoscaler = hpa(*metrics, high=100, low=fields.pop("low", 1), status=fields.pop("status", None))
    seen = observe(autoscaler, replicas, *found, settings=NO_WINDOW, **fields)
    return explained(seen) if is_explained else run(seen)


HOLD = losing(QUEUE, "Hold")
IGNORE = losing(QUEUE, "Ignore")
FIVE = losing(QUEUE, "Replicas", replicas=5)
LAST = losing(QUEUE, "LastGood")


@pytest.mark.parametrize(
    ("metric", "current", "other", "want"),
    [
        pytest.param(QUEUE, 4, 10, 4, id="no policy: others do not lower it"),
        pytest.param(HOLD, 4, 10, 4, id="Hold: others do not lower it"),
        pytest.param(HOLD, 4, 80, 8, id="Hold: others raise it"),
        pytest.param(IGNORE, 4, 10, 1, id="Ignore: the others decide, downwards too"),
        pytest.param(IGNORE, 4, 80, 8, id="Ignore: the others decide upwards"),
        pytest.param(FIVE, 4, 10, 5, id="Replicas: asks for its number"),
        pytest.param(FIVE, 4, 80, 8, id="Replicas: the largest proposal wins"),
        pytest.param(FIVE, 9, 10, 5, id="Replicas: one proposal among others, so it lowers too"),
        pytest.param(LAST, 4, 10, 4, id="LastGood without a good value holds"),
        pytest.param(LAST, 4, 80, 8, id="LastGood without a good value: others raise it"),
    ],
)
def test_one_lost_metric_beside_one_that_is_read(metric, current, other, want):
    assert looked(current, (metric, GONE), (OTHER, series(other))).desired == want


@pytest.mark.parametrize(
    ("metric", "want"), [(QUEUE, 4), (HOLD, 4), (IGNORE, 4), (FIVE, 5), (LAST, 4)], ids=["none", *"hirl"]
)
def test_with_nothing_else_to_go_by_only_a_number_moves_anything(metric, want):
    assert looked(4, (metric, GONE)).desired == want


def test_a_metric_that_holds_is_not_outvoted_by_the_stand_in_of_another():
    assert looked(8, (OTHER, GONE), (FIVE, GONE)).desired == 8
    assert looked(3, (OTHER, GONE), (FIVE, GONE)).desired == 5


@pytest.mark.parametrize("metric", [IGNORE, FIVE, LAST], ids=["ignore", "replicas", "last good"])
def test_a_policy_is_no_answer_to_a_spec_that_is_wrong(metric):
    source = msgspec.structs.replace(metric.external, target=MetricTarget(type="Value"))
    wrong = msgspec.structs.replace(metric, external=source)
    decision = looked(4, (wrong, series(1)), (OTHER, series(10)))
    assert decision.desired == 4
    assert decision.reason.code == Code.METRICS_INCOMPLETE


def test_a_pod_without_a_request_is_a_spec_that_is_wrong():
    chosen = pods(4, cpu=None)
    decision = looked(4, (losing(cpu(), "Replicas", replicas=9), usage_of(chosen, 5)), pods=chosen)
    assert decision.desired == 4


def test_refused_and_missing_samples_are_losses():
    old = series(900, age=9999)
    assert looked(4, (FIVE, old)).desired == 5
    assert looked(4, (losing(cpu(), "Replicas", replicas=5), usage_of(pods(4), 900, age=9999))).desired == 5


@pytest.mark.parametrize(
    ("pairs", "want"),
    [
        ([(IGNORE, GONE), (OTHER, series(0))], 1),
        ([(HOLD, series(0)), (OTHER, series(0))], 0),
        ([(FIVE, GONE), (OTHER, series(0))], 5),
    ],
    ids=["a lost metric keeps one", "all read and idle", "a fall-back"],
)
def test_only_metrics_that_are_read_bring_a_workload_to_zero(pairs, want):
    assert looked(3, *pairs, low=0).desired == want


def test_a_last_good_value_of_zero_keeps_one_replica_and_wakes_none():
    seen = observe(hpa(LAST, low=0), 1, series(0), settings=NO_WINDOW)
    seen = msgspec.structs.replace(seen, memory=run(seen).memory, samples=(GONE,))
    assert run(seen).desired == 1
    asleep = msgspec.structs.replace(
        seen, hpa=hpa(LAST, low=0, status=marked()), scale=observe(None, 0).scale, pods=()
    )
    assert run(asleep).desired == 0


def test_at_zero_a_fall_back_wakes_and_an_ignored_metric_does_not():
    assert looked(0, (FIVE, GONE), low=0, status=marked(), pods=()).desired == 4  # the first step from zero
    assert looked(0, (IGNORE, GONE), (OTHER, series(0)), low=0, status=marked(), pods=()).desired == 0


class TestLastGood:
    def after_loss(self, metric=LAST, good=70, seconds=15, current=4, **changes):
        """Read the metric once, then lose it; return both decisions' worth: what is seen, and when."""
        seen = observe(hpa(metric, high=100), current, series(good), settings=NO_WINDOW)
        decision = run(seen)
        return later(seen, decision, seconds, samples=(GONE,), **changes)

    def test_it_keeps_asking_for_what_it_last_asked_for(self):
        seen, now = self.after_loss(replicas=4)
        assert run(seen, now).desired == 7

    def test_a_ratio_is_not_applied_to_the_replicas_that_it_brought_about(self):
        """The value stays what it was while replicas grow; multiplying again would double them with every sync."""
        seen = observe(hpa(losing(external(value(10)), "LastGood"), high=100), 4, series(20))
        decision = run(seen)
        assert decision.desired == 8
        for step in range(1, 6):
            seen, now = later(seen, decision, 15 * step, samples=(GONE,))
            decision = run(seen, now)
            assert decision.desired == 8

    @pytest.mark.parametrize(
        ("age", "seconds", "want"),
        [(None, 300, 7), (None, 301, 4), (60, 60, 7), (60, 61, 4)],
        ids=["default, in time", "default, too late", "given, in time", "given, too late"],
    )
    def test_up_to_its_age_and_then_it_holds(self, age, seconds, want):
        seen, now = self.after_loss(
            losing(QUEUE, "LastGood", max_age_seconds=age), seconds=seconds, replicas=4
        )
        decision = run(seen, now)
        assert decision.desired == want
        reason = "LastGoodValue" if want == 7 else "LastGoodValueTooOld"
        assert condition(decision, "MetricLost").reason == reason

    def test_it_is_forgotten_when_the_question_changes(self):
        seen, now = self.after_loss(replicas=4)
        changed = hpa(losing(external(average(20)), "LastGood"), high=100)
        assert run(msgspec.structs.replace(seen, hpa=changed), now).desired == 4

    def test_it_is_not_forgotten_when_only_the_policy_changes(self):
        seen, now = self.after_loss(replicas=4)
        changed = hpa(losing(QUEUE, "LastGood", max_age_seconds=600), high=100)
        assert run(msgspec.structs.replace(seen, hpa=changed), now).desired == 7

    def test_it_survives_being_stored_and_costs_little(self):
        seen, now = self.after_loss(replicas=4)
        text = memories.dumps(seen.memory)
        assert memories.loads(text) == seen.memory
        bare = msgspec.structs.replace(seen.memory, last_good=())
        assert len(text) - len(memories.dumps(bare)) < 60
        assert run(msgspec.structs.replace(seen, memory=memories.loads(text)), now).desired == 7

    def test_a_prompt_restart_counts_as_read_until_then(self):
        """The memory is stored when it changes; a metric that was read all along was good until the end."""
        seen, _ = self.after_loss(replicas=7)
        until = seen.memory.at + 90
        taken_up = msgspec.structs.replace(seen, memory=resume(seen.memory, OWNER, 7, until))
        read_last = taken_up.memory.last_good[0].at
        assert read_last == until
        assert run(taken_up, NOW + timedelta(seconds=read_last - T + 299)).desired == 7

    def test_a_restart_while_it_is_lost_gives_it_no_more_time(self):
        seen, now = self.after_loss(replicas=4)
        seen, _ = later(seen, run(seen, now), samples=(GONE,), replicas=4)
        taken_up = msgspec.structs.replace(seen, memory=resume(seen.memory, OWNER, 4, T + 250))
        assert run(taken_up, NOW + timedelta(seconds=301)).desired == 4

    def test_memory_holds_one_entry_per_metric_that_wants_it(self):
        decision = looked(4, (LAST, series(40)), (losing(OTHER, "LastGood"), series(50)), (FIVE, series(40)))
        assert [one.replicas for one in decision.memory.last_good] == [4, 5]
        assert looked(4, (QUEUE, series(40)), memory=decision.memory).memory.last_good == ()


class TestTelling:
    def test_the_condition_says_what_counts_and_the_status_shows_no_value(self):
        decision = looked(4, (FIVE, GONE), (OTHER, series(10)))
        lost = condition(decision, "MetricLost")
        assert (lost.status, lost.reason) == ("True", "FallBackReplicas")
        assert lost.message == "External metric queue cannot be read: its fall-back of 5 replicas counts"
        assert condition(decision, "ScalingActive").message.endswith(
            "from the fall-back of External metric queue"
        )
        assert [one.type for one in decision.status.current_metrics] == ["", "External"]
        assert told(decision) == ["FailedGetExternalMetric", "MetricLost", "SuccessfulRescale"]
        assert (
            decision.events[-1].message
            == "New size: 5; reason: the fall-back of External metric queue asks for 5"
        )
        assert decision.error == ""
        assert [one.error for one in decision.computations] == ["internal", "none"]

    def test_the_texts_stay_the_same_from_sync_to_sync(self):
        seen = observe(hpa(FIVE, high=100), 5, GONE)
        first = run(seen)
        again, now = later(seen, first)
        second = run(again, now)
        assert not second.status_changed
        assert told(second) == ["FailedGetExternalMetric"]

    def test_the_first_good_answer_ends_it(self):
        seen = observe(hpa(FIVE, high=100), 5, GONE)
        back, now = later(seen, run(seen), samples=(series(50, age=-10),))
        decision = run(back, now)
        assert condition(decision, "MetricLost").status == "False"
        assert told(decision) == ["MetricFound"]
        assert told(run(*later(back, decision, 30))) == []

    def test_a_policy_that_is_taken_away_takes_its_condition_along(self):
        seen = observe(hpa(FIVE, high=100), 5, GONE)
        bare, now = later(seen, run(seen), hpa=hpa(QUEUE, high=100))
        assert condition(run(bare, now), "MetricLost") is None

    def test_a_shrinking_says_that_not_every_metric_counted(self):
        decision = looked(4, (IGNORE, GONE), (OTHER, series(10)))
        assert decision.because == "All metrics that count below target"
        assert condition(decision, "MetricLost").reason == "MetricIgnored"

    def test_explanations(self):
        lines = str(
            looked(4, (IGNORE, GONE), (FIVE, GONE), (OTHER, series(10)), is_explained=True)
        ).splitlines()
        assert lines[0] == "ScalesUp: scales from 4 to 5: the fall-back of External metric queue asks for 5"
        assert lines[2].startswith(
            "metric: queue is lost; it is ignored, and the other metrics decide; unable to get"
        )
        assert (
            "its fall-back of 5 replicas counts (wins); unable to get external metric shop/queue" in lines[3]
        )
        assert lines[2].endswith("connection refused")

    def test_a_standstill_by_policy_says_what_to_mend(self):
        story = looked(5, (FIVE, GONE), is_explained=True)
        assert story.reason == Code.LOSS_POLICY
        assert story.summary == "stays at 5: a metric cannot be read, and its loss policy asks for this"
        assert story.next_step.startswith("make this metric readable: unable to get external metric")

    def test_an_annotation_that_cannot_be_used_is_told_and_holds(self):
        broken = hpa(
            QUEUE,
            metadata={"annotations": {"autoscaling.trimtab.dev/on-loss": '{"quue": {"policy": "Ignore"}}'}},
        )
        decision = run(observe(broken, 4, GONE))
        assert decision.desired == 4
        assert "InvalidLossPolicy" in told(decision)
        assert any(
            "no metric of the spec; its metrics are queue" in event.message for event in decision.events
        )


@pytest.mark.parametrize(
    "metric", [IGNORE, FIVE, LAST, HOLD], ids=["ignore", "replicas", "last good", "hold"]
)
def test_records_replay_to_the_same_bytes(metric):
    seen = observe(hpa(metric, OTHER), 4, GONE, series(10))
    written = record.dumps(Record(observation=seen, decision=run(seen)))
    assert record.dumps(replay(record.loads(written))) == written


def test_upstream_knows_no_policies():
    seen = observe(hpa(FIVE, OTHER), 4, GONE, series(10), rules=Rules.KUBERNETES_1_36)
    decision = run(seen)
    assert decision.desired == 4
    assert condition(decision, "MetricLost") is None


def test_an_unknown_policy_holds():
    assert looked(4, (losing(QUEUE, "Guess"), GONE), (OTHER, series(10))).desired == 4
    assert looked(4, (losing(spec("Cheese"), "Ignore"), GONE), (OTHER, series(10))).desired == 4
