"""The arithmetic of metrics that are one number for the whole workload: Object and External.

A `Value` target compares the number itself and multiplies the ready pods. An `AverageValue` target divides the number by the
replicas of the target's status.
"""

from itertools import accumulate
from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import (
    INT64_MAX,
    finite,
    int32_of,
    int64_of,
    ratio_of,
    round_up,
)
from trimtab.decide.horizontal.metrics.proposal import (
    Proposal,
    ProposalContext,
    ProposalOutcome,
    RatioResult,
    Rejected,
    UnusableMetric,
)
from trimtab.decide.horizontal.metrics.utilization import NO_PODS
from trimtab.decide.horizontal.observation.samples import MetricSamples, Series, failure_of
from trimtab.model.hpa.types import MetricStatus


class Total(NamedTuple):
    """The number of a metric, in thousandths, with the time of its first sample."""

    value: int
    timestamp: float


def propose_value(
    name: str, total: Total, target: int, status: MetricStatus, context: ProposalContext
) -> Proposal:
    """Propose the replicas that bring a value to its target."""
    result = _replicas_for_value(total.value, target, context)
    return Proposal(
        type=status.type,
        name=name,
        replicas=result.replicas,
        outcome=result.outcome,
        ratio=finite(ratio_of(total.value, target)),
        value=int64_of(total.value),
        target=target,
        status=status,
        timestamp=total.timestamp,
        pods=context.ready_pods,
    )


def propose_average(
    name: str,
    total: Total,
    target: int,
    share: int,
    status: MetricStatus,
    context: ProposalContext,
) -> Proposal:
    """Propose the replicas that bring the share of each replica to its target."""
    # Without replicas the ratio is infinite or NaN, which no tolerance covers.
    ratio = ratio_of(total.value, float(target) * float(context.status_replicas))
    if context.tolerance.covers(ratio):
        keeps_spec = context.rules.ours
        replicas = context.current if keeps_spec else context.status_replicas
        outcome = ProposalOutcome.WITHIN_TOLERANCE
    else:
        replicas = int32_of(round_up(ratio_of(total.value, target)))
        outcome = ProposalOutcome.PROPOSED if context.current else ProposalOutcome.FROM_ZERO
    return Proposal(
        type=status.type,
        name=name,
        replicas=replicas,
        outcome=outcome,
        ratio=finite(ratio),
        value=int64_of(share),
        target=target,
        status=status,
        timestamp=total.timestamp,
        pods=context.status_replicas,
        total=int64_of(total.value),
    )


def _replicas_for_value(total: int, target: int, context: ProposalContext) -> RatioResult:
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
    return RatioResult(int32_of(round_up(ratio * ready)), ProposalOutcome.PROPOSED)


def share_of(total: int, context: ProposalContext) -> int:
    """Return the average that the status shows, or the undivided total at zero replicas."""
    if not context.status_replicas and context.rules.ours:
        return total
    share = round_up(ratio_of(total, context.status_replicas))
    return int64_of(share)


def accepted_series(samples: MetricSamples, context: ProposalContext) -> Series:
    """Return the series if every sample's time is plausible, else raise UnusableMetric."""
    if not isinstance(samples, Series) or not samples.samples:
        raise UnusableMetric(failure_of(samples))
    limits = context.limits
    for sample in samples.samples:
        if not limits.fresh_after <= sample.timestamp <= limits.ahead:
            rule = limits.reject_reason(sample)
            if rule:
                raise Rejected(f"the answer was refused: {rule}")
    return samples


def accepted_total(total: int, context: ProposalContext) -> int:
    """Return the total, or raise UnusableMetric if it is negative, which no workload can serve."""
    if total < context.limits.lowest:
        raise Rejected(f"the answer was refused: negative value {total / 1000:g}")
    return total


def sum_series(series: Series, context: ProposalContext, *, is_average: bool) -> int:
    """Return the sum of the samples. Upstream takes a negative sum of an average for an overflow."""
    sums = accumulate(sample.value for sample in series.samples)
    if is_average and not context.rules.ours and any(total < 0 for total in sums):
        return INT64_MAX
    return sum(sample.value for sample in series.samples)
