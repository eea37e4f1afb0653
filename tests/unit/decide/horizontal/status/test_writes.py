"""Status writes: what is written at once, what waits and for how long, and how many writes that saves."""

import random
from collections.abc import Callable
from copy import copy
from datetime import timedelta
from functools import partial
from math import inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.unit.decide.horizontal.builders import (
    NOW,
    T,
    average,
    behavior,
    cpu,
    cpu_value,
    external,
    hpa,
    later,
    losing,
    observe,
    pods,
    rules,
    run,
    series,
    unreadable,
    usage_of,
)
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.memory import (
    EMPTY,
    LastGood,
    Memory,
    Recommendation,
    ScaleEvent,
    is_restored_alike,
    restore_memory,
)
from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.rules import DEFAULT_SETTINGS
from trimtab.decide.horizontal.status.generations import must_write
from trimtab.decide.horizontal.status.moved_values import have_same_metrics, is_visible_change
from trimtab.decide.horizontal.status.writes import (
    EVERY_SYNC,
    UNKNOWN_LAG,
    StatusLag,
    StatusLimits,
    StatusWrite,
    StoredStatus,
    WriteReason,
    lag_after_write,
    plan_status_write,
    urgent_reason,
)
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

LIMITS = StatusLimits()
CPU = hpa(cpu(100))


def status_of(percent: int, replicas: int = 4) -> HorizontalPodAutoscalerStatus:
    """Return the status at that utilization, whose target is 100 %."""
    status: HorizontalPodAutoscalerStatus = run(
        observe(CPU, replicas, usage_of(pods(replicas), percent))
    ).status
    return status


STORED = status_of(100)


def changed(old: HorizontalPodAutoscalerStatus, kind: str, **fields) -> HorizontalPodAutoscalerStatus:
    """Return the status with another condition of that type."""
    conditions = tuple(
        msgspec.structs.replace(condition, **fields) if condition.type == kind else condition
        for condition in old.conditions
    )
    return msgspec.structs.replace(old, conditions=conditions)


ABLE = changed(STORED, "AbleToScale", message="pod 7 of 9 used 0.51 cores")


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(STORED, STORED, None, id="nothing"),
        pytest.param(STORED, status_of(103), None, id="a value"),
        pytest.param(STORED, msgspec.structs.replace(STORED, current_replicas=5), "replicas", id="replicas"),
        pytest.param(STORED, msgspec.structs.replace(STORED, desired_replicas=5), "replicas", id="desired"),
        pytest.param(STORED, msgspec.structs.replace(STORED, last_scale_time=NOW), "replicas", id="a scale"),
        pytest.param(
            STORED, msgspec.structs.replace(STORED, observed_generation=2), "generation", id="a generation"
        ),
        pytest.param(
            STORED, changed(STORED, "ScalingLimited", status="True"), "condition", id="a condition's status"
        ),
        pytest.param(
            STORED, changed(STORED, "AbleToScale", reason="DryRun"), "condition", id="a condition's reason"
        ),
        pytest.param(
            STORED,
            changed(STORED, "AbleToScale", last_transition_time=NOW.replace(year=2020)),
            "condition",
            id="a condition's time",
        ),
        pytest.param(
            STORED,
            msgspec.structs.replace(STORED, conditions=STORED.conditions[1:]),
            "condition",
            id="a condition that is gone",
        ),
        pytest.param(STORED, ABLE, "condition", id="another message"),
        pytest.param(
            ABLE,
            changed(STORED, "AbleToScale", message="pod 8 of 10 used 12 cores"),
            None,
            id="other numbers in a message",
        ),
        pytest.param(STORED, msgspec.structs.replace(STORED, current_metrics=()), "metrics", id="no value"),
    ],
)
def test_everything_but_moved_values_is_written_at_once(old, new, want):
    assert urgent_reason(old, new) == want


def test_a_metric_with_another_name_or_kind_of_value_is_written_at_once():
    one, other = external(average(100), name="mail"), external(average(100), name="jobs")
    before, after = (run(observe(hpa(metric), 4, series(400))).status for metric in (one, other))
    assert not have_same_metrics(before.current_metrics, after.current_metrics)
    alike = msgspec.structs.replace(before, current_metrics=after.current_metrics)
    assert urgent_reason(before, alike) is WriteReason.METRICS
    ratio = run(observe(hpa(cpu_value("100m")), 4, usage_of(pods(4), 100))).status.current_metrics
    assert not have_same_metrics(STORED.current_metrics, ratio)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(100, 105, False, id="5 % of the target"),
        pytest.param(100, 106, True, id="6 % of the target"),
        pytest.param(50, 54, False, id="4 % of the target are 8 % of the value"),
        pytest.param(89, 90, True, id="into the tolerance"),
        pytest.param(111, 110, True, id="into the tolerance from above"),
        pytest.param(111, 113, False, id="both above the tolerance"),
        pytest.param(0, 5, False, id="from nothing"),
        pytest.param(0, 6, True, id="from nothing to 6 %"),
    ],
)
def test_a_change_is_visible_beyond_a_share_of_the_target_or_across_the_tolerance(old, new, want):
    before, after = status_of(old), status_of(new)
    assert _is_visible(before, after) is want


def _is_visible(before, after, metrics=CPU.spec.metrics):
    return is_visible_change(before.current_metrics, after.current_metrics, metrics, Tolerance(), 0.05)


def test_the_average_is_visible_where_requests_changed_and_the_utilization_did_not():
    before, after = (
        run(observe(CPU, 2, usage_of(pods(2, cpu=size), size), pods=pods(2, cpu=size))).status
        for size in (100, 200)
    )
    assert urgent_reason(before, after) is None
    assert _is_visible(before, after)


@pytest.mark.parametrize(("new", "want"), [(104, False), (106, True)])
def test_a_value_of_which_the_target_is_unknown_is_compared_with_itself(new, want):
    assert _is_visible(STORED, status_of(new), metrics=()) is want


def plan(percent, lag, now=100.0, limits=LIMITS, old=100, stored=None, replicas=4):
    """Plan the write of a utilization, while the cluster stores another."""
    first = run(observe(CPU, replicas, usage_of(pods(replicas), old)))
    seen, when = later(
        observe(CPU, replicas), first, samples=(usage_of(pods(replicas), percent),), replicas=replicas
    )
    return plan_status_write(
        seen, run(seen, when), StoredStatus(lambda: stored or first.memory), lag, now, limits
    )


@pytest.mark.parametrize(
    ("percent", "lag", "reason", "left"),
    [
        pytest.param(100, None, None, None, id="nothing changed"),
        pytest.param(100, StatusLag(40.0, is_visible=True), None, None, id="as it was before"),
        pytest.param(100, UNKNOWN_LAG, None, UNKNOWN_LAG, id="nothing changed yet in this epoch"),
        pytest.param(103, None, None, StatusLag(100.0), id="a small change waits"),
        pytest.param(103, StatusLag(55.0), None, StatusLag(55.0), id="it still waits for the last sync"),
        pytest.param(103, StatusLag(54.0), None, StatusLag(54.0), id="a sync may be a second late"),
        pytest.param(103, StatusLag(53.9), "age", StatusLag(53.9), id="the next sync would be too late"),
        pytest.param(103, UNKNOWN_LAG, "age", StatusLag(-inf), id="an earlier leader may have let it wait"),
        pytest.param(108, None, None, StatusLag(100.0, is_visible=True), id="a visible change waits a sync"),
        pytest.param(
            108, StatusLag(85.0), None, StatusLag(85.0, is_visible=True), id="it was not visible before"
        ),
        pytest.param(
            108,
            StatusLag(85.0, is_visible=True),
            "visible",
            StatusLag(85.0, is_visible=True),
            id="a visible change that lasts is written",
        ),
    ],
)
def test_moved_values_wait_until_they_are_visible_twice_or_old(percent, lag, reason, left):
    assert plan(percent, lag) == StatusWrite(reason and WriteReason(reason), left)


def test_without_a_limit_every_change_is_written_in_every_sync():
    assert plan(101, None, limits=EVERY_SYNC).reason is WriteReason.EVERY_SYNC
    assert plan(100, None, limits=EVERY_SYNC).reason is None


def test_a_period_longer_than_the_limit_writes_in_every_sync():
    assert plan(101, None, limits=StatusLimits(sync_period=120.0)).reason is WriteReason.AGE


def test_the_first_limit_of_an_epoch_differs_by_uid_so_that_not_all_hpas_write_in_one_sync():
    lags = [lag_after_write(f"uid-{number}", UNKNOWN_LAG, 100.0, LIMITS) for number in range(1000)]
    due = [lag.since for lag in lags if lag is not None]
    assert len(due) == 1000
    quarters = [
        sum(100.0 - 15 * (part + 1) < since <= 100.0 - 15 * part for since in due) for part in range(4)
    ]
    assert sum(quarters) == 1000
    assert min(quarters) > 200
    assert lag_after_write("uid-1", StatusLag(40.0), 100.0, LIMITS) is None


# What a failover needs.


def remembered(*recommendations, **fields):
    return Memory(uid="uid-of-hpa", recommendations=recommendations, replicas=4, **fields)


OLDER, NEWER = Recommendation(4, T - 60), Recommendation(4, T)


@pytest.mark.parametrize(
    ("stored", "newest", "want"),
    [
        pytest.param(remembered(OLDER), remembered(NEWER), True, id="the same for longer"),
        pytest.param(
            remembered(Recommendation(6, T - 60)),
            remembered(Recommendation(6, T)),
            True,
            id="growth held back for longer",
        ),
        pytest.param(
            remembered(Recommendation(3, T - 60)),
            remembered(Recommendation(3, T)),
            False,
            id="shrinking held back for longer",
        ),
        pytest.param(
            remembered(Recommendation(2, T - 60)),
            remembered(Recommendation(2, T)),
            True,
            id="held by the minimum for longer",
        ),
        pytest.param(remembered(OLDER), remembered(OLDER, Recommendation(3, T)), False, id="one more"),
        pytest.param(remembered(OLDER), remembered(Recommendation(5, T)), False, id="another"),
        pytest.param(remembered(NEWER), remembered(OLDER), False, id="the clock was set back"),
        pytest.param(EMPTY, remembered(NEWER), False, id="none yet"),
        pytest.param(
            remembered(OLDER), remembered(NEWER, scale_up=(ScaleEvent(1, T),)), False, id="a scale event"
        ),
        pytest.param(
            remembered(OLDER, last_good=(LastGood("cpu", 4, T - 60),)),
            remembered(NEWER, last_good=(LastGood("cpu", 4, T),)),
            True,
            id="the same good value",
        ),
        pytest.param(
            remembered(OLDER, last_good=(LastGood("cpu", 4, T - 60),)),
            remembered(NEWER, last_good=(LastGood("cpu", 5, T),)),
            False,
            id="another good value",
        ),
        pytest.param(
            remembered(OLDER), remembered(NEWER, last_event_times={"MetricLost": T}), False, id="an event"
        ),
        pytest.param(
            remembered(OLDER), remembered(NEWER, rejected_since={"cpu": T}), False, id="a rejection"
        ),
        pytest.param(remembered(OLDER), remembered(NEWER, strategy="OwnerReference"), False, id="a strategy"),
    ],
)
def test_the_memory_is_written_at_once_if_a_new_leader_would_decide_otherwise(stored, newest, want):
    assert is_restored_alike(stored, newest, current=4, timeless=2) is want
    if want and newest.recommendations[-1].replicas >= 4:
        assert restore_memory(stored, 4, T + 20) == restore_memory(newest, 4, T + 20)


def test_a_scale_down_that_is_held_back_is_stored_in_every_sync_that_writes():
    held = hpa(cpu(100), low=2)
    first = run(observe(held, 4, usage_of(pods(4), 60)))
    seen, when = later(observe(held, 4), first, samples=(usage_of(pods(4), 61),))
    decision = run(seen, when)
    assert decision.desired == 4
    assert (
        plan_status_write(seen, decision, StoredStatus(lambda: first.memory), None, 0.0, LIMITS).reason
        is WriteReason.MEMORY
    )


@pytest.mark.parametrize(("window", "reason"), [(0, None), (60, WriteReason.MEMORY)])
def test_at_the_minimum_only_a_window_of_scale_ups_needs_the_time(window, reason):
    low = hpa(cpu(100), low=4, behavior=behavior(up=rules(("Pods", 4, 15), window=window)))
    first = run(observe(low, 4, usage_of(pods(4), 30)))
    seen, when = later(observe(low, 4), first, samples=(usage_of(pods(4), 31),))
    assert (
        plan_status_write(seen, run(seen, when), StoredStatus(lambda: first.memory), None, 0.0, LIMITS).reason
        is reason
    )


def test_a_lost_metric_is_written_at_once_and_its_return_too():
    last = losing(cpu(100), "LastGood")
    first = run(observe(hpa(last), 4, usage_of(pods(4), 100)))
    seen, when = later(observe(hpa(last), 4), first, samples=(unreadable(),))
    lost = run(seen, when)
    assert (
        plan_status_write(seen, lost, StoredStatus(lambda: first.memory), None, 0.0, LIMITS).reason
        is WriteReason.CONDITION
    )
    seen, when = later(seen, lost, 30, samples=(usage_of(pods(4), 101),))
    back = run(seen, when)
    assert (
        plan_status_write(seen, back, StoredStatus(lambda: lost.memory), None, 0.0, LIMITS).reason
        is WriteReason.CONDITION
    )


@pytest.mark.parametrize(
    ("has_other", "lag", "limits", "written"),
    [
        pytest.param(True, None, LIMITS, None, id="waits for the second sync"),
        pytest.param(True, StatusLag(85.0, is_visible=True), LIMITS, "visible", id="the second sync"),
        pytest.param(True, UNKNOWN_LAG, LIMITS, "age", id="the first sync of an epoch"),
        pytest.param(True, None, EVERY_SYNC, "every_sync", id="every sync"),
        pytest.param(False, StatusLag(85.0, is_visible=True), LIMITS, None, id="the same reason"),
    ],
)
def test_another_reason_is_written_although_nothing_else_differs(has_other, lag, limits, written):
    """It was not stored, so that `kubectl get` showed the old one for as long as no value moved."""
    first = run(observe(CPU, 4, usage_of(pods(4), 100)))
    seen, when = later(observe(CPU, 4), first, samples=(usage_of(pods(4), 100),))
    decision = run(seen, when)
    assert not decision.status_changed
    stored = StoredStatus(lambda: first.memory, has_other)
    assert plan_status_write(seen, decision, stored, lag, 100.0, limits).reason == written


# Sequences of statuses.


class Cluster:
    """The status that the cluster stores while new ones come in each sync."""

    def __init__(self, limits: StatusLimits = LIMITS) -> None:
        self.limits = limits
        self.stored = STORED
        self.lag: StatusLag | None = UNKNOWN_LAG
        self.newest_before = STORED
        self.writes = self.writes_of_upstream = 0

    def sync(self, newest: HorizontalPodAutoscalerStatus, now: float) -> WriteReason | None:
        self.writes_of_upstream += must_write(newest, self.newest_before)
        self.newest_before = newest
        seen = Observation(hpa=msgspec.structs.replace(CPU, status=self.stored), settings=DEFAULT_SETTINGS)
        decision = Decision(
            now=now, status=newest, status_changed=must_write(newest, self.stored), trace=DecisionTrace()
        )
        reason, self.lag = plan_status_write(
            seen, decision, StoredStatus(lambda: EMPTY), self.lag, now, self.limits
        )
        if reason is not None:
            self.stored, self.writes = newest, self.writes + 1
            self.lag = lag_after_write("uid-of-hpa", self.lag, now, self.limits)
        return reason


STATUSES = some.builds(
    lambda percent, replicas, active, message: changed(
        msgspec.structs.replace(status_of(percent), current_replicas=replicas, desired_replicas=replicas),
        "ScalingActive",
        status=active,
        message=message,
    ),
    some.one_of(some.integers(80, 120), some.integers(98, 102), some.just(100)),
    some.sampled_from([4, 4, 4, 4, 4, 5]),
    some.sampled_from(["True", "True", "True", "True", "False"]),
    some.sampled_from(["5 pods", "6 pods"]),
)


@given(
    some.lists(STATUSES, min_size=1, max_size=40), some.floats(0, 200), some.sampled_from([5.0, 15.0, 30.0])
)
def test_the_stored_status_is_never_old_for_longer_than_the_limit(statuses, max_age, period):
    limits = StatusLimits(max_age=max_age, sync_period=period)
    cluster = Cluster(limits)
    differs_since = visible_since = None
    for number, newest in enumerate(statuses):
        now = number * period
        before = cluster.stored
        reason = cluster.sync(newest, now)
        if not must_write(newest, before):
            assert reason is None
        if max_age == 0 or urgent_reason(before, newest) is not None:
            assert cluster.stored == newest or not must_write(newest, before)
        assert urgent_reason(cluster.stored, newest) is None
        if not must_write(newest, cluster.stored):
            differs_since = visible_since = None
            continue
        differs_since = now if differs_since is None else differs_since
        # It stays as it is until the next sync.
        assert now + period - differs_since <= max_age + 1.0
        if not _is_visible(cluster.stored, newest):
            visible_since = None
            continue
        visible_since = now if visible_since is None else visible_since
        assert visible_since == now


@given(some.lists(STATUSES, min_size=1, max_size=40))
def test_without_a_limit_exactly_the_syncs_of_upstream_write(statuses):
    cluster = Cluster(EVERY_SYNC)
    for number, newest in enumerate(statuses):
        is_new = must_write(newest, cluster.stored)
        assert (cluster.sync(newest, number * 15.0) is not None) == is_new
        assert cluster.stored == newest
    assert cluster.writes == cluster.writes_of_upstream


def uniform(draw: random.Random, _before: float) -> float:
    return draw.uniform(0.95, 1.05)


def per_pod(draw: random.Random, _before: float) -> float:
    return sum(draw.uniform(0.95, 1.05) for _ in range(10)) / 10


def walk(draw: random.Random, before: float) -> float:
    return min(max(before + draw.uniform(-0.02, 0.02), 0.95), 1.05)


@pytest.mark.parametrize("noise", [uniform, per_pod, walk])
def test_noise_of_five_percent_costs_at_most_a_quarter_of_the_writes(noise: Callable[..., float]):
    """Count writes per HPA-hour of real decisions, at levels of usage from 30 % to 105 % of the target."""
    hours, ours, theirs = 4, 0, 0
    workers = pods(4, cpu=1000)
    levels = [0.3, 0.5, 0.6, 0.7, 0.8, 0.95, 1.0, 1.05]
    for level in levels:
        draw, factor = random.Random(level), 1.0
        autoscaler = hpa(cpu(100), low=4)
        lag: StatusLag | None = UNKNOWN_LAG
        seen, memory = observe(autoscaler, 4, pods=workers), EMPTY
        newest = autoscaler.status
        for number in range(hours * 240):
            factor = noise(draw, factor)
            when = NOW + timedelta(seconds=15 * number)
            used = usage_of(workers, round(level * factor * 1000), age=20.0 - number * 15.0)
            seen = msgspec.structs.replace(seen, samples=(used,))
            decision = run(seen, when)
            assert decision.desired == 4
            theirs += must_write(decision.status, newest)
            newest = decision.status
            reason, lag = plan_status_write(
                seen, decision, StoredStatus(partial(copy, memory)), lag, number * 15.0, LIMITS
            )
            stored = seen.hpa.status
            if reason is not None:
                ours, stored, memory = ours + 1, decision.status, decision.memory
                lag = lag_after_write(f"uid-{level}", lag, number * 15.0, LIMITS)
            seen = msgspec.structs.replace(
                seen, hpa=msgspec.structs.replace(autoscaler, status=stored), memory=decision.memory
            )
    per_hour = hours * len(levels)
    figures = f"{ours / per_hour:.1f} writes per HPA-hour, {theirs / per_hour:.1f} in every sync"
    print(f"{noise.__name__}: {figures}")  # noqa: T201 - the figures of docs/performance.md, shown by `pytest -rP`
    assert ours <= theirs / 4
