"""How old a sample may be, by settings and by metric, and a refusal whose words stay the same from sync to sync."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    T,
    average,
    condition,
    cpu,
    external,
    hpa,
    object_metric,
    observe,
    pods,
    pods_metric,
    run,
    samples,
    series,
    told,
    usage_of,
)
from trimtab.decide.horizontal import Rules
from trimtab.decide.horizontal.observation.samples import Move
from trimtab.decide.horizontal.rules import DEFAULT_SETTINGS
from trimtab.model.hpa.metric_annotations import MAX_AGE

QUEUE = external(average(100))


def aged(metric, seconds):
    return msgspec.structs.replace(metric, max_age_seconds=seconds)


def is_refused(decision):
    return condition(decision, "ScalingActive").status == "False"


@pytest.mark.parametrize(
    ("settings", "max_age", "window", "age", "refused"),
    [
        pytest.param({}, None, 0, 120, False, id="two minutes are the usual limit"),
        pytest.param({}, None, 0, 121, True, id="and no more"),
        pytest.param({}, None, 100, 300, False, id="or three windows, if that is more"),
        pytest.param({}, None, 100, 301, True, id="and no more windows"),
        pytest.param({"stale_after": 600}, None, 0, 600, False, id="a flag allows more"),
        pytest.param({"stale_after": 10}, None, 0, 11, True, id="or less"),
        pytest.param({"stale_windows": 9}, None, 100, 900, False, id="a flag allows more windows"),
        pytest.param({}, 600, 0, 600, False, id="the metric allows more"),
        pytest.param({}, 600, 0, 601, True, id="up to its limit"),
        pytest.param({}, 30, 0, 31, True, id="the metric allows less"),
        pytest.param({}, 30, 60, 31, True, id="and its windows do not stretch that"),
        pytest.param({"stale_after": 10}, 600, 0, 600, False, id="the metric knows better than the flag"),
        pytest.param({}, 1, 0, -86400, False, id="the future is another clock's matter"),
    ],
)
@pytest.mark.parametrize("metric", [QUEUE, object_metric(average(100)), pods_metric("100m"), cpu(100)])
def test_how_old_a_sample_may_be(metric, settings, max_age, window, age, refused):
    chosen = pods(4)
    reading = usage_of(chosen, 100, age=age, window=window)
    if metric.pods is None and metric.resource is None:
        reading = series(400, age=age, window=window)
    numbers = msgspec.structs.replace(DEFAULT_SETTINGS, **settings)
    seen = observe(hpa(aged(metric, max_age)), 4, reading, pods=chosen, settings=numbers)
    assert is_refused(run(seen)) is refused


def test_another_metric_keeps_its_own_limit():
    autoscaler = hpa(aged(QUEUE, 600), external(average(100), name="other"))
    decision = run(observe(autoscaler, 4, series(900, age=300), series(900, age=300)))
    late, usual = decision.trace.proposals
    assert (late.replicas, usual.reason) == (9, "FailedGetExternalMetric")


def test_upstream_has_no_limit():
    seen = observe(hpa(aged(QUEUE, 1)), 4, series(900, age=9999), rules=Rules.KUBERNETES_1_36)
    assert not is_refused(run(seen))


def lag(age):
    """A source that is always so much behind."""
    return lambda elapsed: age


def stopped(age):
    """A source whose last sample gets older and older."""
    return lambda elapsed: age + elapsed


@pytest.mark.parametrize(
    ("metric", "age"),
    [
        pytest.param(QUEUE, stopped(300), id="an exporter that stopped"),
        pytest.param(QUEUE, lag(180), id="a source that is minutes behind"),
        pytest.param(cpu(50), stopped(300), id="pods of which none has a fresh sample"),
        pytest.param(pods_metric("100m"), lag(180), id="a metric of pods that is behind"),
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a good metric"])
def test_a_refusal_is_told_in_the_same_words_in_every_sync(metric, age, beside):
    """RH-M8: the age was part of the text, so every sync wrote a status and told new events."""
    autoscaler = hpa(metric, *([external(average(100), name="good")] if beside else []))
    seen, written, words = observe(autoscaler, 4), 0, set()
    for sync in range(40):
        elapsed = sync * 15.0
        dated = {"age": age(elapsed) - elapsed}
        old = series(900, **dated)
        if metric.external is None:
            old = samples({pod.name: 900 for pod in seen.pods}, **dated)
        good = series(400, age=20 - elapsed)
        seen = msgspec.structs.replace(seen, samples=(old, good))
        decision = run(seen, NOW + timedelta(seconds=elapsed))
        written += decision.status_changed
        words |= {(event.reason, event.message) for event in decision.events}
        status = msgspec.structs.replace(seen.hpa, status=decision.status)
        seen = msgspec.structs.replace(seen, hpa=status, memory=decision.memory)
    assert written == 1
    assert len(words) == len({reason for reason, _ in words}) > 0


def test_an_annotation_that_is_wrong_is_told():
    seen = observe(hpa(QUEUE), 4, series(400))
    meta = msgspec.structs.replace(seen.hpa.metadata, annotations={MAX_AGE.name: '{"queue": 0}'})
    wrong = msgspec.structs.replace(seen, hpa=msgspec.structs.replace(seen.hpa, metadata=meta))
    assert "InvalidMaxAge" in told(run(wrong))


@pytest.mark.parametrize(
    ("seen_ago", "lacked", "dated_ago", "refused"),
    [
        pytest.param(120, True, 9999, False, id="its date moved two minutes ago, whatever it says"),
        pytest.param(121, True, -9999, True, id="it has not moved for longer, whatever it says"),
        pytest.param(1, False, 121, True, id="it never moved while we asked, and its date is old"),
        pytest.param(1, False, -9999, False, id="it never moved, and its date is of the future"),
        pytest.param(121, False, -9999, True, id="for longer than two minutes"),
    ],
)
def test_a_sample_is_as_old_as_the_time_since_its_date_moved(seen_ago, lacked, dated_ago, refused):
    move = Move(T - dated_ago, T - seen_ago, T - seen_ago - 15 if lacked else None)
    reading = msgspec.structs.replace(series(400, age=dated_ago), moves=(move,))
    assert is_refused(run(observe(hpa(QUEUE), 4, reading))) is refused
