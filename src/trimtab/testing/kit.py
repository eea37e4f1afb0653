"""Checks that a plug-in keeps the protocol of its kind."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.plugins.estimator import Estimate, EstimatorInput, check_estimate
from trimtab.plugins.kinds import PluginKind, declaration_of
from trimtab.plugins.pod_filter import NODES_NOT_DECLARED, PodFilterInput, check_left_out
from trimtab.plugins.registry import Plugin
from trimtab.plugins.replica_policy import ReplicaPolicyInput, ReplicaProposal, check_proposal
from trimtab.testing.answers import (
    AnswerCount,
    Asker,
    Declined,
    PluginTestError,
    Stopwatch,
    check_shape,
    warn_of_all_left_out,
    warn_of_changing_memory,
    warn_of_prints,
)
from trimtab.testing.cases import SYNC_PERIOD, filter_inputs, frozen, policy_inputs, without_nodes
from trimtab.testing.source_check import check_metric_source
from trimtab.testing.usage_cases import estimator_inputs

STEADY = 5
"""Inputs that are repeated to see whether the memory of a policy settles."""
SYNCS = 20


def check_pod_filter(
    function: Callable[[PodFilterInput], Mapping[str, str]],
    *,
    stopwatch: Stopwatch = time.thread_time,
    wall_clock: Stopwatch = time.perf_counter,
) -> None:
    """Check a pod filter with generated pods, or raise PluginTestError."""
    check_shape(function, PluginKind.POD_FILTER)

    def ask(seen: PodFilterInput) -> Any:
        return check_left_out(function(seen), seen.pods)

    declared = declaration_of(function)
    asker = Asker(ask, declared.budget, stopwatch, wall_clock)
    count, keeps_one = AnswerCount(), False
    with warn_of_prints():
        for seen in filter_inputs():
            answer = asker.check_answer(seen, msgspec.structs.replace(seen))
            if not declared.needs_nodes:
                _check_without_nodes(asker, seen, answer)
            count.add(answer)
            keeps_one |= not isinstance(answer, Declined) and len(answer) < len(seen.pods)
    count.require_one()
    if not keeps_one:
        warn_of_all_left_out(function)


def _check_without_nodes(asker: Asker, seen: PodFilterInput, answer: Any) -> None:
    """Ask a filter as the operator does that reads no nodes for it. It must not miss them."""
    bare = without_nodes(seen)
    try:
        found = asker.check_answer(bare, msgspec.structs.replace(bare))
        problem = "" if found == answer else "its answer depends on the nodes"
    except PluginTestError as error:
        problem = str(error)
    if problem:
        raise PluginTestError(f"nodes: {NODES_NOT_DECLARED}: {problem}")


def check_replica_policy(
    function: Callable[[ReplicaPolicyInput], ReplicaProposal],
    parameters: Mapping[str, Any] | None = None,
    *,
    stopwatch: Stopwatch = time.thread_time,
    wall_clock: Stopwatch = time.perf_counter,
) -> None:
    """Check a replica policy with these parameters and generated metrics, or raise PluginTestError.

    Each decision gets the memory that the last one left, as in the operator.
    """
    check_shape(function, PluginKind.REPLICA_POLICY)
    memory: Any = None

    def ask(seen: ReplicaPolicyInput) -> Any:
        return check_proposal(function(seen))

    asker = Asker(ask, declaration_of(function).budget, stopwatch, wall_clock)
    count = AnswerCount()
    with warn_of_prints():
        for blank in policy_inputs(parameters or {}):
            seen = msgspec.structs.replace(blank, memory=frozen(memory))
            again = msgspec.structs.replace(seen)
            answer = asker.check_answer(seen, again)
            count.add(answer)
            memory = None if isinstance(answer, Declined) else answer.memory
        never_settles = all(
            _changes_for_ever(asker, seen) for seen in policy_inputs(parameters or {}, STEADY)
        )
    count.require_one()
    if never_settles:
        warn_of_changing_memory(function)


def _changes_for_ever(asker: Asker, seen: ReplicaPolicyInput) -> bool:
    """Return whether the memory of a policy still changes after syncs in which only the time moves."""
    memories: list[Any] = [None]
    for number in range(SYNCS):
        now = seen.now + number * SYNC_PERIOD
        steady = msgspec.structs.replace(seen, now=now, memory=frozen(memories[-1]))
        answer = asker.check_answer(steady, msgspec.structs.replace(steady))
        memories.append(None if isinstance(answer, Declined) else answer.memory)
    changes: bool = memories[-1] != memories[-2]
    return changes


def check_estimator(
    function: Callable[[EstimatorInput], Estimate],
    *,
    stopwatch: Stopwatch = time.thread_time,
    wall_clock: Stopwatch = time.perf_counter,
) -> None:
    """Check an estimator with generated usage of 50 days, or raise PluginTestError.

    Each call gets a copy of the memory that the last one left, as in the recommender, and samples if it asks for them.
    """
    check_shape(function, PluginKind.ESTIMATOR)
    declared, memory = declaration_of(function), b"null"

    def ask(seen: EstimatorInput) -> Any:
        return check_estimate(function(seen))

    asker = Asker(ask, declared.budget, stopwatch, wall_clock)
    count = AnswerCount()
    with warn_of_prints():
        for blank in estimator_inputs(with_samples=declared.needs_samples):
            seen, again = (
                msgspec.structs.replace(blank, memory=msgspec.json.decode(memory)) for _ in range(2)
            )
            answer = asker.check_answer(seen, again)
            count.add(answer)
            if not isinstance(answer, Declined):
                memory = msgspec.json.encode(answer.memory)
    count.require_one()


def check_plugin(
    plugin: Plugin,
    parameters: Mapping[str, Any] | None = None,
    metrics: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
) -> str:
    """Check a loaded plug-in of any kind, and return what was checked. Raise PluginTestError.

    A metric source must answer `metrics` for a client that selects `labels`.
    """
    match plugin.kind:
        case PluginKind.POD_FILTER:
            check_pod_filter(plugin.call)
            return "bounds, determinism, purity and time, with 200 sets of pods"
        case PluginKind.REPLICA_POLICY:
            check_replica_policy(plugin.call, parameters)
            return "bounds, determinism, purity and time, in 200 decisions"
        case PluginKind.ESTIMATOR:
            check_estimator(plugin.call)
            return "bounds, order, determinism, purity and time, in 200 recommendations"
        case PluginKind.METRIC_SOURCE:
            known = tuple(metrics)
            check_metric_source(plugin.call, known, parameters=parameters, labels=labels)
            return f"unknown metrics, selectors, bounds, time and concurrent calls, {_asked(known)}"


def _asked(metrics: tuple[str, ...]) -> str:
    return f"and values of {', '.join(metrics)}" if metrics else "but no value: name a metric with --metric"
