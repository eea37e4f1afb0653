"""Which samples are rejected: stale ones and negative ones.

Upstream accepts them all, and shrinks a workload on the year-old zero of a stopped exporter. A sample is as old as the time since
its date last moved, by our own clock. Only one that never moved while we asked is judged by its date. A pod whose sample is rejected counts as a pod without a sample, which never reverses a
decision. A rejected total fails its metric.
"""

from collections.abc import Iterable
from math import inf

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.observation.samples import Move, Sample
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.json.wire import Wire

Ages = dict[float, float]
"""The ages of dates that are old enough for a sample to be rejected."""


class SampleLimits(Wire):
    """The limits between which samples are accepted."""

    now: float = 0.0
    lowest: float = -inf
    stale_windows: float = inf
    stale_after: float = inf

    def old_dates(self, samples: Iterable[Sample], moves: tuple[Move, ...]) -> Ages:
        """Return the dates that may be too old, which nearly always are none. Undated samples are as new as their list."""
        now, oldest = self.now, self.now - self.stale_after
        if oldest == -inf:
            return {}
        if moves:
            return {move.timestamp: now - move.since for move in moves if move.since < oldest}
        dates = {sample.timestamp for sample in samples}
        return {date: now - date for date in dates if date < oldest and date != NEVER}

    def reject_reason(self, sample: Sample, old: Ages) -> str:
        """Return the rule that rejects a sample, or an empty text if it is accepted."""
        if sample.value < self.lowest:
            return f"negative value {sample.value / 1000:g}"
        age = old.get(sample.timestamp)
        if age is None:
            return ""
        limit = max(self.stale_windows * sample.window, self.stale_after)
        return f"older than the {limit:.0f} s allowed" if age > limit else ""

    def with_max_age(self, seconds: float) -> "SampleLimits":
        """Return the limits of a metric with its own maximum age, whatever its windows."""
        if self is ANYTHING_GOES:
            return self
        return msgspec.structs.replace(self, stale_after=seconds, stale_windows=0.0)


ANYTHING_GOES = SampleLimits()


def limits_at(now: float, settings: HpaSettings, rules: Rules) -> SampleLimits:
    """Return the limits of samples at that time."""
    if not rules.ours:
        return ANYTHING_GOES
    return SampleLimits(
        now=now, lowest=0, stale_windows=settings.stale_windows, stale_after=settings.stale_after
    )
