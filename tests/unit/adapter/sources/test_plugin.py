"""A plug-in is asked once per cache time, on a thread of its own, and sees what the client asks for."""

import asyncio
import threading
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery
from trimtab.adapter.config import PluginSettings
from trimtab.adapter.files import ConfigurationError
from trimtab.adapter.sources.plugin import SourcePlugins
from trimtab.clock import SystemClock
from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.metric_source import MetricValue
from trimtab.plugins.registry import Plugin, Plugins
from trimtab.plugins.thread import MAX_CALLS, PluginThread, TooManyCallsError

NAME = "example.com/jobs"
WAITING = ExternalMetricQuery("shop", "jobs_waiting")


class Clock(SystemClock):
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_700_000_000 + self.seconds, UTC)


class Jobs:
    """A plug-in that answers what a test says, and remembers what it was asked."""

    def __init__(self, *values: object) -> None:
        self.values = list(values)
        self.asked: list[SimpleNamespace] = []

    async def __call__(self, seen):
        asked = SimpleNamespace(request=seen, labels=seen.labels, thread=threading.current_thread())
        self.asked.append(asked)
        return self.values


def make(function, *, clock=None, **settings):
    plugins = Plugins([Plugin(NAME, PluginKind.METRIC_SOURCE, function, "1.0")])
    metrics = settings.pop("metrics", ("jobs_waiting",))
    return SourcePlugins(plugins).source(
        clock or Clock(), "jobs", PluginSettings(name=NAME, metrics=metrics, **settings)
    )


async def test_it_sees_namespace_metric_selector_and_its_own_copy_of_the_parameters():
    jobs = Jobs(MetricValue(value=3, labels={"queue": "orders"}))
    source = make(jobs, parameters={"table": "jobs"}, cache_for="")
    query = ExternalMetricQuery("shop", "jobs_waiting", Selector.parse("queue=orders,shard in (a,b),!old"))
    assert await source.ask(query) == []  # its answer has no label shard
    (asked,) = jobs.asked
    assert (asked.request.namespace, asked.request.metric) == ("shop", "jobs_waiting")
    assert asked.labels == {"queue": "orders"}
    assert {(part.key, part.operator, part.values) for part in asked.request.selector} == {
        ("old", "!", ()),
        ("queue", "=", ("orders",)),
        ("shard", "in", ("a", "b")),
    }
    asked.request.parameters.clear()
    await source.ask(query)
    assert jobs.asked[1].request.parameters == {"table": "jobs"}
    await source.close()


async def test_series_that_do_not_match_the_selector_are_left_out():
    both = [
        MetricValue(value=count, labels={"queue": queue})
        for queue, count in (("a", 3), ("b", Decimal("0.5")))
    ]
    source = make(Jobs(*both))
    series = await source.external(ExternalMetricQuery("shop", "jobs_waiting", Selector.parse("queue=b")))
    assert [(sample.labels, str(sample.value)) for sample in series] == [({"queue": "b"}, "500m")]
    await source.close()


async def test_an_answer_is_returned_again_for_the_cache_time_with_the_time_it_was_measured():
    clock, jobs = Clock(), Jobs(MetricValue(value=3))
    source = make(jobs, clock=clock, cache_for="10s")
    (first,) = await source.external(WAITING)
    clock.seconds = 9.9
    assert await source.external(WAITING) == [first]
    assert len(jobs.asked) == 1
    clock.seconds = 10.0
    (later,) = await source.external(WAITING)
    assert (later.timestamp - first.timestamp).total_seconds() == 10
    assert len(jobs.asked) == 2
    await source.close()


async def test_another_selector_is_another_question():
    jobs = Jobs(MetricValue(value=3, labels={"queue": "a"}))
    source = make(jobs)
    await source.external(WAITING)
    await source.external(ExternalMetricQuery("shop", "jobs_waiting", Selector.parse("queue=a")))
    await source.external(ExternalMetricQuery("other", "jobs_waiting"))
    assert len(jobs.asked) == 3
    await source.close()


async def test_a_failure_is_not_cached_and_the_first_good_answer_ends_it():
    answers = [RuntimeError("database restarts"), [MetricValue(value=1)]]

    async def flaky(seen):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    source = make(flaky)
    with pytest.raises(StatusError, check=lambda error: error.code == 503) as refused:
        await source.external(WAITING)
    assert "database" not in str(refused.value), "tenants do not see the administrator's errors"
    assert "database restarts" in next(iter(source.health())).reason
    (sample,) = await source.external(WAITING)
    assert str(sample.value) == "1"
    assert not next(iter(source.health())).reason
    await source.close()


async def test_after_failures_in_a_row_it_is_left_alone_for_a_short_while():
    clock, jobs = Clock(), Jobs(MetricValue(value=-1))
    source = make(jobs, clock=clock)
    for _ in range(5):
        await source.ask(WAITING)
    assert len(jobs.asked) == 3
    jobs.values = [MetricValue(value=1)]
    clock.seconds = 15.0
    assert [str(sample.value) for sample in await source.external(WAITING)] == ["1"]
    await source.close()


async def test_it_runs_on_its_own_thread_and_only_for_external_metrics_of_the_configuration():
    jobs = Jobs(MetricValue(value=3))
    source = make(jobs)
    await source.external(WAITING)
    assert jobs.asked[0].thread is not threading.current_thread()
    assert jobs.asked[0].thread.daemon, "a plug-in that hangs does not keep the process"
    assert source.serves(WAITING)
    assert not source.serves(ExternalMetricQuery("shop", "other"))
    custom = CustomMetricQuery("shop", "pods", "*", "jobs_waiting")
    assert not source.serves(custom)
    with pytest.raises(StatusError, check=lambda error: error.code == 404):
        await source.custom(custom)
    assert source.catalogue().external == {"jobs_waiting"}
    await source.close()


async def test_calls_that_never_end_are_limited():
    thread, released = PluginThread("stuck"), threading.Event()

    async def block():
        released.wait()

    stuck = [asyncio.ensure_future(thread.call(block)) for _ in range(MAX_CALLS)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyCallsError, match="16 earlier calls have not ended"):
        await thread.call(block)
    released.set()
    await asyncio.gather(*stuck)
    await thread.call(block)
    thread.close()


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({"metrics": ()}, "name the metrics that the plug-in answers"),
        ({"cache_for": "6m"}, "longer than 5m"),
        ({"timeout": "soon"}, "'soon' is not a duration"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(settings, want):
    with pytest.raises(ConfigurationError, match=want):
        make(Jobs(), **settings)


def test_a_plugin_that_the_flag_does_not_name_is_a_mistake():
    with pytest.raises(ConfigurationError, match=r"start with --plugins=example\.com/jobs"):
        SourcePlugins(Plugins()).source(Clock(), "jobs", PluginSettings(name=NAME, metrics=("m",)))
