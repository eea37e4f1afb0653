"""Decisions that need not be made again, because their inputs did not change.

A decision is a pure function of its observation and the time. While neither the objects nor the samples change, only time can
change it: a recommendation leaves its window, a scale event its period, a young pod comes of age, a sample gets too old.
`find_unchanged` computes when the first of these happens. Until then `still_valid` says whether a decision would be the same,
and `memory.extend` returns the memory that it would leave.
"""

from collections.abc import Iterable, Iterator
from math import inf

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.limits import DEFAULT_DOWN, DEFAULT_UP, GRACE_SECONDS, windows_of
from trimtab.decide.horizontal.memory import LONGEST_WINDOW, Memory
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import (
    MetricSamples,
    PodSamples,
    Sample,
    Series,
)
from trimtab.model.core.pod import CPU
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire

MARGIN = 0.01
"""Seconds by which every edge counts as nearer than it is, because sums of floats are inexact."""


class UnchangedDecision(Wire):
    """A decision that stays the same until `until`, as long as its inputs do."""

    observation: Observation
    decision: Decision
    until: float
    values: tuple[list[int], ...] | None = None
    """The sample values of each metric in the order of the pods; None unless every metric covers every pod."""
    fresh_for: float = 0.0
    """How old a sample may be that no metric rejects."""

    def still_valid(self, observation: Observation, now: float) -> bool:
        """Return whether a decision on `observation` would be the same.

        Its memory must be the memory that the last decision left.
        """
        last = self.observation
        return (
            self._is_current(observation.memory, now)
            and observation.hpa is last.hpa
            and observation.pods == last.pods
            and observation.scale == last.scale
            and observation.conflicting_hpas == last.conflicting_hpas
            and observation.owners == last.owners
            and observation.nodes == last.nodes
            and not observation.stale_inputs
            and _have_same_samples(last, observation, self._oldest(now))
        )

    def still_valid_alone(
        self,
        hpa: HorizontalPodAutoscaler,
        scale: Scale | None,
        memory: Memory,
        now: float,
    ) -> bool:
        """Like `still_valid`, for HPAs without conflicts, ignoring pods and samples."""
        last = self.observation
        return (
            self._is_current(memory, now)
            and hpa is last.hpa
            and (scale is last.scale or scale == last.scale)
            and not last.conflicting_hpas
            and not last.owners
            and last.nodes is None
        )

    def accepts(self, moved_at: float, now: float) -> bool:
        """Return whether no sample whose date moved then, or later, is close to being rejected."""
        return self._oldest(now) <= moved_at

    def _oldest(self, now: float) -> float:
        return now - self.fresh_for + MARGIN

    def _is_current(self, memory: Memory, now: float) -> bool:
        return _latest(memory) <= now < self.until


def find_unchanged(observation: Observation, decision: Decision) -> UnchangedDecision | None:
    """Return for how long a decision stays the same, or None if it may differ at once."""
    now = decision.now
    if not _is_repeatable(observation, decision) or _has_young_pods(observation, now):
        return None
    first = min((edge for edge in _edges(observation, decision) if edge > now - MARGIN), default=inf)
    until = first - MARGIN
    if until <= now:
        return None
    fresh_for = _fresh_for(observation)
    return UnchangedDecision(
        observation=observation,
        decision=decision,
        until=until,
        values=_each_value(observation),
        fresh_for=fresh_for,
    )


def _fresh_for(observation: Observation) -> float:
    ages = [metric.max_age_seconds for metric in observation.hpa.spec.metrics]
    return min((observation.settings.stale_after if age is None else age for age in ages), default=0.0)


def _is_repeatable(observation: Observation, decision: Decision) -> bool:
    """Return whether metrics alone decided, and nothing was written or emitted."""
    trace = decision.trace
    return (
        observation.rules.ours  # upstream's memory grows with every sync
        and decision.scale_to is None
        and not decision.status_changed
        and not decision.events
        and not decision.error
        and trace.is_measured
        and not trace.selection_fallback
        and not observation.stale_inputs
        and not observation.policy_answers  # a policy may depend on the time
        and all(
            isinstance(result, Proposal) and not result.rejected_samples and not result.removed
            for result in trace.proposals
        )
    )


def _each_value(observation: Observation) -> tuple[list[int], ...] | None:
    names = [pod.name for pod in observation.pods]
    found: list[list[int]] = []
    for samples in observation.samples:
        if not isinstance(samples, PodSamples) or list(samples.samples) != names:
            return None
        found.append(_values(samples.samples.values()))
    return tuple(found)


def _has_young_pods(observation: Observation, now: float) -> bool:
    """Return whether CPU samples of a pod still depend on when exactly they were taken."""
    if not any(measured_by(metric).resource == CPU for metric in observation.hpa.spec.metrics):
        return False
    since = now - observation.settings.cpu_initialization_period - MARGIN
    return any(pod.started is not None and pod.started > since for pod in observation.pods)


def _edges(observation: Observation, decision: Decision) -> Iterator[float]:
    """Yield the times at which an entry of the memory stops counting."""
    memory, behavior = decision.memory, observation.hpa.spec.behavior
    yield from (at + observation.settings.event_interval for at in memory.last_event_times.values())
    older = (memory.recommendations or ())[:-1]
    if older:
        windows = windows_of(behavior, observation.settings)
        spans = {windows.up, windows.down, observation.settings.downscale_stabilization, LONGEST_WINDOW}
        for recommendation in older:
            for span in spans:
                yield recommendation.at + span - GRACE_SECONDS
                yield recommendation.at + span
    if behavior is not None and (memory.scale_up or memory.scale_down):
        rules = (behavior.scale_up or DEFAULT_UP, behavior.scale_down or DEFAULT_DOWN)
        periods = {policy.period_seconds for rule in rules for policy in rule.policies}
        events = (*memory.scale_up, *memory.scale_down)
        yield from (event.at + period - GRACE_SECONDS for event in events for period in periods)


def _have_same_samples(last: Observation, observation: Observation, oldest: float) -> bool:
    if len(last.samples) != len(observation.samples):
        return False
    return all(
        _are_same_values(before, after) and _are_accepted(after, oldest)
        for before, after in zip(last.samples, observation.samples, strict=True)
    )


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
