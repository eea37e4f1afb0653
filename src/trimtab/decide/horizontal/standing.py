"""What may be left out: a decision that would only repeat itself, and a write of what the cluster holds already.

A decision is a pure function of its observation and the time. While its inputs stay, only time can change it: a recommendation
leaves its window, a scale event its period, a young pod comes of age, a sample gets too old. `find_standing` computes how long a
decision holds, and within which usage. `memory.extend` then returns the memory that a decision would leave. `must_write` asks
whether what the cluster stores, extended to now, is still what a decision would leave.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.limits import rate_edges, window_edges
from trimtab.decide.horizontal.memory import QUIET_SECONDS, Memory, extend
from trimtab.decide.horizontal.metrics.combine import Result
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome, Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot
from trimtab.decide.horizontal.observation.samples import (
    MetricSamples,
    PodSamples,
    Sample,
    Series,
)
from trimtab.model.core.pod import CPU
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.metric_kinds import current_of, identity_of, measured_by, target_of
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
)
from trimtab.model.json.wire import Wire

MARGIN: Final = 0.01
"""Seconds by which every edge counts as nearer than it is, because sums of floats are inexact."""

ROUNDING: Final = 1e-9
"""The share by which a band is narrower than the rules, because products of floats are inexact."""

SLACK_SECONDS: Final = 1.0
"""How late a sync may be without a status being written a whole sync earlier."""


class Band(Wire):
    """The usage of a resource by all counted pods, in thousandths, in which a proposal stays the same number."""

    resource: str
    container: str
    low: float
    high: float

    def covers(self, values: list[int]) -> bool:
        """Return whether these values of the counted pods are within the band, and none of them is rejected."""
        return min(values) >= 0 and self.low <= sum(values) <= self.high


Reader = Callable[[str, str], list[int] | None]
"""Returns the value of each counted pod, of a resource and a container. None if there is a pod without a sample."""


class Standing(Wire):
    """A decision that holds until `until` while its inputs stay, and its values stay or are within the bands.

    The memory must be the one that the last decision left.
    """

    seen: Observation
    decision: Decision
    until: float
    pods: tuple[PodSnapshot, ...]
    """The pods that count."""
    values: tuple[list[int] | None, ...]
    """The values of each metric, in the order of the counted pods; None if its samples are no pods' or one is missing."""
    bands: tuple[Band | None, ...]
    shown_until: float
    """How long the stored values may be shown while others are measured."""
    fresh_for: float
    """How old a sample may be that no metric rejects."""

    def holds(self, seen: Observation, now: float) -> bool:
        """Return whether a decision on `seen` would leave the same."""
        last = self.seen
        return (
            self._is_current(seen.memory, now)
            and seen.hpa is last.hpa
            and seen.pods == last.pods
            and seen.scale == last.scale
            and seen.conflicting_hpas == last.conflicting_hpas
            and seen.owners == last.owners
            and seen.nodes == last.nodes
            and not seen.stale_inputs
            and self._have_same_samples(seen, now)
        )

    def holds_alone(
        self,
        hpa: HorizontalPodAutoscaler,
        scale: Scale | None,
        memory: Memory,
        now: float,
    ) -> bool:
        """Like `holds`, for HPAs without conflicts, ignoring pods and samples."""
        last = self.seen
        return (
            self._is_current(memory, now)
            and hpa is last.hpa
            and (scale is last.scale or scale == last.scale)
            and not last.conflicting_hpas
            and not last.owners
            and last.nodes is None
        )

    def accepts_ages(self, moved_at: float, now: float) -> bool:
        """Return whether no sample whose date moved then, or later, is close to being rejected."""
        return self._oldest(now) <= moved_at

    def values_within(self, read: Reader, now: float) -> tuple[list[int], ...] | None:
        """Return the values of all metrics if usage alone leaves the same, else None."""
        may_differ = now < self.shown_until
        if not may_differ and self.decision.status_changed:
            return None
        return self._values_within(read, may_differ=may_differ)

    def is_within_bands(self, read: Reader) -> bool:
        """Return whether usage asks for the same, however old the stored values are."""
        return self._values_within(read, may_differ=True) is not None

    def _values_within(self, read: Reader, *, may_differ: bool) -> tuple[list[int], ...] | None:
        found = []
        for metric, before, band in zip(self.seen.hpa.spec.metrics, self.values, self.bands, strict=True):
            values = read(*measured_by(metric))
            if values is None or before is None:
                return None
            if values != before and not (may_differ and band is not None and band.covers(values)):
                return None
            found.append(values)
        return tuple(found)

    def _have_same_samples(self, seen: Observation, now: float) -> bool:
        may_differ = now < self.shown_until
        if len(seen.samples) != len(self.values) or (not may_differ and self.decision.status_changed):
            return False
        oldest = self._oldest(now)
        for before, after, values, band in zip(
            self.seen.samples, seen.samples, self.values, self.bands, strict=True
        ):
            if not _are_accepted(after, oldest):
                return False
            if _are_same_values(before, after):
                continue
            found = _values_of(after, self.pods) if may_differ and values is not None else None
            if found is None or band is None or not band.covers(found):
                return False
        return True

    def _oldest(self, now: float) -> float:
        return now - self.fresh_for + MARGIN

    def _is_current(self, memory: Memory, now: float) -> bool:
        return _latest(memory) <= now < self.until


def find_standing(seen: Observation, decision: Decision, shown_until: float = -inf) -> Standing | None:
    """Return for how long and for which usage a decision holds, or None if the next one may differ at once.

    A changed status was not written, and waits until `shown_until`.
    """
    now = decision.now
    if not _is_repeatable(seen, decision) or (decision.status_changed and shown_until <= now):
        return None
    if _has_young_pods(seen, now) or (until := next_edge(seen, decision)) <= now:
        return None
    pods = counted_pods(seen, decision)
    return Standing(
        seen=seen,
        decision=decision,
        until=until,
        pods=pods,
        values=tuple([_values_of(samples, pods) for samples in seen.samples]),
        bands=_bands(seen, decision, pods),
        shown_until=shown_until,
        fresh_for=_fresh_for(seen),
    )


def find_standing_after_write(
    seen: Observation, decision: Decision, written: HorizontalPodAutoscaler, shown_until: float
) -> Standing | None:
    """Return the same for a decision of whose status only values and texts were new, about the object that the write returned."""
    before, after = seen.hpa, decision.status
    meta = msgspec.structs.replace(written.metadata, resource_version=before.metadata.resource_version)
    if written.status != after or written.spec is not before.spec or meta != before.metadata:
        return None
    if without_values(before.status) != without_values(after):
        return None
    seen = msgspec.structs.replace(seen, hpa=written)
    return find_standing(seen, msgspec.structs.replace(decision, status_changed=False), shown_until)


def next_edge(seen: Observation, decision: Decision) -> float:
    """Return when a window, a rate or a pause of a decision ends next, whether it binds or not."""
    edges = _edges(seen, decision)
    return min((edge for edge in edges if edge > decision.now - MARGIN), default=inf) - MARGIN


def counted_pods(seen: Observation, decision: Decision) -> tuple[PodSnapshot, ...]:
    """Return the pods that the decision counted."""
    left_out = {pod.pod for pod in decision.trace.left_out}
    return tuple(pod for pod in seen.pods if pod.name not in left_out) if left_out else seen.pods


def _is_repeatable(seen: Observation, decision: Decision) -> bool:
    """Return whether metrics alone decided, nothing is in doubt, and no scale or event follows."""
    trace = decision.trace
    return (
        seen.rules.ours  # upstream's memory grows with every sync
        and decision.scale_to is None
        and not decision.events
        and not decision.error
        and trace.is_measured
        and not trace.selection_fallback
        and not seen.stale_inputs
        and not seen.policy_answers  # a policy may depend on the time
        and all(
            isinstance(result, Proposal) and not result.rejected_samples and not result.removed
            for result in trace.proposals
        )
    )


def _has_young_pods(seen: Observation, now: float) -> bool:
    """Return whether CPU samples of a pod still depend on when exactly they were taken."""
    if not any(measured_by(metric).resource == CPU for metric in seen.hpa.spec.metrics):
        return False
    since = now - seen.settings.cpu_initialization_period - MARGIN
    return any(pod.started is not None and pod.started > since for pod in seen.pods)


def _edges(seen: Observation, decision: Decision) -> Iterator[float]:
    """Yield the times at which an entry of the memory stops counting."""
    memory = decision.memory
    yield from (at + seen.settings.event_interval for at in memory.last_event_times.values())
    yield from window_edges(seen, memory)
    yield from rate_edges(seen, memory)


def _fresh_for(seen: Observation) -> float:
    ages = [metric.max_age_seconds for metric in seen.hpa.spec.metrics]
    return min((seen.settings.stale_after if age is None else age for age in ages), default=0.0)


def _values_of(samples: MetricSamples, pods: tuple[PodSnapshot, ...]) -> list[int] | None:
    """Return the value of each pod, or None if there is one without a sample."""
    if not isinstance(samples, PodSamples):
        return None
    try:
        return [samples.samples[pod.name].value for pod in pods]
    except KeyError:
        return None


def _are_same_values(before: MetricSamples, after: MetricSamples) -> bool:
    if isinstance(after, PodSamples) and isinstance(before, PodSamples):
        old, new = before.samples, after.samples
        return list(old) == list(new) and _values(old.values()) == _values(new.values())
    if isinstance(after, Series) and isinstance(before, Series):
        return _values(before.samples) == _values(after.samples)
    return False


def _values(samples: Iterable[Sample]) -> list[int]:
    return [sample.value for sample in samples]


def _latest(memory: Memory) -> float:
    return memory.recommendations[-1].at if memory.recommendations else inf


def _are_accepted(metric: MetricSamples, oldest: float) -> bool:
    if not isinstance(metric, PodSamples | Series):
        return True
    if metric.moves:
        return all(move.since >= oldest for move in metric.moves)
    samples: Iterable[Sample] = metric.samples.values() if isinstance(metric, PodSamples) else metric.samples
    return all(sample.timestamp >= oldest or sample.timestamp == NEVER for sample in samples)


def _bands(seen: Observation, decision: Decision, pods: tuple[PodSnapshot, ...]) -> tuple[Band | None, ...]:
    """Return the band of each metric, or None where only a whole decision can say."""
    trace, metrics = decision.trace, seen.hpa.spec.metrics
    # Pods of a rollout may be all that asks for more, which depends on their usage, too.
    if not pods or trace.surge_pods or len(trace.proposals) != len(metrics):
        return (None,) * len(seen.samples)
    return tuple(
        [
            _band(pods, metric, result, trace.tolerance)
            for metric, result in zip(metrics, trace.proposals, strict=True)
        ]
    )


def _band(
    pods: tuple[PodSnapshot, ...], metric: MetricSpec, result: Result, tolerance: Tolerance
) -> Band | None:
    resource, container = measured_by(metric)
    if not resource or not isinstance(result, Proposal) or result.counts is None:
        return None
    if result.counts.ready != len(pods) or result.activation is not None:
        return None
    edges = _edges_of_value(result, len(pods), tolerance)
    try:
        unit = _unit(pods, resource, container, target_of(metric))
    except MissingRequestError:
        return None
    if edges is None or unit is None:
        return None
    # Percentages and averages are cut to whole numbers before they are compared, so 1 more is safely inside.
    low, high = (edges[0] + 1) * unit, edges[1] * unit
    return Band(resource=resource, container=container, low=low, high=high)


def _edges_of_value(result: Proposal, pods: int, tolerance: Tolerance) -> tuple[float, float] | None:
    """Return between which values, in units of the target, a proposal stays the same number."""
    target, down, up = result.target, 1.0 - tolerance.down, 1.0 + tolerance.up
    if result.outcome is ProposalOutcome.WITHIN_TOLERANCE:
        return target * down, target * up
    if result.outcome is not ProposalOutcome.PROPOSED or result.ratio is None:
        return None
    low, high = (result.replicas - 1) / pods, result.replicas / pods
    if result.ratio > 1.0:
        low = max(low, up)
    else:
        high = min(high, down)
    return target * low * (1 + ROUNDING), target * high * (1 - ROUNDING)


def _unit(pods: tuple[PodSnapshot, ...], resource: str, container: str, target: MetricTarget) -> float | None:
    """Return the usage of all pods per unit of the target."""
    if target.average_value is not None:
        return float(len(pods))
    if target.average_utilization is None:
        return None
    return sum(pod.request_of(resource, container) for pod in pods) / 100


class Stored(NamedTuple):
    """What the cluster stores of the last decision."""

    status: HorizontalPodAutoscalerStatus
    read_memory: Callable[[], Memory]
    """Parses the memory, which not every call needs."""
    is_inherited: bool = False
    """Whether the process that decides has not stored anything yet."""
    has_other_reason: bool = False
    """Whether the stored reason, in one word, is not that of the new decision."""


class WriteReason(StrEnum):
    """Why a status is written now."""

    MEMORY = "memory"
    """A replica that takes over would not remember the same."""
    SUBSTANCE = "substance"
    """More than values and texts differs."""
    AGE = "age"
    """Values or texts differ, and the stored ones are old."""


def must_write(
    stored: Stored, decision: Decision, *, keeps_memory: bool, max_age: float | None
) -> WriteReason | None:
    """Return why the status of a decision is written now, or None if it may wait.

    Values and texts under the same reason wait until the stored ones are `max_age` old. None: they do not wait.
    """
    memory = decision.memory
    before = stored.read_memory() if keeps_memory else memory
    # The last decision was repeated until now. So the time of the latest recommendation forces no write.
    if extend(before, memory.at) != memory:
        return WriteReason.MEMORY
    # Who takes over writes a quiet HPA once, so that its memory is worth something in the next hand-over.
    if keeps_memory and stored.is_inherited and decision.now - before.at > QUIET_SECONDS / 2:
        return WriteReason.MEMORY
    if stored.has_other_reason:
        return WriteReason.SUBSTANCE
    if not decision.status_changed:
        return None
    if without_values(stored.status) != without_values(decision.status):
        return WriteReason.SUBSTANCE
    is_old = max_age is None or decision.now - before.at >= max_age - SLACK_SECONDS
    return WriteReason.AGE if is_old else None


def without_values(status: HorizontalPodAutoscalerStatus) -> tuple[object, ...]:
    """Return what a status says without the values of metrics and the texts of conditions."""
    return (
        status.observed_generation,
        status.current_replicas,
        status.desired_replicas,
        status.last_scale_time,
        [(each.type, each.status, each.reason, each.last_transition_time) for each in status.conditions],
        [_without_value(each) for each in status.current_metrics],
    )


def _without_value(metric: MetricStatus) -> tuple[object, ...]:
    """Return the identity of a metric, and which values it has."""
    current = current_of(metric)
    values = (current.value, current.average_value, current.average_utilization)
    return *identity_of(metric), *(value is None for value in values)
