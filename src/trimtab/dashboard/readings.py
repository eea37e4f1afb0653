"""Readings changed so that a metric comes to a wanted value, for the what-if.

A page shows what a metric came to; a decision starts from samples. Between the two lie averages, percentages and
rounding, so the samples are scaled, the decision asked what they come to, and the rest corrected.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from trimtab.decide.horizontal import Observation, PodFacts, PodSamples, Reading, Sample, Series, decide
from trimtab.decide.horizontal.explain.units import is_percent
from trimtab.decide.horizontal.metrics.proposal import Proposal
from trimtab.decide.horizontal.observation.pods import MissingRequestError
from trimtab.model.hpa.types import MetricSpec

_TRIES: Final = 6
_CLOSE: Final = 0.0005
"""A value this near, as a share of itself, is the wanted one: samples are whole thousandths."""


@dataclass(frozen=True)
class Wanted:
    """A metric of the spec and the value it should come to, in the unit of its proposal."""

    index: int
    value: float


def aimed(seen: Observation, now: datetime, wanted: Wanted) -> Observation:
    """Return the observation with the metric's samples scaled alike, so that it comes to the wanted value."""
    for _ in range(_TRIES):
        found = proposal_of(seen, now, wanted.index)
        if found is None:
            return seen
        factor = _factor(found, wanted.value)
        if factor == 1.0:
            return seen
        reading = seen.readings[wanted.index]
        if found.value == 0:
            reading = _even(seen, wanted.index, is_utilization=is_percent(found.status))
        else:
            reading = _scaled(reading, factor)
        readings = (*seen.readings[: wanted.index], reading, *seen.readings[wanted.index + 1 :])
        seen = msgspec.structs.replace(seen, readings=readings)
    return seen


def proposal_of(seen: Observation, now: datetime, index: int) -> Proposal | None:
    """Return what a metric asks for; None if it cannot be read or nothing is measured."""
    proposals = decide(seen, now).trail.proposals
    found = proposals[index] if index < len(proposals) else None
    return found if isinstance(found, Proposal) else None


def _factor(found: Proposal, value: float) -> float:
    if is_percent(found.status):
        # A utilisation is cut to whole percents: aim at the middle of the wanted one.
        return 1.0 if found.value == int(value) else (value + 0.5) / (found.value + 0.5) if value else 0.0
    if abs(found.value - value) <= max(abs(value) * _CLOSE, 1.0):
        return 1.0
    return value / found.value if found.value else 0.0


def _scaled(reading: Reading, factor: float) -> Reading:
    if isinstance(reading, PodSamples):
        scaled = {name: _times(sample, factor) for name, sample in reading.samples.items()}
        return msgspec.structs.replace(reading, samples=scaled)
    if isinstance(reading, Series):
        return Series(samples=tuple(_times(sample, factor) for sample in reading.samples))
    return reading


def _times(sample: Sample, factor: float) -> Sample:
    return msgspec.structs.replace(sample, value=round(sample.value * factor))


def _even(seen: Observation, index: int, *, is_utilization: bool) -> Reading:
    """Give every pod, or every series, the same small amount where all are zero and there is nothing to scale."""
    reading = seen.readings[index]
    if isinstance(reading, Series):
        return Series(samples=tuple(msgspec.structs.replace(one, value=1000) for one in reading.samples))
    if not isinstance(reading, PodSamples):
        return reading
    metric = seen.hpa.spec.metrics[index]
    requests = {pod.name: _request(pod, metric) if is_utilization else 1000 for pod in seen.pods}
    samples = {
        name: msgspec.structs.replace(sample, value=requests.get(name, 0))
        for name, sample in reading.samples.items()
    }
    return msgspec.structs.replace(reading, samples=samples)


def _request(pod: PodFacts, metric: MetricSpec) -> int:
    container = metric.container_resource
    source = metric.resource or container
    try:
        return pod.request_of(source.name, container.container if container else "") if source else 0
    except MissingRequestError:
        return 0
