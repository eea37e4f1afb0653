"""Values of metrics as people read them, and the values at which a metric would ask for something else."""

from math import isfinite

from trimtab.decide.horizontal.proposals.proposal import Proposal
from trimtab.decide.horizontal.tolerance import Tolerance
from trimtab.model.hpa.types import MetricStatus
from trimtab.model.quantity import Quantity
from trimtab.model.resources import MEMORY


def break_even(proposal: Proposal, tolerance: Tolerance) -> tuple[float, float]:
    """Return the values above and below which the metric leaves its tolerance."""
    return proposal.target * (1.0 + tolerance.up), max(proposal.target * (1.0 - tolerance.down), 0.0)


def is_percent(status: MetricStatus) -> bool:
    """Return whether a metric is a utilisation, counted in percent of requests."""
    source = status.resource or status.container_resource
    return source is not None and source.current.average_utilization is not None


def shown(proposal: Proposal, amount: float) -> str:
    """Write a value of the metric in its own unit."""
    if not isfinite(amount):
        return "any value"
    if is_percent(proposal.status):
        return f"{amount:.6g} %"
    resource = proposal.status.resource or proposal.status.container_resource
    if resource is None:
        # A queue has 12.6 messages per pod; 12600m is how a machine writes it.
        return f"{round(amount) / 1000:.3f}".rstrip("0").rstrip(".")
    return str(Quantity.from_milli(round(amount), "BinarySI" if resource.name == MEMORY else "DecimalSI"))


def told_name(proposal: Proposal) -> str:
    """Return the metric's name without Go's word for an absent selector."""
    return proposal.name.removesuffix("(nil)")


def one_less(proposal: Proposal, replicas: int) -> float:
    """Return the value at which one replica less would do."""
    return proposal.target * (replicas - 1) / replicas if replicas else 0.0
