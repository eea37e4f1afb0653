"""The horizontal side: the syncs of one HPA in virtual time."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from trimtab.decide.horizontal import (
    FetchFailure,
    HpaSettings,
    MetricSamples,
    Observation,
    PodSamples,
    PodSnapshot,
    Record,
    Rules,
    Sample,
    Series,
    after_scale,
    decide,
)
from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.limits import can_scale_from_zero
from trimtab.decide.horizontal.memory import EMPTY, extend
from trimtab.decide.horizontal.observation.pods import snapshot_pod
from trimtab.decide.horizontal.plugin_calls import decide_with_plugins, failures_of, names_plugins
from trimtab.decide.horizontal.rules import DEFAULT_SETTINGS
from trimtab.decide.horizontal.standing import Standing, find_standing
from trimtab.decide.horizontal.status.conditions import with_scaled_to_zero
from trimtab.library.simulator.model import MetricModel, Model
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.pod import CPU
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import NO_PLUGINS

if TYPE_CHECKING:
    from trimtab.library.simulator.life import Life

DEFAULT_GATES = FeatureGates()
NO_GUARDS = Guards(NO_PLUGINS)
UID = "simulated"
NOT_MEASURED = FetchFailure(message="the trace has no value at this moment")
NOT_YET = FetchFailure(message="nothing was measured yet")
UNAVAILABLE = FetchFailure(message="the metrics API does not answer")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An HPA to try, with its defaults, and the configuration of the operator that would run it."""

    name: str
    hpa: HorizontalPodAutoscaler
    settings: HpaSettings = DEFAULT_SETTINGS
    gates: FeatureGates = DEFAULT_GATES
    rules: Rules = Rules.TRIMTAB
    guards: Guards = NO_GUARDS
    """The plug-ins that the operator would load."""

    @property
    def goes_to_zero(self) -> bool:
        """Return whether the HPA itself can scale to zero, and so from zero."""
        spec = self.hpa.spec
        return self.gates.hpa_scale_to_zero and spec.min_replicas == 0 and can_scale_from_zero(spec)

    def at_zero(self, now: float) -> "Candidate":
        """Return the candidate in the state after it scaled its idle workload to zero."""
        status = with_scaled_to_zero(self.hpa.status, wire_time(now))
        return replace(self, hpa=msgspec.structs.replace(self.hpa, status=status))


@dataclass(frozen=True, slots=True)
class SyncStep:
    """One sync: its time, the ready pods, the replicas after it, and the record of a change."""

    at: float
    ready: int
    replicas: int
    change: Record | None
    failure: str = ""
    """Why a plug-in gave no answer."""


class HpaLoop:
    """The HPA of a life: it measures every period, and each measurement reaches the HPA after its delay."""

    def __init__(
        self,
        life: "Life",
        candidate: Candidate,
        metrics: tuple[MetricModel, ...],
        model: Model,
        total: Callable[[str, float], int | None],
        on_sync: Callable[[SyncStep], None] = lambda _step: None,
    ) -> None:
        """Begin to sync now. `total` returns the load of a metric at a moment, in thousandths."""
        self._life, self._metrics, self._model, self._total = life, metrics, model, total
        self._workload, self._on_sync, self._guards = life.workload, on_sync, candidate.guards
        self._names_plugins = names_plugins(candidate.hpa.spec)
        self._snapshots: dict[int, tuple[object, PodSnapshot]] = {}
        self._version = -1
        reference = candidate.hpa.spec.scale_target_ref
        self._owner = OwnerReference(
            api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=UID
        )
        self._seen = Observation(
            hpa=candidate.hpa,
            memory=EMPTY,
            settings=candidate.settings,
            gates=candidate.gates,
            rules=candidate.rules,
            nodes={} if self._names_plugins else None,  # simulated pods are on no node
        )
        self._standing: Standing | None = None
        """For how long the last decision holds."""
        self._failure = ""
        self._in_transit: list[tuple[float, tuple[MetricSamples, ...]]] = []
        self._arrived: tuple[MetricSamples, ...] = (NOT_YET,) * len(metrics)
        self.last = SyncStep(life.now, 0, life.workload.replicas, None)
        # The first sync has a measurement.
        first = life.now - model.metrics_delay
        while first < life.now:
            self._take(first)
            first += model.metrics_period
        life.repeat(3, first, self._measure)
        life.repeat(6, life.now, self._sync)

    def _measure(self) -> float:
        self._take(self._life.now)
        return self._life.now + self._model.metrics_period

    def _take(self, at: float) -> None:
        taken = tuple(self._samples_of(metric, at) for metric in self._metrics)
        self._in_transit.append((at + self._model.metrics_delay, taken))

    def _sync(self) -> float:
        life, workload, now = self._life, self._workload, self._life.now
        while self._in_transit and self._in_transit[0][0] <= now:
            self._arrived = self._in_transit.pop(0)[1]
        ready = len(workload.ready)
        readings = (UNAVAILABLE,) * len(self._metrics) if "usage" in life.missing else self._arrived
        record = self._decide(readings, now)
        if record is not None:
            life.scale(record.decision.desired, record.decision.because)
        self.last = SyncStep(now, ready, workload.replicas, record, self._failure)
        self._on_sync(self.last)
        return now + self._model.sync_period

    def _decide(self, readings: tuple[MetricSamples, ...], at: float) -> Record | None:
        """Decide, or skip the decision if its inputs did not change. Return the record if the scale changed."""
        if self._version != self._workload.version:
            self._observe()
        seen = msgspec.structs.replace(self._seen, samples=readings)
        if self._standing is not None and self._standing.holds(seen, at):
            self._seen = msgspec.structs.replace(seen, memory=extend(seen.memory, at))
            return None
        if self._names_plugins:
            seen, decision = decide_with_plugins(seen, self._guards, datetime.fromtimestamp(at, UTC))
            self._failure = "; ".join(failures_of(seen))
        else:
            decision = decide(seen, datetime.fromtimestamp(at, UTC))
        self._standing = find_standing(seen, decision)
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

    def _observe(self) -> None:
        """See the scale and the pods anew."""
        workload, known = self._workload, self._snapshots
        self._snapshots = {
            id(pod): entry
            if (entry := known.get(id(pod))) is not None and entry[0] is pod.api
            else (pod.api, msgspec.structs.replace(snapshot_pod(pod.api), owners=(self._owner,)))
            for pod in workload.pods
        }
        scale = Scale(
            metadata=ObjectMeta(name=self._owner.name, namespace=workload.namespace, uid=UID),
            spec=ScaleSpec(replicas=workload.replicas),
            status=ScaleStatus(replicas=len(workload.pods), selector=f"simulated={self._owner.name}"),
        )
        pods = tuple(snapshot for _, snapshot in self._snapshots.values())
        self._seen = msgspec.structs.replace(self._seen, scale=scale, pods=pods)
        self._version = workload.version

    def _samples_of(self, metric: MetricModel, at: float) -> MetricSamples:
        if metric.is_per_pod and metric.resource and self._life.load.is_per_pod:
            return self._usage(metric, at)
        load = self._total(metric.column, at)
        if load is None:
            return NOT_MEASURED
        if not metric.is_per_pod:
            return Series(samples=(Sample(load, at, 0.0),))
        names = [pod.name for pod in self._workload.ready]
        share = load // len(names) if names else 0
        if metric.max_reported is not None:
            share = min(share, metric.max_reported)
        # All ready pods carry the same load, so they share one sample.
        sample = Sample(share, at, self._model.metrics_period)
        return PodSamples(samples=dict.fromkeys(names, sample), timestamp=at)

    def _usage(self, metric: MetricModel, at: float) -> MetricSamples:
        """Return what the pods use of a resource. Pods of which the load is the same share one sample."""
        life = self._life
        if metric.resource in life.missing:
            return NOT_MEASURED
        samples: dict[str, Sample] = {}
        known: dict[Hashable, Sample | None] = {}
        for pod in self._workload.pods:
            key = life.load.key(pod), pod.is_ready, pod.size
            if key not in known:
                used = life.used_by(pod, at) if self._workload.is_running(pod, at) else {}
                chosen = [amounts for name, amounts in used.items() if metric.container in ("", name)]
                amounts = [cpu if metric.resource == CPU else memory for cpu, memory in chosen]
                found = [amount for amount in amounts if amount is not None]
                amount = sum(found) * (1 if metric.resource == CPU else 1000)
                if metric.max_reported is not None:
                    amount = min(amount, metric.max_reported)
                known[key] = Sample(amount, at, self._model.metrics_period) if found else None
            if (sample := known[key]) is not None:
                samples[pod.name] = sample
        return PodSamples(samples=samples, timestamp=at)
