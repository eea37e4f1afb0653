"""A decision as the page tells it: `explain` for the words, the trail for the numbers behind them."""

from math import isfinite

from trimtab.dashboard.limits import down_limits, up_limits
from trimtab.dashboard.naming import labels_of, renamed
from trimtab.dashboard.reasons import why_not_less, why_not_more
from trimtab.dashboard.states import state_of
from trimtab.dashboard.views import MetricView, Story
from trimtab.decide.horizontal import Decision, Explanation, Observation, explain
from trimtab.decide.horizontal.explanation import MetricStory
from trimtab.decide.horizontal.proposals.proposal import Proposal, Result
from trimtab.decide.horizontal.tolerance import Tolerance
from trimtab.decide.horizontal.units import break_even, is_percent
from trimtab.model.resources import CPU, MEMORY

GO_SELECTOR = "(&LabelSelector{"
"""How a metric's selector begins where Kubernetes spells it."""


def story_of(seen: Observation, decision: Decision) -> Story:
    """Tell one decision."""
    told, trail = explain(decision), decision.trail
    normalized = trail.normalized
    remembered = normalized.stabilized.recommendations if normalized else decision.memory.recommendations
    return Story(
        verdict=str(told.verdict),
        state=state_of(told.verdict),
        summary=renamed(told.summary, seen, decision),
        next_step=renamed(told.next_step, seen, decision),
        more=renamed(why_not_more(decision), seen, decision),
        less=renamed(why_not_less(seen, decision), seen, decision),
        current=decision.current,
        desired=decision.desired,
        asked=trail.asked,
        low=trail.lowest,
        high=trail.highest,
        strategy=trail.strategy,
        counted=trail.counted,
        left_out=len(trail.left_out),
        extra=trail.extra,
        fallback=trail.fallback,
        limit=told.limit,
        tolerance_up=finite(trail.tolerance.up) or 0.0,
        tolerance_down=finite(trail.tolerance.down) or 0.0,
        metrics=_metrics(seen, told, decision),
        up=up_limits(seen, decision),
        down=down_limits(seen, decision),
        window=tuple((one.at, one.replicas) for one in remembered or ()),
    )


def _metrics(seen: Observation, told: Explanation, decision: Decision) -> tuple[MetricView, ...]:
    trail = decision.trail
    labels = labels_of(seen, decision)
    return tuple(
        _metric(label, words, found, trail.tolerance)
        for label, words, found in zip(labels, told.metrics, trail.proposals, strict=False)
    )


def _metric(label: str, words: MetricStory, found: Result, tolerance: Tolerance) -> MetricView:
    if not isinstance(found, Proposal):
        return MetricView(
            name=words.name,
            label=label,
            type=found.type,
            problem=words.problem,
            stand_in=words.stand_in,
            replicas=words.replicas,
            is_winner=words.is_winner,
        )
    value, target, up, down = numbers_of(found, tolerance)
    return MetricView(
        name=words.name if GO_SELECTOR not in words.name else f"{found.type} metric {label}",
        label=label,
        type=found.type,
        unit=unit_of(found),
        value=value,
        target=target,
        up=up,
        down=down,
        value_text=words.value,
        target_text=words.target,
        up_text=words.scales_up_above,
        down_text=words.scales_down_below,
        ratio=None if words.ratio is None else finite(words.ratio),
        replicas=words.replicas,
        is_winner=words.is_winner,
        notes=words.notes,
    )


def numbers_of(proposal: Proposal, tolerance: Tolerance) -> tuple[float | None, ...]:
    """Return value, target, and the upper and lower edge of the tolerance, in the metric's own unit."""
    divisor = 1.0 if is_percent(proposal.status) else 1000.0
    up, down = break_even(proposal, tolerance)
    return tuple(finite(amount / divisor) for amount in (proposal.value, proposal.target, up, down))


def unit_of(proposal: Proposal) -> str:
    """Return the unit that a metric's numbers are in."""
    if is_percent(proposal.status):
        return "%"
    source = proposal.status.resource or proposal.status.container_resource
    return {CPU: "cores", MEMORY: "bytes"}.get(source.name, "") if source is not None else ""


def finite(number: float) -> float | None:
    """Return the number if JSON has a way to write it."""
    return number if isfinite(number) else None
