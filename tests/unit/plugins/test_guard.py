"""A guarded plug-in stops nothing but itself."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from trimtab.plugins.errors import DeclinedError, WrongAnswerError
from trimtab.plugins.guard import (
    FAILURES_BEFORE_PAUSE,
    PAUSE,
    Guard,
    Guards,
    PluginFailure,
)
from trimtab.plugins.kinds import Declaration, PluginKind
from trimtab.plugins.metrics import PluginMetrics
from trimtab.plugins.pod_filter import FilterNode, FilterPod
from trimtab.plugins.registry import Plugin, Plugins
from trimtab.plugins.time_limit import WAITS_BEFORE_FAILURE


class Stopwatch:
    """A stopwatch that a test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def guard(function: Callable[[Any], Any], kind: PluginKind = PluginKind.POD_FILTER, **more: Any) -> Guard:
    """Return the guard of a function."""
    plugin = Plugin("example.com/Plugin", kind, function, "1.2", declaration=Declaration(budget=0.02))
    return Guard(plugin, **more)


def any_answer(answer: Any) -> Any:
    """Accept every answer but a negative number."""
    if isinstance(answer, int) and answer < 0:
        raise WrongAnswerError(f"{answer} pods")
    return answer


def call(guarded: Guard, argument: Any = None, *, user: str = "shop/web", now: float = 0.0) -> Any:
    return guarded.call(argument, any_answer, user=user, now=now)


def fail(argument: Any) -> Any:
    if argument == "raise":
        raise KeyError("zone")
    if argument == "loop":
        while True:
            pass
    if argument == "stubborn":
        while True:
            try:
                while True:
                    pass
            except BaseException:  # a plug-in that catches everything
                if fail.caught:  # type: ignore[attr-defined] # a mark for the test
                    raise
                fail.caught = True  # type: ignore[attr-defined] # a mark for the test
    if argument in {"swallow", "swallow and raise"}:
        try:
            threading.Event().wait()
        except BaseException:  # noqa: BLE001 - a plug-in that catches everything, and answers
            if argument != "swallow":
                raise ValueError("interrupted") from None
    return argument


@pytest.mark.parametrize(
    ("argument", "reason", "message"),
    [
        pytest.param(
            "raise", "PluginRaised", "pod filter example.com/Plugin 1.2 raised KeyError: 'zone'", id="raises"
        ),
        pytest.param(
            -1,
            "PluginWrongAnswer",
            "pod filter example.com/Plugin 1.2 returned what it may not: -1 pods",
            id="nonsense",
        ),
        pytest.param(
            "loop",
            "PluginTooSlow",
            "pod filter example.com/Plugin 1.2 took longer than its 20 ms",
            id="never ends",
        ),
        pytest.param(
            "stubborn",
            "PluginTooSlow",
            "pod filter example.com/Plugin 1.2 took longer than its 20 ms",
            id="catches the interruption",
        ),
        *(
            pytest.param(
                argument,
                "PluginTooSlow",
                "pod filter example.com/Plugin 1.2 took longer than its 20 ms",
                id=f"waits until it is interrupted: {argument}",
            )
            for argument in ("swallow", "swallow and raise")
        ),
    ],
)
def test_a_failed_call_becomes_a_sentence(argument: Any, reason: str, message: str) -> None:
    fail.caught = False  # type: ignore[attr-defined] # a mark for the test
    failure = call(guard(fail), argument)
    assert failure == PluginFailure(
        plugin="example.com/Plugin", version="1.2", reason=reason, message=message
    )


@pytest.mark.parametrize("field", FilterNode.__struct_fields__)
def test_a_filter_that_misses_its_nodes_is_told_to_declare_them(field: str) -> None:
    pod = FilterPod(name="web-1")
    words = "; pod.node is None without @declare(needs_nodes=True)"
    assert words in call(guard(lambda seen: getattr(seen.node, field)), pod).message
    policy = guard(lambda seen: getattr(seen.node, field), PluginKind.REPLICA_POLICY)
    assert words not in call(policy, pod).message
    declared = Declaration(budget=0.02, needs_nodes=True)
    known = Plugin("example.com/Plugin", PluginKind.POD_FILTER, policy.plugin.call, declaration=declared)
    assert words not in call(Guard(known), pod).message


def test_a_slow_call_fails_also_where_nothing_can_interrupt_it() -> None:
    watch = Stopwatch()

    def slow(_seen: object) -> int:
        watch.seconds += 0.2
        return 1

    assert call(guard(slow, stopwatch=watch)).reason == "PluginTooSlow"


def test_after_failures_in_a_row_the_plugin_pauses_for_all_and_names_the_last_object() -> None:
    guarded = guard(fail)
    users = [f"shop/{number}" for number in range(FAILURES_BEFORE_PAUSE)]
    assert [call(guarded, "raise", user=user).reason for user in users] == ["PluginRaised"] * 3
    paused = call(guarded, 7, user="shop/api", now=4.0)
    assert (guarded.calls, paused.reason) == (3, "PluginPaused")
    assert paused.message.endswith(
        "raised KeyError: 'zone' for shop/2; it pauses for 5 minutes after 3 failures"
    )
    assert call(guarded, "raise", now=PAUSE).reason == "PluginRaised"
    assert call(guarded, 7, now=PAUSE + 1).reason == "PluginPaused"  # one more failure is enough
    assert call(guarded, 7, now=2 * PAUSE) == 7
    assert call(guarded, "raise", now=2 * PAUSE + 1).reason == "PluginRaised"
    assert call(guarded, 7, now=2 * PAUSE + 2) == 7  # a success counts from the start again


def test_a_plugin_that_fails_for_one_object_among_others_does_not_pause() -> None:
    guarded = guard(fail)
    answers = [
        call(guarded, "raise" if now % 2 else 7, user=f"shop/{now % 2}", now=float(now)) for now in range(20)
    ]
    assert [getattr(answer, "reason", answer) for answer in answers] == [7, "PluginRaised"] * 10


def test_a_slow_plugin_pauses() -> None:
    watch = Stopwatch()

    def slow(_seen: object) -> int:
        watch.seconds += 1.0
        return 1

    guarded = guard(slow, stopwatch=watch)
    for number in range(FAILURES_BEFORE_PAUSE):
        assert call(guarded, user=f"shop/{number}").reason == "PluginTooSlow"
    assert call(guarded, user="shop/new").reason == "PluginPaused"
    assert guarded.calls == FAILURES_BEFORE_PAUSE


def test_a_plugin_that_sleeps_in_each_call_pauses() -> None:
    wall = Stopwatch()

    def sleepy(seconds: float) -> int:
        wall.seconds += seconds
        return 1

    guarded = guard(sleepy, wall_clock=wall)
    answers = [call(guarded, 0.9, user=f"shop/{number}") for number in range(WAITS_BEFORE_FAILURE - 1)]
    assert answers == [1] * (WAITS_BEFORE_FAILURE - 1)  # as on a machine that stalls
    assert call(guarded, 0.1) == 1
    failures = [call(guarded, 0.9, user=f"shop/{number}") for number in range(WAITS_BEFORE_FAILURE + 3)]
    reasons = [failure.reason for failure in failures if isinstance(failure, PluginFailure)]
    assert reasons == ["PluginTooSlow"] * FAILURES_BEFORE_PAUSE + ["PluginPaused"]
    assert "sleeps or waits: 10 calls in a row took longer than 200 ms for shop/" in failures[-1].message
    assert guarded.seconds == pytest.approx(wall.seconds)


def test_a_plugin_that_declines_does_not_pause() -> None:
    def decline(_seen: object) -> int:
        raise DeclinedError("no nodes yet")

    guarded = guard(decline)
    failures = [call(guarded, now=float(now)) for now in range(10)]
    assert {failure.message for failure in failures} == {
        "pod filter example.com/Plugin 1.2 cannot answer: no nodes yet"
    }


def test_each_traceback_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    guarded = guard(fail)
    with caplog.at_level(logging.ERROR):
        for user in range(20):
            call(guarded, "raise", user=str(user))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.message.startswith("plug-in failed for 0: ")
    assert "raised KeyError" in record.message
    assert caplog.text.count("  File ") == 1, "the plug-in's own"


def test_a_text_that_raises_or_is_long_is_still_a_sentence() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def raises(error: Exception) -> None:
        raise error

    guarded = guard(raises)
    assert call(guarded, UnreadableError()).message.endswith("(its text cannot be read)")
    assert len(call(guarded, ValueError("x" * 10_000)).message) < 400


def test_a_source_that_waits_too_long_is_cancelled() -> None:
    async def hang(_query: object) -> None:
        await asyncio.Event().wait()

    async def run() -> Any:
        guarded = guard(hang, PluginKind.METRIC_SOURCE)
        return await guarded.call_async(lambda: hang(None), user="queue", now=0.0, seconds=0.01)

    assert asyncio.run(run()).message == "metric source example.com/Plugin 1.2 took longer than its 10 ms"


def test_a_plugin_that_could_not_be_loaded_has_a_metric_too() -> None:
    plugin = Plugin("example.com/Plugin", PluginKind.POD_FILTER, fail, "1.2")
    registry = CollectorRegistry()
    PluginMetrics(Guards(Plugins([plugin], {"example.com/Broken": "cannot be imported"})), registry)
    good = {"plugin": "example.com/Plugin", "kind": "pod filter", "version": "1.2"}
    broken = {"plugin": "example.com/Broken", "kind": "", "version": ""}
    assert registry.get_sample_value("trimtab_plugin_loaded", good) == 1
    assert registry.get_sample_value("trimtab_plugin_loaded", broken) == 0
    alone = CollectorRegistry()
    PluginMetrics(Guards(Plugins([], {"example.com/Broken": "cannot be imported"})), alone)
    assert alone.get_sample_value("trimtab_plugin_loaded", broken) == 0


def test_without_plugins_there_are_no_metrics_of_them() -> None:
    registry = CollectorRegistry()
    PluginMetrics(Guards(Plugins()), registry)
    assert not list(registry.collect())


def test_calls_and_failures_are_counted_by_plugin() -> None:
    plugin = Plugin("example.com/Plugin", PluginKind.POD_FILTER, fail, "1.2")
    guards, registry = Guards(Plugins([plugin])), CollectorRegistry()
    PluginMetrics(guards, registry)
    guarded = guards.find(PluginKind.POD_FILTER, "example.com/Plugin")
    assert guarded is not None
    call(guarded, 1)
    call(guarded, "raise")
    labels = {"plugin": "example.com/Plugin", "kind": "pod filter", "version": "1.2"}
    assert registry.get_sample_value("trimtab_plugin_calls_total", labels) == 2
    failed = registry.get_sample_value("trimtab_plugin_failures_total", {**labels, "reason": "PluginRaised"})
    assert failed == 1
    assert guards.find(PluginKind.ESTIMATOR, "example.com/Plugin") is None
