"""The usage within which resource metrics ask for no change, while their pods stay the same.

Between two syncs the operator sums the usage of the pods. Usage inside its band needs no decision. The bands are a little
narrower than the rules, so usage outside of them is decided.
"""

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome, Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot
from trimtab.model.hpa.metric_kinds import measured_by, target_of
from trimtab.model.hpa.types import MetricSpec, MetricTarget
from trimtab.model.json.wire import Wire


class UsageBand(Wire):
    """The usage of a resource by all counted pods, in thousandths, that changes no replicas."""

    resource: str
    container: str
    low: float
    high: float


def usage_bands(observation: Observation, decision: Decision) -> tuple[UsageBand, ...]:
    """Return a band per metric, or none if only a whole decision can say."""
    trace, specs = decision.trace, observation.hpa.spec.metrics
    is_calm = decision.desired == decision.current and trace.is_measured and not decision.error
    if (
        not is_calm
        or trace.selection_fallback
        or observation.stale_inputs
        or len(trace.proposals) != len(specs)
    ):
        return ()
    pods = counted_pods(observation, decision)
    found = [
        _band(pods, spec, trace.tolerance) if _is_within(result, len(pods)) else None
        for spec, result in zip(specs, trace.proposals, strict=True)
    ]
    return () if None in found else tuple(band for band in found if band is not None)


def counted_pods(observation: Observation, decision: Decision) -> tuple[PodSnapshot, ...]:
    """Return the pods that the decision counted."""
    left_out = {pod.pod for pod in decision.trace.left_out}
    return (
        tuple(pod for pod in observation.pods if pod.name not in left_out) if left_out else observation.pods
    )


def _is_within(result: object, pods: int) -> bool:
    return (
        isinstance(result, Proposal)
        and result.outcome is ProposalOutcome.WITHIN_TOLERANCE
        and result.counts is not None
        and result.counts.ready == pods
    )


def _band(pods: tuple[PodSnapshot, ...], spec: MetricSpec, tolerance: Tolerance) -> UsageBand | None:
    resource, container = measured_by(spec)
    if not resource or not pods:
        return None
    try:
        unit = _unit(pods, resource, container, target_of(spec))
    except MissingRequestError:
        return None
    if unit is None:
        return None
    target, per_unit = unit
    # Percentages and averages are cut to whole numbers before they are compared, so 1 more is safely inside.
    low = (target * (1.0 - tolerance.down) + 1) * per_unit
    return UsageBand(
        resource=resource, container=container, low=low, high=target * (1.0 + tolerance.up) * per_unit
    )


def _unit(
    pods: tuple[PodSnapshot, ...], resource: str, container: str, target: MetricTarget
) -> tuple[int, float] | None:
    """Return the target, and the usage of all pods per unit of the target."""
    if target.average_value is not None:
        return target.average_value.milli_value(), float(len(pods))
    if target.average_utilization is None:
        return None
    asked = sum(pod.request_of(resource, container) for pod in pods)
    return target.average_utilization, asked / 100
