"""Between which amounts of usage a resource metric asks for no change, as long as its pods stay the same.

Whoever looks at usage more often than decisions are due need not decide to see that nothing has to be done: adding up
the usage of the pods is enough. The bands are a little narrower than the rules: what lies inside changes nothing; what
lies outside has to be decided.
"""

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.metrics.proposal import Proposal, ProposalOutcome
from trimtab.decide.horizontal.metrics.tolerance import Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot
from trimtab.model.hpa.types import MetricSpec, MetricTarget
from trimtab.model.json.wire import Wire


class Band(Wire):
    """The usage of a resource by all counted pods together, in thousandths, that leaves the replicas alone."""

    resource: str
    container: str
    low: float
    high: float


def bands_of(observation: Observation, decision: Decision) -> tuple[Band, ...]:
    """Return one band per metric; none if it takes a whole decision to tell."""
    trace, specs = decision.trace, observation.hpa.spec.metrics
    is_calm = decision.desired == decision.current and trace.normalized is not None and not decision.error
    if not is_calm or trace.selection_fallback or len(trace.proposals) != len(specs):
        return ()
    pods = counted_pods(observation, decision)
    found = [
        _band(pods, spec, trace.tolerance) if _is_within(result, len(pods)) else None
        for spec, result in zip(specs, trace.proposals, strict=True)
    ]
    return () if None in found else tuple(one for one in found if one is not None)


def counted_pods(observation: Observation, decision: Decision) -> tuple[PodSnapshot, ...]:
    """Return the pods that the bands are about: those that the decision counted."""
    left_out = {pod.pod for pod in decision.trace.left_out}
    return (
        tuple(pod for pod in observation.pods if pod.name not in left_out) if left_out else observation.pods
    )


def _is_within(result: object, pods: int) -> bool:
    """Return whether a metric was within its tolerance, measured on every pod."""
    return (
        isinstance(result, Proposal)
        and result.outcome is ProposalOutcome.WITHIN_TOLERANCE
        and result.counts is not None
        and result.counts.ready == pods
    )


def _band(pods: tuple[PodSnapshot, ...], spec: MetricSpec, tolerance: Tolerance) -> Band | None:
    source = spec.container_resource or spec.resource
    if source is None or not pods:
        return None
    container = "" if spec.container_resource is None else spec.container_resource.container
    try:
        unit = _unit(pods, source.name, container, source.target)
    except MissingRequestError:
        return None
    if unit is None:
        return None
    target, per_unit = unit
    # Percentages and averages are cut to whole numbers before they are compared: one more is safely inside.
    low = (target * (1.0 - tolerance.down) + 1) * per_unit
    return Band(
        resource=source.name, container=container, low=low, high=target * (1.0 + tolerance.up) * per_unit
    )


def _unit(
    pods: tuple[PodSnapshot, ...], resource: str, container: str, target: MetricTarget
) -> tuple[int, float] | None:
    """Return the target, and the usage of all pods that makes one unit of it."""
    if target.average_value is not None:
        return target.average_value.milli_value(), float(len(pods))
    if target.average_utilization is None:
        return None
    asked = sum(pod.request_of(resource, container) for pod in pods)
    return target.average_utilization, asked / 100
