"""Values of metrics as text, and the values at which a metric asks for other replicas."""

from collections.abc import Callable
from math import ceil, floor, inf, isfinite
from sys import float_info

import msgspec

from trimtab.decide.horizontal.metrics.kinds import PodCounts, Proposal
from trimtab.decide.horizontal.metrics.pods import Gaps, Tolerance
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa.metric_kinds import current_of, measured_by
from trimtab.model.hpa.types import MetricStatus
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

PER_POD = " per pod"
_HAIR = 1e-6
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Edges(Wire):
    """The values at which a metric asks for other replicas, in the unit of its proposal."""

    up: float
    """Above this value it asks for more replicas; infinite if no value does."""
    down: float
    """Below this value it asks for fewer; negative if no value does."""
    includes_down: bool = False
    """Whether the value itself is included."""
    more_between: tuple[float, float] | None = None
    """Below its target it asks for more too, above the first value up to the second: more pods count than replicas."""
    fewer_between: tuple[float, float] | None = None
    """Above its target it asks for fewer too, above the first value up to the second: fewer pods count than replicas."""


def edges_of(proposal: Proposal, tolerance: Tolerance, current: int) -> Edges:
    """Return the values above and below which the metric asks for other than `current` replicas."""
    edges = _edges_of_target(proposal, tolerance, current)
    if proposal.activation is None:
        return edges
    is_shared = proposal.total is not None and proposal.pods
    level = proposal.activation / (proposal.pods if is_shared else 1)
    between = edges.more_between and (max(edges.more_between[0], float(ceil(level))), edges.more_between[1])
    is_lower = current > 0 and floor(level) >= edges.down
    return msgspec.structs.replace(
        edges,
        up=max(edges.up, float(ceil(level))),
        down=float(floor(level)) if is_lower else edges.down,
        includes_down=is_lower or edges.includes_down,
        more_between=between if between and between[0] < between[1] else None,
    )


def _edges_of_target(proposal: Proposal, tolerance: Tolerance, current: int) -> Edges:
    """Return the edges without an activation level.

    Outside of its tolerance a metric asks for its ratio times the pods that were measured, rounded up. So the
    tolerance is one edge, and the ratio at which the product passes a whole number is another; the farther counts.
    """
    if not current and proposal.counts is None and (proposal.total is None or not proposal.pods):
        return Edges(up=0.0, down=-1.0)  # any value above 0 wakes a workload
    if proposal.total is not None and not proposal.pods:
        # No replica shares the total yet, so no tolerance applies and the total alone counts.
        up, down = proposal.target * float(current), proposal.target * float(current - 1)
        return Edges(up=up, down=down, includes_down=True)
    gaps = proposal.gaps or _no_gaps(proposal)
    if not current:
        down, includes = -1.0, False
    else:
        down, includes = _down(proposal, gaps, tolerance, current)
    counts = proposal.counts or PodCounts()
    is_whole = not counts.missing
    return Edges(
        up=_up(proposal, gaps, tolerance, current),
        down=down,
        includes_down=includes,
        more_between=_more_between(proposal, tolerance, current) if is_whole else None,
        fewer_between=_fewer_between(proposal, tolerance, current)
        if current and is_whole and not counts.unready
        else None,
    )


def _more_between(proposal: Proposal, tolerance: Tolerance, current: int) -> tuple[float, float] | None:
    """Return where the metric asks for more although it is below its target."""
    if not proposal.pods:
        return None
    low = _whole(proposal.target * current / proposal.pods, _up_rounding(proposal))
    high = _whole(proposal.target * (1.0 - tolerance.down), ceil) - 1.0
    return (low, high) if low < high else None


def _fewer_between(proposal: Proposal, tolerance: Tolerance, current: int) -> tuple[float, float] | None:
    """Return where the metric asks for fewer although it is above its target."""
    if not proposal.pods:
        return None
    low = _whole(proposal.target * (1.0 + tolerance.up), _up_rounding(proposal))
    high = _whole(proposal.target * (current - 1) / proposal.pods, floor)
    return (low, high) if low < high else None


def _up_rounding(proposal: Proposal) -> Callable[[float], int]:
    return ceil if proposal.total is not None else floor  # shares of a total are rounded up


def _no_gaps(proposal: Proposal) -> Gaps:
    pods = proposal.pods
    return Gaps(up_share=1.0, up_pods=pods, down_share=1.0, down_rest=0.0, down_pods=pods)


def _up(proposal: Proposal, gaps: Gaps, tolerance: Tolerance, current: int) -> float:
    if not gaps.up_pods or not gaps.up_share:
        return inf
    edge = proposal.target * max(1.0 + tolerance.up, current / gaps.up_pods)
    if proposal.gaps is None:
        return _whole(edge, _up_rounding(proposal))
    if not isfinite(edge):
        return edge
    # Filled averages are cut to whole units before they are compared: the first that counts is one more.
    return _whole((_whole(edge, floor) + 1.0) / gaps.up_share, ceil) - 1.0


def _down(proposal: Proposal, gaps: Gaps, tolerance: Tolerance, current: int) -> tuple[float, bool]:
    if not gaps.down_pods or not gaps.down_share:
        return -1.0, False
    band, one_less = 1.0 - tolerance.down, (current - 1) / (gaps.down_pods + proposal.removed)
    includes = one_less < band
    edge = (proposal.target * min(band, one_less) - gaps.down_rest) / gaps.down_share
    return max(_whole(edge, floor if includes else ceil), -1.0), includes


def _whole(edge: float, towards: Callable[[float], int]) -> float:
    """Return the edge in whole units, ignoring float errors below `_HAIR`."""
    if not isfinite(edge):
        return edge
    near = round(edge)
    return float(
        near if abs(edge - near) <= max(_HAIR, 4 * float_info.epsilon * abs(edge)) else towards(edge)
    )


def is_percent(status: MetricStatus) -> bool:
    """Return whether a metric is a utilisation, counted in percent of requests."""
    return current_of(status).average_utilization is not None


def is_average(status: MetricStatus) -> bool:
    """Return whether a metric's numbers are amounts per pod."""
    current = current_of(status)
    return current.average_value is not None and current.average_utilization is None


def format_value(proposal: Proposal, amount: float) -> str:
    """Return a value of the metric in its own unit."""
    return f"{format_amount(proposal, amount)}{PER_POD if is_average(proposal.status) else ''}"


def format_edge(proposal: Proposal, amount: float) -> str:
    """Return a value at which a metric asks for another size. It is a total while no replica shares it."""
    if proposal.total is not None and not proposal.pods:
        return f"{format_amount(proposal, amount)} in all"
    return format_value(proposal, amount)


def format_result(proposal: Proposal) -> str:
    """Return the metric's value, with the undivided number of an average where it is known."""
    if proposal.total is None:
        return format_value(proposal, proposal.value)
    total = f"{format_amount(proposal, proposal.total)} in all"
    return f"{format_value(proposal, proposal.value)} ({total})" if proposal.pods else total


def format_activation(proposal: Proposal) -> str:
    """Return the number up to which a metric asks for nothing."""
    text = format_amount(proposal, proposal.activation or 0)
    return text if proposal.total is None else f"{text} in all"


def format_amount(proposal: Proposal, amount: float) -> str:
    """Return a number of the metric in its unit, without `per pod`."""
    if not isfinite(amount):
        return "any value"
    if is_percent(proposal.status):
        return f"{amount:.6g} %"
    resource = measured_by(proposal.status).resource
    if not resource:
        # People write 12.6 messages per pod, machines 12600m.
        return _decimal(amount / 1000)
    if resource == CPU:
        text = _decimal(amount / 1000)
        return f"{text} core" if text == "1" else f"{text} cores"
    return _bytes(amount / 1000) if resource == MEMORY else str(Quantity.from_milli(round(amount)))


def _decimal(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


def _bytes(number: float) -> str:
    for prefix in _BINARY:
        if abs(number) < 1024 or prefix == _BINARY[-1]:
            break
        number /= 1024
    return f"{number:.4g} {prefix}B"
