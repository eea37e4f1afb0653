"""Checks that a plug-in keeps the protocol of its kind."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.plugins.errors import describe_place
from trimtab.plugins.estimator import Estimate, EstimatorInput, check_estimate
from trimtab.plugins.kinds import PluginKind, declaration_of
from trimtab.plugins.pod_filter import NODES_NOT_DECLARED, PodFilterInput, check_left_out
from trimtab.plugins.registry import Plugin
from trimtab.plugins.replica_policy import ReplicaPolicyInput, ReplicaProposal, check_proposal
from trimtab.plugins.testing.asker import Asker, Declined, PluginTestError, PluginTestWarning, Stopwatch
from trimtab.plugins.testing.cases import (
    SYNC_PERIOD,
    estimator_inputs,
    filter_inputs,
    frozen,
    policy_inputs,
    without_nodes,
)
from trimtab.plugins.testing.source_check import check_metric_source

STEADY = 5
"""Inputs that are repeated to see whether the memory of a policy settles."""
SYNCS = 20


def check_pod_filter(
    function: Callable[[PodFilterInput], Mapping[str, str]], *, stopwatch: Stopwatch = time.thread_time
) -> None:
    """Check a pod filter with generated pods, or raise PluginTestError."""

    def ask(seen: PodFilterInput) -> Any:
        return check_left_out(function(seen), seen.pods)

    asker, keeps_one = Asker(function, PluginKind.POD_FILTER, ask, stopwatch), False
    for seen in filter_inputs():
        answer = asker.check_answer(seen, msgspec.structs.replace(seen))
        if not declaration_of(function).needs_nodes:
            _check_without_nodes(asker, seen, answer)
        keeps_one |= not isinstance(answer, Declined) and len(answer) < len(seen.pods)
    asker.require_an_answer()
    if not keeps_one:
        _warn(
            f"it leaves out every pod of every input{_first_line(function)}; "
            "an HPA without a pod that counts keeps its replicas and says AllPodsLeftOut"
        )


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
) -> None:
    """Check a replica policy with these parameters and generated metrics, or raise PluginTestError.

    Each decision gets the memory that the last one left, as in the operator.
    """

    def ask(seen: ReplicaPolicyInput) -> Any:
        return check_proposal(function(seen))

    asker = Asker(function, PluginKind.REPLICA_POLICY, ask, stopwatch)
    memory: Any = None
    for blank in policy_inputs(parameters or {}):
        memory = _next_memory(asker, blank, memory)
    never_settles = all(_changes_for_ever(asker, seen) for seen in policy_inputs(parameters or {}, STEADY))
    asker.require_an_answer()
    if never_settles:
        _warn(
            f"its memory changes in every sync in which only the time moves{_first_line(function)}; "
            "that is a write of the status in every sync of each HPA"
        )


def _next_memory(asker: Asker, blank: ReplicaPolicyInput, memory: Any) -> Any:
    seen = msgspec.structs.replace(blank, memory=frozen(memory))
    answer = asker.check_answer(seen, msgspec.structs.replace(seen))
    return None if isinstance(answer, Declined) else answer.memory


def _changes_for_ever(asker: Asker, seen: ReplicaPolicyInput) -> bool:
    """Return whether the memory of a policy still changes after syncs in which only the time moves."""
    before = memory = None
    for number in range(SYNCS):
        steady = msgspec.structs.replace(seen, now=seen.now + number * SYNC_PERIOD)
        before, memory = memory, _next_memory(asker, steady, memory)
    return bool(memory != before)


def check_estimator(
    function: Callable[[EstimatorInput], Estimate], *, stopwatch: Stopwatch = time.thread_time
) -> None:
    """Check an estimator with generated usage of 50 days, or raise PluginTestError.

    Each call gets a copy of the memory that the last one left, as in the recommender, and samples if it asks for them.
    """

    def ask(seen: EstimatorInput) -> Any:
        return check_estimate(function(seen))

    asker, memory = Asker(function, PluginKind.ESTIMATOR, ask, stopwatch), b"null"
    for blank in estimator_inputs(with_samples=declaration_of(function).needs_samples):
        seen, again = (msgspec.structs.replace(blank, memory=msgspec.json.decode(memory)) for _ in range(2))
        answer = asker.check_answer(seen, again)
        if not isinstance(answer, Declined):
            memory = msgspec.json.encode(answer.memory)
    asker.require_an_answer()


def _first_line(function: object) -> str:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return "" if code is None else describe_place(code.co_filename, code.co_firstlineno)


def _warn(message: str) -> None:
    warnings.warn(message, PluginTestWarning, stacklevel=3)


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
