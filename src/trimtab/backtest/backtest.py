"""Runs the production `decide` on recorded load, one sync after another, in virtual time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from trimtab.backtest.model import MetricModel, Model, ModelError, model_metrics, replicas_for
from trimtab.backtest.trace import Trace
from trimtab.backtest.workload import SimulatedWorkload
from trimtab.decide.horizontal import (
    DEFAULT,
    FetchFailure,
    HpaCompat,
    HpaSettings,
    MetricSamples,
    Observation,
    PodSamples,
    Record,
    Sample,
    Series,
    after_scale,
    decide,
)
from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.behavior.scale_to_zero import (
    can_scale_from_zero,
)
from trimtab.decide.horizontal.config import DEFAULT_SETTINGS
from trimtab.decide.horizontal.memory import EMPTY
from trimtab.decide.horizontal.plugin_calls import add_answers, failures_of, names_plugins
from trimtab.decide.horizontal.records.unchanged import (
    UnchangedDecision,
    extend_memory,
    find_unchanged,
)
from trimtab.decide.horizontal.status.conditions import with_scaled_to_zero
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import NO_PLUGINS

DEFAULT_GATES = FeatureGates()
NO_GUARDS = Guards(NO_PLUGINS)
NOT_MEASURED = FetchFailure(message="the trace has no value at this moment")
NOT_YET = FetchFailure(message="nothing was measured yet")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An HPA to try, with its defaults, and the configuration of the operator that would run it."""

    name: str
    hpa: HorizontalPodAutoscaler
    settings: HpaSettings = DEFAULT_SETTINGS
    gates: FeatureGates = DEFAULT_GATES
    compat: HpaCompat = DEFAULT
    guards: Guards = NO_GUARDS
    """The plug-ins that the operator would load."""


@dataclass(frozen=True, slots=True)
class SyncStep:
    """One sync: its time, the ready pods, the replicas after it, and the record of a change."""

    at: float
    ready: int
    replicas: int
    change: Record | None
    failure: str = ""
    """Why a plug-in gave no answer."""


def backtest(candidate: Candidate, trace: Trace, model: Model) -> Iterator[SyncStep]:
    """Yield one step per sync from the first row of the trace to the last.

    Raise ModelError if they do not fit.
    """
    metrics = model_metrics(candidate.hpa, trace, model)
    first = _first_replicas(candidate, metrics, trace, model)
    workload = SimulatedWorkload(candidate.hpa, model, first, trace.start)
    meter = Meter(metrics, trace, model, workload)
    hpa = SimulatedHpa(candidate if first else _at_zero(candidate, trace.start))
    syncs = int((trace.end - trace.start) // model.sync_period) + 1
    for number in range(syncs):
        at = trace.start + number * model.sync_period
        readings = meter.readings(at)
        ready = len(workload.ready_names)
        record = hpa.sync(workload, readings, at)
        if record is not None:
            workload.resize(record.decision.desired, at)
        yield SyncStep(at, ready, workload.replicas, record, hpa.failure)


class SimulatedHpa:
    """A running candidate: its last observation, its memory, and until when its decision is unchanged."""

    def __init__(self, candidate: Candidate) -> None:
        self._guards = candidate.guards
        self._names_plugins = names_plugins(candidate.hpa.spec)
        self._seen = Observation(
            hpa=candidate.hpa,
            memory=EMPTY,
            settings=candidate.settings,
            gates=candidate.gates,
            compat=candidate.compat,
            nodes={} if self._names_plugins else None,  # simulated pods are on no node
        )
        self._steady: UnchangedDecision | None = None
        self.failure = ""
        """Why plug-ins gave no answer to the last decision."""

    def sync(
        self, workload: SimulatedWorkload, readings: tuple[MetricSamples, ...], at: float
    ) -> Record | None:
        """Decide, or skip the decision if its inputs did not change. Return the record if the scale changed."""
        seen = msgspec.structs.replace(self._seen, scale=workload.scale, pods=workload.pods, samples=readings)
        if self._steady is not None and self._steady.still_valid(seen, at):
            self._seen = msgspec.structs.replace(seen, memory=extend_memory(seen.memory, at))
            return None
        if self._names_plugins:
            seen = add_answers(seen, self._guards, datetime.fromtimestamp(at, UTC))
            self.failure = "; ".join(failures_of(seen))
        decision = decide(seen, datetime.fromtimestamp(at, UTC))
        self._steady = find_unchanged(seen, decision)
        record = None
        if decision.scale_to is not None:
            decision = after_scale(seen, decision, None)
            record = Record(observation=seen, decision=decision)
        hpa = (
            msgspec.structs.replace(seen.hpa, status=decision.status) if decision.status_changed else seen.hpa
        )
        self._seen = msgspec.structs.replace(
            seen, hpa=hpa, memory=decision.memory, filter_answer=None, policy_answers=()
        )
        return record


def _first_replicas(
    candidate: Candidate, metrics: tuple[MetricModel, ...], trace: Trace, model: Model
) -> int:
    """Return the initial replicas. They are 0 only if the HPA itself can scale to zero."""
    spec = candidate.hpa.spec
    goes_to_zero = candidate.gates.hpa_scale_to_zero and spec.min_replicas == 0 and can_scale_from_zero(spec)
    if model.replicas == 0 and not goes_to_zero:
        raise ModelError(
            f"{candidate.hpa.key}: a workload that starts at zero stays paused: start with 1 replica or more, "
            "or set minReplicas to 0 with an Object or External metric and the feature gate HPAScaleToZero"
        )
    if model.replicas is not None:
        return model.replicas
    lowest = 0 if goes_to_zero else max(spec.min_replicas or 1, 1)
    return min(max(replicas_for(metrics, trace, trace.start), lowest), spec.max_replicas)


def _at_zero(candidate: Candidate, now: float) -> Candidate:
    """Return the candidate in the state after it scaled its idle workload to zero."""
    hpa = candidate.hpa
    status = with_scaled_to_zero(hpa.status, wire_time(now))
    return replace(candidate, hpa=msgspec.structs.replace(hpa, status=status))


class Meter:
    """Measures the workload every period and returns each measurement after its delay."""

    def __init__(
        self, metrics: tuple[MetricModel, ...], trace: Trace, model: Model, workload: SimulatedWorkload
    ) -> None:
        self._metrics = metrics
        self._trace = trace
        self._model = model
        self._workload = workload
        self._next = trace.start - model.metrics_delay  # the first sync has a measurement
        self._in_transit: list[tuple[float, tuple[MetricSamples, ...]]] = []
        self._arrived: tuple[MetricSamples, ...] = (NOT_YET,) * len(metrics)

    def readings(self, now: float) -> tuple[MetricSamples, ...]:
        """Return the samples that have arrived by `now`. Advances the workload."""
        while self._next <= now:
            self._workload.advance(self._next)
            taken = tuple(self._measure(metric, self._next) for metric in self._metrics)
            self._in_transit.append((self._next + self._model.metrics_delay, taken))
            self._next += self._model.metrics_period
        self._workload.advance(now)
        while self._in_transit and self._in_transit[0][0] <= now:
            self._arrived = self._in_transit.pop(0)[1]
        return self._arrived

    def _measure(self, metric: MetricModel, at: float) -> MetricSamples:
        load = self._trace.at(metric.column, at)
        if load is None:
            return NOT_MEASURED
        if not metric.is_per_pod:
            return Series(samples=(Sample(load, at, 0.0),))
        names = self._workload.ready_names
        share = load // len(names) if names else 0
        if metric.max_reported is not None:
            share = min(share, metric.max_reported)
        # All ready pods carry the same load, so they share one sample.
        sample = Sample(share, at, self._model.metrics_period)
        return PodSamples(samples=dict.fromkeys(names, sample), timestamp=at)
