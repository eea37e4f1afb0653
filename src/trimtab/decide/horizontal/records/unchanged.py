"""Decisions that need not be made again: the same inputs, nothing to write, and nothing that time alone would change.

A decision is a pure function of what was seen and of the time. When neither the objects nor the values of the metrics
changed, only time can change it: a recommendation leaves its window, a scale event its period, a young pod comes of
age, a sample gets too old. `steady` says when the first of these happens; until then `covers` tells whether deciding
would give the same answer, and `continued` gives the memory that it would have left.
"""

from collections.abc import Iterable, Iterator
from math import inf

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.behavior.normalize import DEFAULT_DOWN, DEFAULT_UP, windows_of
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.memory import LONGEST_WINDOW, LastGood, Memory, Recommendation
from trimtab.decide.horizontal.metrics.proposal import Proposal
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import (
    MetricSamples,
    PodSamples,
    Sample,
    Series,
)
from trimtab.model.core.pod import CPU
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire

MARGIN = 0.01
"""Seconds by which every edge counts as nearer than it is: sums of floats need not agree to the last bit."""


class Steady(Wire):
    """A decision that needs not be made again before `until`, as long as what it was made on stays the same."""

    seen: Observation
    decision: Decision
    until: float
    values: tuple[list[int], ...] | None = None
    """What each metric said of each pod, in their order; None if one was not about every pod."""
    fresh_for: float = 0.0
    """How old a sample may be that no metric refuses."""

    def covers(self, seen: Observation, now: float) -> bool:
        """Return whether deciding on `seen` would repeat the decision; its memory must be what was left by the last."""
        last = self.seen
        return (
            self._lasts(seen.memory, now)
            and seen.hpa is last.hpa
            and seen.pods == last.pods
            and seen.scale == last.scale
            and seen.rivals == last.rivals
            and seen.owners == last.owners
            and _say_the_same(last, seen, *self._dates(now))
        )

    def covers_alone(
        self, hpa: HorizontalPodAutoscaler, scale: Scale | None, memory: Memory, now: float
    ) -> bool:
        """Return the same for one who owns its pods alone, as far as its pods and their metrics do not matter."""
        last = self.seen
        return (
            self._lasts(memory, now)
            and hpa is last.hpa
            and (scale is last.scale or scale == last.scale)
            and not last.rivals
            and not last.owners
        )

    def believes(self, span: tuple[float, float], now: float) -> bool:
        """Return whether no sample of that time is near the edge of being refused for its date."""
        oldest, latest = self._dates(now)
        return oldest <= span[0] and span[1] <= latest

    def _dates(self, now: float) -> tuple[float, float]:
        return now - self.fresh_for + MARGIN, now + self.seen.settings.ahead_limit - MARGIN

    def _lasts(self, memory: Memory, now: float) -> bool:
        return _latest(memory) <= now < self.until


def steady(seen: Observation, decision: Decision) -> Steady | None:
    """Return for how long a decision repeats itself; None if it may differ at once."""
    now = decision.now
    if not _is_repeatable(seen, decision) or _has_young_pods(seen, now):
        return None
    first = min((edge for edge in _edges(seen, decision) if edge > now - MARGIN), default=inf)
    until = first - MARGIN
    if until <= now:
        return None
    fresh_for = _fresh_for(seen)
    return Steady(seen=seen, decision=decision, until=until, values=_each_value(seen), fresh_for=fresh_for)


def _fresh_for(seen: Observation) -> float:
    ages = [metric.max_age_seconds for metric in seen.hpa.spec.metrics]
    return min((seen.settings.stale_after if age is None else age for age in ages), default=0.0)


def continued(memory: Memory, now: float) -> Memory:
    """Return the memory as one more decision of the same kind would leave it: what it read and asked for is younger."""
    known = memory.recommendations
    if not known:
        return memory
    latest = Recommendation(known[-1].replicas, now)
    good = tuple(LastGood(one.key, one.replicas, now) for one in memory.last_good)
    return msgspec.structs.replace(memory, recommendations=(*known[:-1], latest), last_good=good)


def _is_repeatable(seen: Observation, decision: Decision) -> bool:
    """Return whether nothing was written or told, and metrics alone decided."""
    trail = decision.trail
    return (
        seen.compat.compact_memory  # upstream's memory grows with every sync
        and decision.scale_to is None
        and not decision.status_changed
        and not decision.events
        and not decision.error
        and trail.normalized is not None
        and not trail.fallback
        and all(isinstance(one, Proposal) and not one.refused for one in trail.proposals)
    )


def _each_value(seen: Observation) -> tuple[list[int], ...] | None:
    names = [pod.name for pod in seen.pods]
    found: list[list[int]] = []
    for reading in seen.readings:
        if not isinstance(reading, PodSamples) or list(reading.samples) != names:
            return None
        found.append(_values(reading.samples.values()))
    return tuple(found)


def _has_young_pods(seen: Observation, now: float) -> bool:
    """Return whether the worth of a CPU sample still depends on when exactly it was taken."""
    sources = [metric.resource or metric.container_resource for metric in seen.hpa.spec.metrics]
    if not any(source is not None and source.name == CPU for source in sources):
        return False
    since = now - seen.settings.cpu_initialization_period - MARGIN
    return any(pod.started is not None and pod.started > since for pod in seen.pods)


def _edges(seen: Observation, decision: Decision) -> Iterator[float]:
    """Yield the moments at which something remembered stops to count."""
    memory, behavior = decision.memory, seen.hpa.spec.behavior
    yield from (at + seen.settings.event_interval for at in memory.told.values())
    older = (memory.recommendations or ())[:-1]
    if older:
        windows = windows_of(behavior, seen.settings)
        spans = {windows.up, windows.down, seen.settings.downscale_stabilization, LONGEST_WINDOW}
        yield from (one.at + span for one in older for span in spans)
    if behavior is not None and (memory.scale_up or memory.scale_down):
        rules = (behavior.scale_up or DEFAULT_UP, behavior.scale_down or DEFAULT_DOWN)
        periods = {policy.period_seconds for rule in rules for policy in rule.policies}
        events = (*memory.scale_up, *memory.scale_down)
        yield from (event.at + period for event in events for period in periods)


def _say_the_same(last: Observation, seen: Observation, oldest: float, latest: float) -> bool:
    if len(last.readings) != len(seen.readings):
        return False
    return all(
        _are_same_values(before, after) and _are_believable(after, oldest, latest)
        for before, after in zip(last.readings, seen.readings, strict=True)
    )


def _are_same_values(before: MetricSamples, after: MetricSamples) -> bool:
    if isinstance(after, PodSamples) and isinstance(before, PodSamples):
        old, new = before.samples, after.samples
        return list(old) == list(new) and _values(old.values()) == _values(new.values())
    if isinstance(after, Series) and isinstance(before, Series):
        return _values(before.samples) == _values(after.samples)
    return False


def _values(samples: Iterable[Sample]) -> list[int]:
    return [one.value for one in samples]


def _latest(memory: Memory) -> float:
    return memory.recommendations[-1].at if memory.recommendations else inf


def _are_believable(reading: MetricSamples, oldest: float, latest: float) -> bool:
    """Return whether no sample is near the edge of being refused for its date."""
    samples: Iterable[Sample] = ()
    if isinstance(reading, PodSamples):
        samples = reading.samples.values()
    elif isinstance(reading, Series):
        samples = reading.samples
    return all(oldest <= one.timestamp <= latest or one.timestamp == NEVER for one in samples)
