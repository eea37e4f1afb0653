"""The what-if: the last observation, edited, through the same `decide`.

Nothing is stored. The edited spec passes the defaults and the validation of an API server first, so only a spec that
could be applied is tried. Edited metric values are reached by scaling the samples.
"""

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
from trimtab.decide.horizontal.memory import Recommendation, owner_of
from trimtab.decide.horizontal.metrics.combine import Result
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.observation.plugin_answers import FilterAnswer
from trimtab.decide.horizontal.observation.pods import MissingRequestError
from trimtab.decide.horizontal.units import is_percent
from trimtab.model import hpa as hpa_rules
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.hpa.selection_strategy import ANNOTATIONS
from trimtab.model.hpa.types import HorizontalPodAutoscaler, MetricSpec, SelectionStrategy
from trimtab.model.json import wire
from trimtab.model.readable import counted

MAX_REPLICAS: Final = 100_000
MAX_VALUE: Final = 1e15

_OBJECT: Final = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "what-if", "namespace": "what-if", "uid": "what-if", "resourceVersion": "1"},
}
"""The object in which an edited spec is validated. Both kinds of HPA have the same rules for the spec."""

_MAX_ROUNDS: Final = 6
_CLOSE_ENOUGH: Final = 0.0005
"""A value is close enough within this fraction, because samples are integers of 1/1000."""


class MetricEdit(msgspec.Struct, frozen=True, rename="camel"):
    """A metric set to another value, in the unit of the page."""

    index: int
    value: float


class Edits(msgspec.Struct, frozen=True, rename="camel"):
    """The edited fields. An absent field stays as it is."""

    min_replicas: int | None = None
    max_replicas: int | None = None
    behavior: dict[str, Any] | None = None
    """The whole of `spec.behavior`, tolerances included."""
    selection_strategy: str | None = None
    replicas: int | None = None
    """The current replicas of the target."""
    forgets: bool = False
    """Whether earlier recommendations and scale events are dropped."""
    metrics: tuple[MetricEdit, ...] = ()


class RefusedEditsError(ValueError):
    """The edited HPA is invalid. The message contains field and reason."""


def what_if(record: Record, edits: Edits) -> DecisionView:
    """Decide again on the record's observation with the edits, at the record's own time."""
    observation = edited(record, edits)
    view = decision_view(Record(observation=observation, decision=decide(observation, decided_at(record))))
    notes = tuple(
        f"the edits for {answer.plugin}, which is not called again: the answer that the operator got counts"
        for answer in (_filter_in_force(observation), *observation.policy_answers)
        if answer is not None
    )
    return msgspec.structs.replace(view, ignored=(*view.ignored, *notes))


def _filter_in_force(observation: Observation) -> FilterAnswer | None:
    """Return the answer of the pod filter, unless the edits choose a strategy of Trimtab itself."""
    answer = observation.filter_answer
    return answer if answer is not None and observation.hpa.spec.selection_strategy == answer.plugin else None


def decided_at(record: Record) -> datetime:
    """Return when the record was decided."""
    return datetime.fromtimestamp(record.decision.now, UTC)


def edited(record: Record, edits: Edits) -> Observation:
    """Return the record's observation with the edits. Raise RefusedEditsError if they are invalid."""
    observation = record.observation
    changes: dict[str, Any] = {"hpa": _edit_hpa(observation, edits)}
    if edits.replicas is not None:
        changes |= _edit_replicas(observation, edits.replicas)
    if edits.forgets:
        changes["memory"] = Memory(
            owner=owner_of(observation.hpa), strategy=observation.memory.strategy, recommendations=()
        )
    return _edit_metrics(msgspec.structs.replace(observation, **changes), decided_at(record), edits.metrics)


def owners_unknown(observation: Observation, *, can_look_up: bool = False) -> str:
    """Return why the what-if cannot count pods by owner, or an empty text."""
    if not observation.gates.hpa_selection_strategy:
        return "the operator's feature gate HPASelectionStrategy is off"
    if can_look_up or not owners_to_find(observation.pods, observation.target, observation.owners):
        return ""
    return "the owners of these pods are not known here; counting by labels does not look them up"


def _edit_hpa(observation: Observation, edits: Edits) -> HorizontalPodAutoscaler:
    reason = owners_unknown(observation)
    if edits.selection_strategy == SelectionStrategy.OWNER_REFERENCE and reason:
        raise RefusedEditsError(f"selectionStrategy: {reason}")
    fields = {
        "minReplicas": edits.min_replicas,
        "maxReplicas": edits.max_replicas,
        "behavior": edits.behavior,
        "selectionStrategy": edits.selection_strategy,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    if not changes:
        return observation.hpa
    spec_data: dict[str, Any] = wire.decode(wire.encode(observation.hpa.spec), dict)
    old = {**_OBJECT, "spec": spec_data}
    new = {**_OBJECT, "spec": {**spec_data, **changes}}
    try:
        errors = hpa_rules.validate_update(new, old, observation.gates)
        hpa = None if errors else wire.convert(hpa_rules.default(new), HorizontalPodAutoscaler)
    except ValueError as error:
        raise RefusedEditsError(str(error)) from error
    if hpa is None:
        raise RefusedEditsError("; ".join(str(error) for error in errors[:5]))
    metadata = observation.hpa.metadata
    if edits.selection_strategy is not None:
        # The annotation of a native HPA would contradict the choice.
        kept = {name: value for name, value in metadata.annotations.items() if name not in ANNOTATIONS}
        metadata = msgspec.structs.replace(metadata, annotations=kept)
    return msgspec.structs.replace(observation.hpa, metadata=metadata, spec=hpa.spec)


def _edit_replicas(observation: Observation, replicas: int) -> dict[str, Any]:
    """Return the scale with other replicas, and memory that starts with them."""
    if observation.scale is None:
        raise RefusedEditsError("replicas: the target's scale was not read, so it cannot be set")
    if not 0 <= replicas <= MAX_REPLICAS:
        raise RefusedEditsError(f"replicas: must be from 0 to {MAX_REPLICAS}")
    spec = msgspec.structs.replace(observation.scale.spec, replicas=replicas)
    return {
        "scale": msgspec.structs.replace(observation.scale, spec=spec),
        "memory": msgspec.structs.replace(
            observation.memory, replicas=replicas, recommendations=(Recommendation(replicas, 0.0),)
        ),
    }


def _edit_metrics(observation: Observation, now: datetime, edits: tuple[MetricEdit, ...]) -> Observation:
    """Scale the samples of the edited metrics until their proposals have the wanted values.

    All metrics are scaled in the same rounds, so the number of decisions does not depend on the number of edits.
    """
    _check_metrics(observation, edits)
    for _ in range(_MAX_ROUNDS if edits else 0):
        proposals = decide(observation, now).trace.proposals
        scaled = {
            edit.index: samples
            for edit in edits
            if edit.index < len(proposals)
            and (samples := _scale_metric(observation, edit, proposals[edit.index])) is not None
        }
        if not scaled:
            break
        readings = tuple(scaled.get(index, reading) for index, reading in enumerate(observation.samples))
        observation = msgspec.structs.replace(observation, samples=readings)
    return observation


def _check_metrics(observation: Observation, edits: tuple[MetricEdit, ...]) -> None:
    number = min(len(observation.samples), len(observation.hpa.spec.metrics))
    if len(edits) > number:
        raise RefusedEditsError(
            f"metrics: {counted(len(edits), 'edit')} for {counted(number, 'metric')} of the HPA"
        )
    seen: set[int] = set()
    for edit in edits:
        where = f"metrics[{edit.index}]"
        if not 0 <= edit.index < number:
            raise RefusedEditsError(f"{where}: there is no such metric")
        if edit.index in seen:
            raise RefusedEditsError(f"{where}: it is edited twice")
        if not 0 <= edit.value <= MAX_VALUE:
            raise RefusedEditsError(f"{where}.value: must be from 0 to {MAX_VALUE:g}")
        if isinstance(observation.samples[edit.index], FetchFailure):
            raise RefusedEditsError(f"{where}: it could not be read, so it cannot be changed")
        seen.add(edit.index)


def _scale_metric(observation: Observation, edit: MetricEdit, result: Result) -> MetricSamples | None:
    """Return samples that are nearer to the wanted value, or None if the metric has it or does not count."""
    if not isinstance(result, Proposal):
        return None  # metrics do not count, for example because the replicas are out of bounds
    is_utilization = is_percent(result.status)
    factor = _factor(result, edit.value if is_utilization else edit.value * 1000)
    if factor == 1.0:
        return None
    if result.value == 0:
        return _equal_samples(observation, edit.index, is_utilization=is_utilization)
    return _scale(observation.samples[edit.index], factor)


def _factor(proposal: Proposal, value: float) -> float:
    current = proposal.value
    if is_percent(proposal.status):
        # Utilization is truncated to whole percents, so aim at the middle of the wanted percent.
        return 1.0 if current == int(value) else (value + 0.5) / (current + 0.5) if value else 0.0
    if abs(current - value) <= max(abs(value) * _CLOSE_ENOUGH, 1.0):
        return 1.0
    return value / current if current else 0.0


def _scale(reading: MetricSamples, factor: float) -> MetricSamples:
    if isinstance(reading, PodSamples):
        scaled = {name: _multiply(sample, factor) for name, sample in reading.samples.items()}
        return msgspec.structs.replace(reading, samples=scaled)
    if isinstance(reading, Series):
        return Series(samples=tuple(_multiply(sample, factor) for sample in reading.samples))
    return reading


def _multiply(sample: Sample, factor: float) -> Sample:
    return msgspec.structs.replace(sample, value=round(sample.value * factor))


def _equal_samples(observation: Observation, index: int, *, is_utilization: bool) -> MetricSamples:
    """Return equal samples for every pod or series, since zeros cannot be scaled."""
    reading = observation.samples[index]
    if isinstance(reading, Series):
        return Series(
            samples=tuple(msgspec.structs.replace(sample, value=1000) for sample in reading.samples)
        )
    if not isinstance(reading, PodSamples):
        return reading
    metric = observation.hpa.spec.metrics[index]
    requests = {pod.name: _request(pod, metric) if is_utilization else 1000 for pod in observation.pods}
    samples = {
        name: msgspec.structs.replace(sample, value=requests.get(name, 0))
        for name, sample in reading.samples.items()
    }
    return msgspec.structs.replace(reading, samples=samples)


def _request(pod: PodSnapshot, metric: MetricSpec) -> int:
    try:
        return pod.request_of(*measured_by(metric))
    except MissingRequestError:
        return 0
