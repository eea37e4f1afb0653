"""Which samples are rejected: stale, from the future, negative.

Upstream accepts them all, and shrinks a workload on the year-old zero of a stopped exporter. A pod whose sample is rejected
counts as a pod without a sample, which never reverses a decision. A rejected total fails its metric.
"""

from math import inf

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER, wire_time
from trimtab.decide.horizontal.observation.samples import Sample
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.json.wire import Wire
from trimtab.model.times import format_time


class SampleAgeLimits(Wire):
    """The limits between which samples are accepted."""

    now: float = 0.0
    fresh_after: float = -inf
    ahead: float = inf
    lowest: float = -inf
    ahead_limit: float = inf
    stale_windows: float = inf
    stale_after: float = inf
    since: float = 0.0
    """When samples of the metric were first rejected, which a text can name in every sync."""

    def reject_reason(self, sample: Sample) -> str:
        """Return the rule that rejects a sample, or an empty text if it is accepted."""
        if self.fresh_after <= sample.timestamp <= self.ahead and sample.value >= self.lowest:
            return ""
        if sample.value < self.lowest:
            return f"negative value {sample.value / 1000:g}"
        if sample.timestamp > self.ahead:
            return f"dated more than {self.ahead_limit:.0f} s in the future, since {self._since()}"
        if sample.timestamp == NEVER:
            return ""  # an adapter that dates nothing; its samples have no age
        age = self.now - sample.timestamp
        limit = max(self.stale_windows * sample.window, self.stale_after)
        return f"older than the {limit:.0f} s allowed, since {self._since()}" if age > limit else ""

    def with_max_age(self, seconds: float) -> "SampleAgeLimits":
        """Return the limits of a metric with its own maximum age, whatever its windows."""
        if self is ANYTHING_GOES:
            return self
        return msgspec.structs.replace(
            self, fresh_after=self.now - seconds, stale_after=seconds, stale_windows=0.0
        )

    def _since(self) -> str:
        return format_time(wire_time(self.since))


ANYTHING_GOES = SampleAgeLimits()


def limits_at(now: float, settings: HpaSettings, rules: Rules, clock_offset: float = 0.0) -> SampleAgeLimits:
    """Return the limits of samples at that time, by a clock that is ahead of ours by `clock_offset`."""
    if not rules.ours:
        return ANYTHING_GOES
    sampled = now + clock_offset
    return SampleAgeLimits(
        now=sampled,
        fresh_after=sampled - settings.stale_after,
        ahead=sampled + settings.ahead_limit,
        ahead_limit=settings.ahead_limit,
        since=now,
        lowest=0,
        stale_windows=settings.stale_windows,
        stale_after=settings.stale_after,
    )
