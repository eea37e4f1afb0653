"""What would be decided if something were different: the last observation, edited, through the same `decide`.

Nothing is kept and nothing is written. The edited spec goes through the defaults and the rules of an API server first,
so that only what could really be applied is tried.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from trimtab.dashboard.pages.decision import decision_view
from trimtab.dashboard.pages.views import DecisionView
from trimtab.decide.horizontal import (
    FetchFailure,
    Memory,
    MetricSamples,
    Observation,
    PodSamples,
    PodSnapshot,
    Record,
    Sample,
    Series,
    decide,
    owners_to_find,
)
from trimtab.decide.horizontal.explain.units import is_percent
from trimtab.decide.horizontal.memory import Recommendation
from trimtab.decide.horizontal.metrics.proposal import Proposal
from trimtab.decide.horizontal.observation.pods import MissingRequestError
from trimtab.model import hpa as hpa_rules
from trimtab.model.hpa.selection_strategy import ANNOTATIONS
from trimtab.model.hpa.types import HorizontalPodAutoscaler, MetricSpec, SelectionStrategy
from trimtab.model.json import wire

_TRIES: Final = 6
_CLOSE: Final = 0.0005
"""A value this near, as a share of itself, is the wanted one: samples are whole thousandths."""


@dataclass(frozen=True)
class WantedValue:
    """A metric of the spec and the value it should come to, in the unit of its proposal."""

    index: int
    value: float


def aimed(seen: Observation, now: datetime, wanted: WantedValue) -> Observation:
    """Return the observation with the metric's samples scaled alike, so that it comes to the wanted value."""
    for _ in range(_TRIES):
        found = proposal_of(seen, now, wanted.index)
        if found is None:
            return seen
        factor = _factor(found, wanted.value)
        if factor == 1.0:
            return seen
        reading = seen.samples[wanted.index]
        if found.value == 0:
            reading = _even(seen, wanted.index, is_utilization=is_percent(found.status))
        else:
            reading = _scaled(reading, factor)
        readings = (*seen.samples[: wanted.index], reading, *seen.samples[wanted.index + 1 :])
        seen = msgspec.structs.replace(seen, samples=readings)
    return seen


def proposal_of(seen: Observation, now: datetime, index: int) -> Proposal | None:
    """Return what a metric asks for; None if it cannot be read or nothing is measured."""
    proposals = decide(seen, now).trace.proposals
    found = proposals[index] if index < len(proposals) else None
    return found if isinstance(found, Proposal) else None


def _factor(found: Proposal, value: float) -> float:
    if is_percent(found.status):
        # A utilisation is cut to whole percents: aim at the middle of the wanted one.
        return 1.0 if found.value == int(value) else (value + 0.5) / (found.value + 0.5) if value else 0.0
    if abs(found.value - value) <= max(abs(value) * _CLOSE, 1.0):
        return 1.0
    return value / found.value if found.value else 0.0


def _scaled(reading: MetricSamples, factor: float) -> MetricSamples:
    if isinstance(reading, PodSamples):
        scaled = {name: _times(sample, factor) for name, sample in reading.samples.items()}
        return msgspec.structs.replace(reading, samples=scaled)
    if isinstance(reading, Series):
        return Series(samples=tuple(_times(sample, factor) for sample in reading.samples))
    return reading


def _times(sample: Sample, factor: float) -> Sample:
    return msgspec.structs.replace(sample, value=round(sample.value * factor))


def _even(seen: Observation, index: int, *, is_utilization: bool) -> MetricSamples:
    """Give every pod, or every series, the same small amount where all are zero and there is nothing to scale."""
    reading = seen.samples[index]
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


def _request(pod: PodSnapshot, metric: MetricSpec) -> int:
    container = metric.container_resource
    source = metric.resource or container
    try:
        return pod.request_of(source.name, container.container if container else "") if source else 0
    except MissingRequestError:
        return 0


_STAND_IN: Final = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "what-if", "namespace": "what-if", "uid": "what-if", "resourceVersion": "1"},
}
"""What an edited spec is checked under: only the spec is edited, and both kinds of HPA go by the same rules."""

MOST_REPLICAS: Final = 100_000
MOST_VALUE: Final = 1e15


class MetricEdit(msgspec.Struct, frozen=True, rename="camel"):
    """A metric set to another value, in the unit that the page shows it in."""

    index: int
    value: float


class Edits(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be different; a field that is absent stays as it is."""

    min_replicas: int | None = None
    max_replicas: int | None = None
    behavior: dict[str, Any] | None = None
    """The whole of `spec.behavior`, tolerances included."""
    selection_strategy: str | None = None
    replicas: int | None = None
    """The replicas that the target has now."""
    forgets: bool = False
    """Whether earlier recommendations and scale events are forgotten."""
    metrics: tuple[MetricEdit, ...] = ()


class RefusedEditsError(ValueError):
    """The edits make no valid HPA; the text says which field and why."""


def what_if(record: Record, edits: Edits) -> DecisionView:
    """Decide once more on the record's observation with the edits, at the record's own moment."""
    seen = edited(record, edits)
    return decision_view(Record(observation=seen, decision=decide(seen, moment_of(record))))


def moment_of(record: Record) -> datetime:
    """Return when the record was decided."""
    return datetime.fromtimestamp(record.decision.now, UTC)


def edited(record: Record, edits: Edits) -> Observation:
    """Return the record's observation with the edits; raise RefusedEditsError if an API server would refuse them."""
    seen = record.observation
    changes: dict[str, Any] = {"hpa": _spec(seen, edits)}
    if edits.replicas is not None:
        changes |= _replicas(seen, edits.replicas)
    if edits.forgets:
        changes["memory"] = Memory(
            uid=seen.hpa.metadata.uid, strategy=seen.memory.strategy, recommendations=()
        )
    return _with_metrics(msgspec.structs.replace(seen, **changes), moment_of(record), edits.metrics)


def owners_unknown(seen: Observation, *, can_look_up: bool = False) -> str:
    """Return why pods cannot be counted by owner in a what-if; empty if they can."""
    if not seen.gates.hpa_selection_strategy:
        return "the operator's feature gate HPASelectionStrategy is off"
    if can_look_up or not owners_to_find(seen.pods, seen.target, seen.owners):
        return ""
    return "the owners of these pods are not known here; counting by labels does not look them up"


def _spec(seen: Observation, edits: Edits) -> HorizontalPodAutoscaler:
    why = owners_unknown(seen)
    if edits.selection_strategy == SelectionStrategy.OWNER_REFERENCE and why:
        raise RefusedEditsError(f"selectionStrategy: {why}")
    fields = {
        "minReplicas": edits.min_replicas,
        "maxReplicas": edits.max_replicas,
        "behavior": edits.behavior,
        "selectionStrategy": edits.selection_strategy,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    if not changes:
        return seen.hpa
    spec_data: dict[str, Any] = wire.decode(wire.encode(seen.hpa.spec), dict)
    data = {**_STAND_IN, "spec": spec_data}
    wanted = {**_STAND_IN, "spec": {**spec_data, **changes}}
    try:
        errors = hpa_rules.validate_update(wanted, data, seen.gates)
        hpa = None if errors else wire.convert(hpa_rules.default(wanted), HorizontalPodAutoscaler)
    except ValueError as error:
        raise RefusedEditsError(str(error)) from error
    if hpa is None:
        raise RefusedEditsError("; ".join(str(error) for error in errors[:5]))
    metadata = seen.hpa.metadata
    if edits.selection_strategy is not None:
        # The annotation of a native HPA would contradict the choice.
        kept = {name: value for name, value in metadata.annotations.items() if name not in ANNOTATIONS}
        metadata = msgspec.structs.replace(metadata, annotations=kept)
    return msgspec.structs.replace(seen.hpa, metadata=metadata, spec=hpa.spec)


def _replicas(seen: Observation, replicas: int) -> dict[str, Any]:
    """Return the scale with other replicas; the recommendations begin with them, as for a workload found so."""
    if seen.scale is None:
        raise RefusedEditsError("replicas: the target's scale was not read, so it cannot be set")
    if not 0 <= replicas <= MOST_REPLICAS:
        raise RefusedEditsError(f"replicas: must be from 0 to {MOST_REPLICAS}")
    spec = msgspec.structs.replace(seen.scale.spec, replicas=replicas)
    begun = (Recommendation(replicas, 0.0),)
    return {
        "scale": msgspec.structs.replace(seen.scale, spec=spec),
        "memory": msgspec.structs.replace(seen.memory, replicas=replicas, recommendations=begun),
    }


def _with_metrics(seen: Observation, now: datetime, edits: tuple[MetricEdit, ...]) -> Observation:
    for edit in edits:
        where = f"metrics[{edit.index}]"
        if not 0 <= edit.index < min(len(seen.samples), len(seen.hpa.spec.metrics)):
            raise RefusedEditsError(f"{where}: there is no such metric")
        if not 0 <= edit.value <= MOST_VALUE:
            raise RefusedEditsError(f"{where}.value: must be from 0 to {MOST_VALUE:g}")
        found = proposal_of(seen, now, edit.index)
        if isinstance(seen.samples[edit.index], FetchFailure):
            raise RefusedEditsError(f"{where}: it could not be read, so it cannot be changed")
        if found is None:
            continue  # something stands before the metrics (replicas out of bounds): they do not count now
        value = edit.value if is_percent(found.status) else edit.value * 1000
        seen = aimed(seen, now, WantedValue(edit.index, value))
    return seen
