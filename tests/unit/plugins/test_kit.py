"""The test kit finds plug-ins that do not keep their protocol."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from itertools import count
from math import nan
from random import random
from typing import Any

import pytest

from trimtab.plugins import (
    Amounts,
    CannotFilterError,
    DeclinedError,
    Estimate,
    EstimatorInput,
    MetricRequest,
    MetricValue,
    PodFilterInput,
    ReplicaPolicyInput,
    ReplicaProposal,
    declare,
)
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import Plugin
from trimtab.plugins.testing import (
    PluginTestError,
    PluginTestWarning,
    check_estimator,
    check_metric_source,
    check_plugin,
    check_pod_filter,
    check_replica_policy,
)

COUNTER = count()


def well_behaved(seen: PodFilterInput) -> Mapping[str, str]:
    if not seen.pods:
        raise CannotFilterError("there is no pod")
    return {pod.name: "it is deleted" for pod in seen.pods if pod.is_deleted}


def remembering(seen: ReplicaPolicyInput) -> ReplicaProposal:
    most = max(seen.memory["most"] if seen.memory else 0, seen.replicas)
    return ReplicaProposal(replicas=seen.replicas, reason="as it is", memory={"most": most})


def counting(seen: ReplicaPolicyInput) -> ReplicaProposal:
    before = seen.memory["count"] if seen.memory else 0
    return ReplicaProposal(replicas=seen.replicas, reason="as it is", memory={"count": before + 1})


def noting_the_time(seen: ReplicaPolicyInput) -> ReplicaProposal:
    return ReplicaProposal(replicas=seen.replicas, reason="as it is", memory={"at": seen.now})


@pytest.mark.parametrize("function", [counting, noting_the_time])
def test_a_memory_that_never_settles_has_a_warning(function):
    with pytest.warns(PluginTestWarning, match="memory changes in every sync.*a write of the status"):
        check_replica_policy(function)


def test_plugins_that_keep_the_protocol_pass():
    check_pod_filter(well_behaved)
    check_replica_policy(remembering)
    assert "200" in check_plugin(Plugin("example.com/A", PluginKind.POD_FILTER, well_behaved))
    assert "200" in check_plugin(Plugin("example.com/A", PluginKind.REPLICA_POLICY, remembering))


def slow_watch() -> Any:
    times = iter(range(100_000))
    return lambda: float(next(times))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda seen: {pod.name: "" for pod in seen.pods}, "bounds: it returned no reason"),
        (lambda seen: {"other": "why"}, "bounds: it returned 'other'"),
        (lambda seen: {seen.pods[0].name: "first"}, "it raised IndexError"),
        (lambda seen: {pod.name: str(next(COUNTER)) for pod in seen.pods}, "equal inputs give"),
        (lambda seen: (seen.pods and seen.pods[0].labels.update(a="b")) or {}, "it raised AttributeError"),
        (dict, "it is a class"),
    ],
)
def test_a_bad_filter_is_found_with_its_input(function, words):
    with pytest.raises(PluginTestError, match=words):
        check_pod_filter(function)


def on_drained_nodes(seen: PodFilterInput) -> Mapping[str, str]:
    return {pod.name: "drained" for pod in seen.pods if pod.node is not None and pod.node.is_unschedulable}


def on_drained_nodes_unguarded(seen: PodFilterInput) -> Mapping[str, str]:
    return {pod.name: "drained" for pod in seen.pods if pod.node_name and pod.node.is_unschedulable}  # type: ignore[union-attr] # that is the test


@pytest.mark.parametrize("function", [on_drained_nodes, on_drained_nodes_unguarded])
def test_a_filter_that_reads_nodes_must_declare_it(function):
    """The operator reads nodes only for filters that declare it, so the filter would never leave out a pod."""
    with pytest.raises(PluginTestError, match=r"needs_nodes=True"):
        check_pod_filter(function)

    @declare(needs_nodes=True)
    def declared(seen: PodFilterInput) -> Mapping[str, str]:
        return dict(function(seen))

    check_pod_filter(declared)


def changes_its_input(seen: PodFilterInput) -> Mapping[str, str]:
    for pod in seen.pods:
        pod.name = "other"  # type: ignore[misc] # that is the test
    return {}


def test_a_filter_that_changes_its_input_is_found():
    with pytest.raises(PluginTestError, match="purity: it changes its input"):
        check_pod_filter(changes_its_input)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda seen: ReplicaProposal(replicas=-1, reason="why"), "bounds: it returned -1 replicas"),
        (lambda seen: ReplicaProposal(replicas=int(random() * 1e6), reason="why"), "equal inputs give"),
        (
            lambda seen: ReplicaProposal(replicas=1, reason="why", memory="x" * 9999),
            "a memory of 10001 bytes",
        ),
    ],
)
def test_a_bad_policy_is_found(function, words):
    with pytest.raises(PluginTestError, match=words):
        check_replica_policy(function)


def test_a_memory_that_grows_without_bound_is_found():
    def grows(seen: ReplicaPolicyInput) -> ReplicaProposal:
        return ReplicaProposal(replicas=1, reason="why", memory=["0123456789", *(seen.memory or ())])

    with pytest.raises(PluginTestError, match="a memory of"):
        check_replica_policy(grows)


def test_a_slow_plugin_is_found():
    with pytest.raises(PluginTestError, match=r"time: a call took 1000 ms, and its budget is 100 ms"):
        check_pod_filter(well_behaved, stopwatch=slow_watch())


@declare(needs_samples=True)
def largest(seen: EstimatorInput) -> Estimate:
    """Recommend the largest sample ever; its copy of the memory is its own to change."""
    memory = seen.memory or {}
    for sample in seen.samples:
        memory[sample.resource] = max(memory.get(sample.resource, 0.0), sample.amount)
    amounts = {resource: Amounts(lower=0, target=peak, upper=peak) for resource, peak in memory.items()}
    return Estimate(amounts=amounts, reason="the largest", memory=memory)


def test_an_estimator_that_keeps_the_protocol_passes():
    assert "200" in check_plugin(Plugin("example.com/A", PluginKind.ESTIMATOR, largest))


@pytest.mark.parametrize("needs_samples", [True, False])
def test_an_estimator_sees_everything_that_the_recommender_gives(needs_samples):
    """Without these cases the properties would say little."""
    given: list[EstimatorInput] = []

    @declare(needs_samples=needs_samples)
    def watching(seen: EstimatorInput) -> Estimate:
        given.append(seen)
        return Estimate(amounts={}, reason="why", memory=seen.now)

    check_estimator(watching)
    assert not any(histogram.ends for histogram in given[0].histograms.values())
    assert {bool(seen.histograms["cpu"].ends) for seen in given[2:]} == {True, False}
    assert any(seen.samples for seen in given) == needs_samples
    assert {int(seen.now // 86400) % 7 for seen in given} == set(range(7))
    assert [seen.memory for seen in given[2:]] == [seen.now for seen in given[:-2]]


def estimating(lower: Any, target: Any, upper: Any, **more: Any) -> Any:
    amounts = {"cpu": Amounts(lower=lower, target=target, upper=upper)}
    return lambda seen: Estimate(amounts=amounts, reason="why", **more)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (estimating(2.0, 1.0, 3.0), "bounds: it returned cpu: lower 2, target 1, upper 3, which are not in"),
        (estimating(1.0, nan, 3.0), "bounds: it returned cpu target: nan"),
        (estimating(-1.0, 1.0, 3.0), "bounds: it returned cpu lower: -1"),
        (estimating(1.0, 1.0, 1e9), "bounds: it returned cpu upper: 1e"),
        (estimating(1.0, 1.0, 1.0, memory="x" * 99_999), "a memory of 100001 bytes"),
        (lambda seen: None, "bounds: it returned None, not an Estimate"),
        (lambda seen: Estimate(amounts={}, reason=f"{random()}"), "equal inputs give"),
        (lambda seen: seen.histograms.update(cpu=None), "it raised AttributeError"),
        (lambda seen: seen.histograms.__setitem__("cpu", None), "it raised AttributeError"),
        (lambda seen: setattr(seen, "memory", 1), "purity: it changes its input"),
        (lambda seen: Estimate(amounts={}, reason=f"{1 / seen.sample_count}"), "it raised ZeroDivisionError"),
        (lambda seen: sys.exit(1), "it raised SystemExit"),
    ],
)
def test_a_bad_estimator_is_found_with_its_input(function, words):
    with pytest.raises(PluginTestError, match=words):
        check_estimator(function)


def test_an_estimator_that_fails_only_with_a_memory_of_its_own_is_found():
    def grows(seen: EstimatorInput) -> Estimate:
        return Estimate(amounts={}, reason="why", memory=["x" * 1000, *(seen.memory or [])])

    with pytest.raises(PluginTestError, match="a memory of"):
        check_estimator(grows)


@pytest.mark.parametrize("check", [check_pod_filter, check_replica_policy, check_estimator])
def test_a_call_without_an_end_is_ended_as_in_the_operator(check):
    @declare(budget=0.01)
    def loops(_seen: object) -> Any:
        while True:
            pass

    with pytest.raises(PluginTestError, match=r"time: a call did not end within 0\.1 s"):
        check(loops)


def test_a_slow_estimator_is_found():
    with pytest.raises(PluginTestError, match=r"time: a call took 1000 ms, and its budget is 100 ms"):
        check_estimator(largest, stopwatch=slow_watch())


async def jobs(seen: MetricRequest) -> list[MetricValue]:
    if seen.metric != "jobs":
        raise DeclinedError("not known")
    return [MetricValue(value=seen.parameters["jobs"], labels=seen.labels)]


def check_jobs(function: Any, **more: Any) -> None:
    check_metric_source(function, ["jobs"], parameters={"jobs": 3}, labels={"queue": "orders"}, **more)


def test_a_source_that_keeps_the_protocol_passes():
    check_jobs(jobs)
    plugin = Plugin("example.com/A", PluginKind.METRIC_SOURCE, jobs)
    assert "values of jobs" in check_plugin(plugin, {"jobs": 3}, ["jobs"], {"queue": "orders"})
    assert "name a metric" in check_plugin(plugin)


async def test_a_source_can_be_checked_from_an_event_loop():
    check_jobs(jobs)


def answering(change: Any) -> Any:
    """Return a source that differs from `jobs` by a function of its answer and the request."""

    async def source(seen: MetricRequest) -> Any:
        return change(await jobs(seen), seen)

    return source


async def answers_everything(seen: MetricRequest) -> list[MetricValue]:
    return [MetricValue(value=1, labels=seen.labels)]


async def raises_key_errors(seen: MetricRequest) -> list[MetricValue]:
    return [MetricValue(value={"jobs": 1}[seen.metric], labels=seen.labels)]


async def yields(seen: MetricRequest) -> AsyncIterator[MetricValue]:
    yield MetricValue(value=1, labels=seen.labels)


async def hangs(seen: MetricRequest) -> list[MetricValue]:
    await asyncio.Event().wait()
    return []


async def blocks(seen: MetricRequest) -> list[MetricValue]:
    threading.Event().wait(1.0)
    return []


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (answers_everything, "unknown metrics: it has"),
        (raises_key_errors, "it raised KeyError: 'no_metric_has_this_name'.*DeclinedError"),
        (answering(lambda series, seen: 5), "bounds: it returned int, not a list"),
        (answering(lambda series, seen: [MetricValue(value=nan)]), "bounds: it returned the value nan"),
        (answering(lambda series, seen: [MetricValue(value=-1)]), "bounds: it returned the value -1"),
        (answering(lambda series, seen: series * 1001), "bounds: it returned more than 1000 series"),
        (answering(lambda series, seen: []), "values: none of"),
        (answering(lambda series, seen: [MetricValue(value=1)]), "values: none of .* has the labels"),
        (answering(lambda series, seen: seen.labels["queue"] and series), "it raised KeyError: 'queue'"),
        (answering(lambda series, seen: setattr(seen, "metric", "x")), "purity: it changes its input"),
        (answering(lambda series, seen: sys.exit(1)), "it raised SystemExit"),
        (lambda seen: [], "it must be a coroutine function"),
        (yields, "it is an async generator; write return in place of yield"),
        (answering(lambda series, seen: yields(seen)), "an async generator, not a list .* in place of yield"),
    ],
)
def test_a_bad_source_is_found_with_its_request(function, words):
    with pytest.raises(PluginTestError, match=words):
        check_jobs(function)


@pytest.mark.parametrize("function", [hangs, blocks])
def test_a_source_without_an_end_is_found(function):
    with pytest.raises(PluginTestError, match="time: a call took longer than 50 ms"):
        check_jobs(function, seconds=0.05)


def test_a_source_that_mixes_up_calls_at_the_same_time_is_found():
    state: dict[str, MetricRequest] = {}

    async def forgetful(seen: MetricRequest) -> list[MetricValue]:
        state["seen"] = seen
        await asyncio.sleep(0.02)
        known = state.pop("seen", None)
        return [] if known is None else await jobs(known)

    with pytest.raises(PluginTestError, match=r"16 calls at a time: (it raised|values)"):
        check_jobs(forgetful)
