"""From one number for the whole workload to replicas: the arithmetic that Object and External metrics share.

A `Value` target compares the number itself and multiplies the ready pods; an `AverageValue` target divides the
number by the replicas that the target's status shows.
"""

from trimtab.decide.horizontal.arithmetic import INT64_MAX, fold64, int32_of, int64_of, ratio_of, round_up
from trimtab.decide.horizontal.metrics.proposal import (
    ProposalContext,
    ProposalOutcome,
    RatioResult,
    Refused,
    UnusableMetric,
    capped,
)
from trimtab.decide.horizontal.metrics.utilization import NO_PODS
from trimtab.decide.horizontal.observation.samples import MetricSamples, Series, failure_of


def settle_value(total: int, target: int, scene: ProposalContext) -> RatioResult:
    """Return the replicas that bring a value to its target; from zero neither pods nor tolerance matter."""
    ratio = ratio_of(total, target)
    if not scene.current:
        wanted = int32_of(round_up(ratio), saturate=scene.compat.saturate)
        return RatioResult(wanted, ProposalOutcome.FROM_ZERO)
    if scene.tolerance.covers(ratio):
        return RatioResult(scene.current, ProposalOutcome.WITHIN_TOLERANCE)
    if not scene.has_pods:
        raise UnusableMetric(f"unable to calculate ready pods: {NO_PODS}")
    ready = scene.ready_pods
    if not ready and total > 0 and scene.compat.hold_without_ready_pods:
        # Nothing is ready yet to take the load; zero times any ratio would send the workload back to sleep.
        return RatioResult(max(scene.current, 1), ProposalOutcome.NO_READY_PODS)
    return RatioResult(capped(ratio * ready, scene.compat), ProposalOutcome.PROPOSED)


def settle_average(total: int, target: int, scene: ProposalContext, *, is_capped: bool) -> RatioResult:
    """Return the replicas that bring the share of each replica to its target."""
    if scene.tolerance.covers(average_ratio(total, target, scene)):
        kept = scene.current if scene.compat.spec_replicas_within_tolerance else scene.status_replicas
        return RatioResult(kept, ProposalOutcome.WITHIN_TOLERANCE)
    wanted = ratio_of(total, target)
    outcome = ProposalOutcome.PROPOSED if scene.current else ProposalOutcome.FROM_ZERO
    if is_capped:
        return RatioResult(capped(wanted, scene.compat), outcome)
    return RatioResult(int32_of(round_up(wanted), saturate=scene.compat.saturate), outcome)


def average_ratio(total: int, target: int, scene: ProposalContext) -> float:
    """Return the share of each replica as a part of its target; without replicas it is infinite or NaN."""
    return ratio_of(total, float(target) * float(scene.status_replicas))


def share_of(total: int, scene: ProposalContext) -> int:
    """Return the average that the status shows; at zero replicas the undivided total."""
    if not scene.status_replicas and scene.compat.undivided_average_at_zero:
        return total
    share = round_up(ratio_of(total, scene.status_replicas))
    return int64_of(share, saturate=scene.compat.saturate)


def checked(reading: MetricSamples, scene: ProposalContext) -> Series:
    """Return the series if there is one and every sample's date is believable; else raise Unusable."""
    if not isinstance(reading, Series) or not reading.samples:
        raise UnusableMetric(failure_of(reading))
    limits = scene.limits
    for sample in reading.samples:
        if not limits.fresh_after <= sample.timestamp <= limits.ahead:
            rule = limits.refusal(sample)
            if rule:
                raise Refused(f"the answer was refused: {rule}")
    return reading


def checked_total(total: int, scene: ProposalContext) -> int:
    """Return the total unless it is negative, which no workload can be asked to serve; else raise Unusable."""
    if total < scene.limits.lowest:
        raise Refused(f"the answer was refused: negative value {total / 1000:g}")
    return total


def summed(series: Series, scene: ProposalContext, *, guards_running_sum: bool) -> int:
    """Sum up series; upstream's two guards against overflow differ, and one takes any negative sum for overflow."""
    if scene.compat.saturate and scene.compat.negative_sums:
        return sum(sample.value for sample in series.samples)
    total = 0
    for sample in series.samples:
        value = fold64(sample.value, saturate=False)
        if not guards_running_sum and value > 0 and total > INT64_MAX - value:
            return INT64_MAX
        total = fold64(total + value, saturate=False)
        if guards_running_sum and total < 0 and not scene.compat.negative_sums:
            return INT64_MAX
    return total
