"""The pods of a decision: which counted, which were left out and why, and their samples."""

from typing import Final

import msgspec

from trimtab.dashboard.pages.views import PodView
from trimtab.decide.horizontal import MetricSamples, Observation, PodSamples, PodSnapshot, Record, Series
from trimtab.decide.horizontal.metrics.kinds import Proposal, resource_quantity
from trimtab.decide.horizontal.selection.selection import foreign_pods
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.hpa.types import MetricSpec

MAX_PODS: Final = 500
"""Pods that one page lists. The page also shows the total."""


def view_pods(record: Record, hidden_samples: frozenset[int] = frozenset()) -> tuple[PodView, ...]:
    """Return the pods, first those left out and those that the target does not own.

    Samples of the metrics in `hidden_samples`, by index, are left out.
    """
    observation, trace = record.observation, record.decision.trace
    left_out = {pod.pod: pod.reason for pod in trace.left_out}
    rejected = {
        pod: reason
        for index, proposal in enumerate(trace.proposals)
        if isinstance(proposal, Proposal) and index not in hidden_samples
        for pod, reason in proposal.rejected_samples
    }
    foreign = (
        foreign_pods(observation.pods, observation.target, observation.owners) if trace.extra_pods else {}
    )
    special = left_out | foreign
    ordered = sorted(observation.pods, key=lambda pod: (pod.name not in special, pod.name))
    if hidden_samples:
        observation = msgspec.structs.replace(
            observation, samples=_without(observation.samples, hidden_samples)
        )
    views = tuple(_pod(pod, observation, left_out, rejected) for pod in ordered[:MAX_PODS])
    return tuple(
        msgspec.structs.replace(view, is_foreign=True, reason=foreign[view.name])
        if view.name in foreign
        else view
        for view in views
    )


def _without(readings: tuple[MetricSamples, ...], hidden: frozenset[int]) -> tuple[MetricSamples, ...]:
    return tuple(Series() if index in hidden else reading for index, reading in enumerate(readings))


def _pod(
    pod: PodSnapshot, observation: Observation, left_out: dict[str, str], rejected: dict[str, str]
) -> PodView:
    metrics = observation.hpa.spec.metrics
    samples = tuple(
        _sample(pod, reading, metric) for reading, metric in zip(observation.samples, metrics, strict=False)
    )
    return PodView(
        name=pod.name,
        phase="Terminating" if pod.is_deleted else pod.phase or "Unknown",
        is_ready=pod.is_ready,
        is_counted=pod.name not in left_out,
        reason=left_out.get(pod.name) or _not_measured(pod, rejected, observation.samples),
        samples=samples,
    )


def _not_measured(pod: PodSnapshot, rejected: dict[str, str], readings: tuple[MetricSamples, ...]) -> str:
    if pod.name in rejected:
        return f"its sample is refused: {rejected[pod.name]}"
    if pod.is_deleted or pod.phase == "Failed":
        return "going or failed: not part of the average"
    if any(isinstance(reading, PodSamples) and pod.name not in reading.samples for reading in readings):
        return "no sample yet"
    return "" if pod.is_ready else "not ready yet"


def _sample(pod: PodSnapshot, reading: MetricSamples, metric: MetricSpec) -> str:
    if not isinstance(reading, PodSamples) or pod.name not in reading.samples:
        return ""
    milli = reading.samples[pod.name].value
    return str(resource_quantity(measured_by(metric).resource, milli))
