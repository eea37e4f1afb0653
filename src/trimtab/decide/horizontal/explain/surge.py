"""Whether metrics ask for more replicas only because a rollout has more pods than replicas.

The pods of a surge are measured too, and a ratio is multiplied by all of them. A metric below its target may then ask for more
replicas than there are. Once the load is on as many pods as replicas, it is within the tolerance.
"""

from trimtab.decide.horizontal.arithmetic import ratio_of
from trimtab.decide.horizontal.decision import DecisionTrace
from trimtab.decide.horizontal.metrics.proposal import Failure, Proposal, Result
from trimtab.decide.horizontal.metrics.tolerance import Tolerance


def is_only_surge(trace: DecisionTrace, current: int) -> bool:
    """Return whether every metric that asks for more would be within its tolerance on the replicas alone."""
    if not trace.surge_pods:
        return False
    asking = [
        result
        for result in trace.proposals
        if not isinstance(result, Failure) and (result.replicas or 0) > current
    ]
    return bool(asking) and all(_is_within(result, trace.tolerance, current) for result in asking)


def _is_within(result: Result, tolerance: Tolerance, current: int) -> bool:
    if not isinstance(result, Proposal) or result.ratio is None:
        return False
    most = 1.0 + tolerance.up
    if result.total is not None:
        return ratio_of(result.total, float(result.target) * current) <= most
    if result.counts is None:
        return result.ratio <= most  # one value for all: it does not depend on the pods
    pods = result.measured_pods
    ratio = result.ratio if result.filled_ratio is None else result.filled_ratio
    return pods > current and ratio * pods <= most * current
