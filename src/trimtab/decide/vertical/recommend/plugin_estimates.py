"""Asks estimator plug-ins for the amounts of containers whose VPA names one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec
import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.amounts import amount_from_float, millicores_from_cores
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.cluster_state.estimator_state import (
    EstimateRecord,
    SavedEstimate,
    estimator_state,
    keep_samples,
)
from trimtab.decide.vertical.cluster_state.profiles import Profile
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.int64_times import NEVER
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerRecommendation,
    PluginAmounts,
    RecommendationBatch,
)
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.times import SECOND_NS
from trimtab.model.vpa.defaults import recommender_of
from trimtab.plugins.estimator import Amounts, Estimate, EstimatorInput, UsageHistogram, check_estimate
from trimtab.plugins.guard import FailureReason, Guard, Guards, PluginFailure
from trimtab.plugins.kinds import PluginKind


@dataclass(frozen=True)
class LoadedEstimator:
    """An estimator that VPAs may name."""

    name: str
    version: str
    call: Callable[[EstimatorInput], Estimate | PluginFailure]
    """Returns a checked answer, or why there is none."""
    needs_samples: bool = False


Estimators = Mapping[str, LoadedEstimator]
NO_ESTIMATORS: Final[Estimators] = {}


def loaded_estimators(guards: Guards, names: Iterable[str]) -> Estimators:
    """Return the estimators of these plug-ins by name, each called through its guard.

    A plug-in that could not be loaded, or is of another kind, fails at every call, so that the VPAs that name it say why.
    """
    estimators = {}
    for name in names:
        guard = guards.find(PluginKind.ESTIMATOR, name)
        if guard is not None:
            estimators[name] = _guarded(guard)
        else:
            failure = guards.not_loaded(PluginKind.ESTIMATOR, name)
            estimators[name] = LoadedEstimator(name, "", partial(_repeat, failure))
    return estimators


def _repeat(failure: PluginFailure, _seen: EstimatorInput) -> PluginFailure:
    return failure


def _guarded(guard: Guard) -> LoadedEstimator:
    def call(seen: EstimatorInput) -> Estimate | PluginFailure:
        return guard.call(seen, check_estimate, user=f"{seen.namespace}/{seen.name}", now=seen.now)

    plugin = guard.plugin
    return LoadedEstimator(plugin.name, plugin.version, call, plugin.declaration.needs_samples)


def saved_estimators(vpa: VPAState) -> Estimators:
    """Return the estimator that a VPA names as one that repeats the answers saved in the VPA's checkpoints."""
    name = recommender_of(vpa.vpa)
    saved = vpa.estimator.saved if vpa.estimator is not None and vpa.estimator.estimator == name else {}

    def call(seen: EstimatorInput) -> Estimate | PluginFailure:
        answer = saved.get(seen.container)
        if answer is None:
            message = f"estimator {name} has not answered yet"
            return PluginFailure(plugin=name, reason=FailureReason.NOT_LOADED, message=message)
        return Estimate(amounts=answer.amounts, reason=answer.reason, memory=answer.memory)

    version = next((answer.version for answer in saved.values()), "")
    return {name: LoadedEstimator(name, version, call)}


@dataclass
class PluginAnswers:
    """What estimators answered: recommendations by their position, and failures by VPA."""

    recommendations: dict[int, ContainerRecommendation] = field(default_factory=dict)
    failures: dict[str, PluginFailure] = field(default_factory=dict)


def collect_samples(
    state: ClusterState, estimators: Estimators, resource: str, usage: UsageRows | None
) -> None:
    """Keep accepted samples for the estimators that ask for them."""
    if not estimators or usage is None or not len(usage.containers):
        return
    aggregates = state.containers.aggregate[usage.containers]
    for vpa in state.vpas.values():
        estimator = estimators.get(recommender_of(vpa.vpa))
        if estimator is not None and estimator.needs_samples:
            keep_samples(vpa, estimator.name, aggregates, resource, usage)


def ask_estimators(
    state: ClusterState,
    scaled: Sequence[tuple[Profile, int]],
    batch: RecommendationBatch,
    estimators: Estimators,
    now_ns: int,
) -> PluginAnswers:
    """Ask the estimators of all containers whose VPA names one.

    `scaled` are the containers with the row of their merged history, `batch` their built-in recommendations.
    """
    answers = PluginAnswers()
    for index, (profile, row) in enumerate(scaled):
        vpa = state.vpas[profile.vpa]
        estimator = estimators.get(recommender_of(vpa.vpa))
        if estimator is None:
            continue
        answer = _ask(state.table, vpa, row, batch[index], estimator, now_ns)
        if isinstance(answer, PluginFailure):
            answers.failures.setdefault(profile.vpa, answer)
        else:
            floors = dict(zip((CPU, MEMORY), batch.containers[index].floor, strict=True))
            answers.recommendations[index] = batch[index]._replace(plugin=_amounts(estimator, answer, floors))
    return answers


def _ask(
    table: AggregateTable,
    vpa: VPAState,
    row: int,
    built_in: ContainerRecommendation,
    estimator: LoadedEstimator,
    now_ns: int,
) -> Estimate | PluginFailure:
    kept = estimator_state(vpa, estimator.name)
    waiting, saved = kept.samples_of(built_in.name), kept.saved.get(built_in.name)
    memory = msgspec.json.encode(saved.memory if saved else None)
    seen = EstimatorInput(
        namespace=vpa.vpa.metadata.namespace,
        name=vpa.vpa.metadata.name,
        container=built_in.name,
        now=now_ns / SECOND_NS,
        histograms={CPU: _histogram(table.cpu, row), MEMORY: _histogram(table.memory, row)},
        built_in=_built_in(built_in),
        first_sample=_seconds(int(table.first[row])),
        last_sample=_seconds(int(table.last[row])),
        sample_count=int(table.count[row]),
        samples=tuple(waiting.samples),
        missed_samples=waiting.missed,
        memory=msgspec.json.decode(memory),
    )
    # The estimator gets copies of everything that can be changed.
    answer = estimator.call(
        msgspec.structs.replace(
            seen,
            histograms=dict(seen.histograms),
            built_in=dict(seen.built_in),
            memory=msgspec.json.decode(memory),
        )
    )
    record = EstimateRecord(estimator=estimator.name, version=estimator.version, seen=seen)
    if isinstance(answer, PluginFailure):
        kept.records[built_in.name] = msgspec.structs.replace(record, failure=answer.message)
        return answer
    waiting.clear()
    kept.records[built_in.name] = msgspec.structs.replace(
        record, amounts=answer.amounts, reason=answer.reason, memory=answer.memory
    )
    kept.saved[built_in.name] = SavedEstimate(
        estimator=estimator.name,
        version=estimator.version,
        at=seen.now,
        amounts=answer.amounts,
        reason=answer.reason,
        memory=answer.memory,
    )
    return answer


def _histogram(matrix: HistogramMatrix, row: int) -> UsageHistogram:
    weights = matrix.counted(np.array([row]))[:, 0]
    chosen = np.flatnonzero(weights)
    return UsageHistogram(
        ends=tuple(matrix.buckets.ends[chosen].tolist()), weights=tuple(weights[chosen].tolist())
    )


def _built_in(container: ContainerRecommendation) -> dict[str, Amounts]:
    amounts, units = container.amounts, {CPU: 1000.0, MEMORY: 1.0}
    return {
        resource: Amounts(
            lower=amounts["lower_bound"][resource] / units[resource],
            target=amounts["target"][resource] / units[resource],
            upper=amounts["upper_bound"][resource] / units[resource],
        )
        for resource in container.resources
    }


def _seconds(moment_ns: int) -> float | None:
    return None if moment_ns == NEVER else moment_ns / SECOND_NS


def _amounts(estimator: LoadedEstimator, answer: Estimate, floors: Mapping[str, int]) -> PluginAmounts:
    whole = {CPU: millicores_from_cores, MEMORY: amount_from_float}
    return PluginAmounts(
        f"{estimator.name} {estimator.version}".rstrip(),
        answer.reason,
        {
            resource: {
                "target": max(whole[resource](bounds.target), floors[resource]),
                "lower_bound": max(whole[resource](bounds.lower), floors[resource]),
                "upper_bound": max(whole[resource](bounds.upper), floors[resource]),
            }
            for resource, bounds in answer.amounts.items()
        },
    )
