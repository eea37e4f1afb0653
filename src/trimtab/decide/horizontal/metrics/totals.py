"""Metrics that are one number for the whole workload: Object and External.

A `Value` target compares the number itself and multiplies the ready pods. An `AverageValue` target divides the number by the
replicas of the target's status.
"""

from itertools import accumulate
from math import inf
from typing import NamedTuple

import msgspec

from trimtab.decide.horizontal.arithmetic import INT64_MAX, int32_of, int64_of, ratio_of, round_up
from trimtab.decide.horizontal.metrics.pods import (
    NO_PODS,
    Context,
    ProposalOutcome,
    RatioResult,
    Rejected,
    UnusableMetric,
    times,
)
from trimtab.decide.horizontal.observation.samples import MetricSamples, Series, failure_of


class Total(NamedTuple):
    """The number of a metric, in thousandths, with the time of its first sample."""

    value: int
    timestamp: float


def replicas_for_value(total: int, target: int, context: Context, removed: int = 0) -> RatioResult:
    """Return the replicas that bring a value to its target."""
    ratio = ratio_of(total, target)
    if not context.current:  # from zero neither pods nor tolerance matter
        return RatioResult(int32_of(round_up(ratio)), ProposalOutcome.FROM_ZERO)
    if context.tolerance.covers(ratio):
        return RatioResult(context.current, ProposalOutcome.WITHIN_TOLERANCE)
    if not context.has_pods:
        raise UnusableMetric(f"unable to calculate ready pods: {NO_PODS}")
    ready = context.ready_pods
    if not ready and total > 0 and context.rules.ours:
        # No pod is ready yet to take the load; 0 times any ratio would scale the workload to zero again.
        return RatioResult(max(context.current, 1), ProposalOutcome.NO_READY_PODS)
    return times(ratio, ready, removed, context.current)


def replicas_for_average(total: int, target: int, context: Context) -> RatioResult:
    """Return the replicas that bring the share of each replica to its target."""
    # Without replicas the ratio is infinite or NaN, which no tolerance covers.
    if context.tolerance.covers(ratio_of_shares(total, target, context)):
        # Upstream writes the surge of a rollout into the spec.
        replicas = context.current if context.rules.ours else context.status_replicas
        return RatioResult(replicas, ProposalOutcome.WITHIN_TOLERANCE)
    replicas = int32_of(round_up(ratio_of(total, target)))
    return RatioResult(replicas, ProposalOutcome.PROPOSED if context.current else ProposalOutcome.FROM_ZERO)


def ratio_of_shares(total: int, target: int, context: Context) -> float:
    """Return the share of each replica by its target."""
    return ratio_of(total, float(target) * float(context.status_replicas))


def share_of(total: int, context: Context) -> int:
    """Return the average that the status shows, or the undivided total at zero replicas."""
    if not context.status_replicas and context.rules.ours:
        return total
    return int64_of(round_up(ratio_of(total, context.status_replicas)))


def first_of(samples: MetricSamples, context: Context) -> Total:
    """Return the single value of an object."""
    sample = _accepted_series(samples, context).samples[0]
    return Total(_accepted_total(sample.value, context), sample.timestamp)


def sum_of(samples: MetricSamples, context: Context, *, is_average: bool) -> Total:
    """Return the sum of all series."""
    series = _accepted_series(samples, context)
    total = sum_series(series, context, is_average=is_average)
    return Total(_accepted_total(total, context), series.samples[0].timestamp)


def sum_series(series: Series, context: Context, *, is_average: bool) -> int:
    """Return the sum of the samples. Upstream takes a negative sum of an average for an overflow."""
    sums = accumulate(sample.value for sample in series.samples)
    if is_average and not context.rules.ours and any(total < 0 for total in sums):
        return INT64_MAX
    return sum(sample.value for sample in series.samples)


def _accepted_series(samples: MetricSamples, context: Context) -> Series:
    """Return the series if every sample's time is plausible, else raise UnusableMetric."""
    if not isinstance(samples, Series) or not samples.samples:
        raise UnusableMetric(failure_of(samples))
    limits = msgspec.structs.replace(
        context.limits, lowest=-inf
    )  # the sum must not be negative; a series may
    if old := limits.old_dates(samples.samples, samples.moves):
        for sample in samples.samples:
            if rule := limits.reject_reason(sample, old):
                raise Rejected(f"the answer was refused: {rule}")
    return samples


def _accepted_total(total: int, context: Context) -> int:
    """Return the total, or raise UnusableMetric if it is negative, which no workload can serve."""
    if total < context.limits.lowest:
        raise Rejected(f"the answer was refused: negative value {total / 1000:g}")
    return total
