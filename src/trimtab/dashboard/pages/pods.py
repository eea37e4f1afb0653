"""The pods behind a decision: which counted, which were left out and why, and what each was measured at."""

from typing import Final

import msgspec

from trimtab.dashboard.pages.views import PodView
from trimtab.decide.horizontal import (
    MetricSamples,
    Observation,
    PodSamples,
    PodSnapshot,
    Record,
)
from trimtab.decide.horizontal.metrics.proposal import Proposal
from trimtab.decide.horizontal.selection.selection import foreign_pods
from trimtab.model.core.pod import MEMORY
from trimtab.model.hpa.types import MetricSpec
from trimtab.model.quantity import Quantity

MOST_PODS: Final = 500
"""Pods that one page lists; the rest is counted."""


def pods_of(record: Record) -> tuple[PodView, ...]:
    """Return the pods; those that are left out or not the target's own come first."""
    seen, trace = record.observation, record.decision.trace
    left_out = {pod.pod: pod.reason for pod in trace.left_out}
    refused = {
        pod: rule
        for proposal in trace.proposals
        if isinstance(proposal, Proposal)
        for pod, rule in proposal.rejected_samples
    }
    foreign = foreign_pods(seen.pods, seen.target, seen.owners) if trace.extra_pods else {}
    odd = left_out | foreign
    ordered = sorted(seen.pods, key=lambda pod: (pod.name not in odd, pod.name))
    views = tuple(_pod(pod, seen, left_out, refused) for pod in ordered[:MOST_PODS])
    return tuple(
        msgspec.structs.replace(view, is_foreign=True, why=foreign[view.name])
        if view.name in foreign
        else view
        for view in views
    )


def _pod(pod: PodSnapshot, seen: Observation, left_out: dict[str, str], refused: dict[str, str]) -> PodView:
    metrics = seen.hpa.spec.metrics
    samples = tuple(
        _sample(pod, reading, metric) for reading, metric in zip(seen.samples, metrics, strict=False)
    )
    return PodView(
        name=pod.name,
        phase="Terminating" if pod.is_deleted else pod.phase or "Unknown",
        is_ready=pod.is_ready,
        is_counted=pod.name not in left_out,
        why=left_out.get(pod.name) or _doubt(pod, refused, seen.samples),
        samples=samples,
    )


def _doubt(pod: PodSnapshot, refused: dict[str, str], readings: tuple[MetricSamples, ...]) -> str:
    """Say why a pod that counts is not measured like the others."""
    if pod.name in refused:
        return f"its sample is refused: {refused[pod.name]}"
    if pod.is_deleted or pod.phase == "Failed":
        return "going or failed: not part of the average"
    if any(isinstance(one, PodSamples) and pod.name not in one.samples for one in readings):
        return "no sample yet"
    return "" if pod.is_ready else "not ready yet"


def _sample(pod: PodSnapshot, reading: MetricSamples, metric: MetricSpec) -> str:
    if not isinstance(reading, PodSamples) or pod.name not in reading.samples:
        return ""
    milli = reading.samples[pod.name].value
    source = metric.resource or metric.container_resource
    is_memory = source is not None and source.name == MEMORY
    return str(Quantity.from_milli(milli, "BinarySI" if is_memory else "DecimalSI"))
