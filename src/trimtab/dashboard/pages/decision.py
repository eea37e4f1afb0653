"""A decision as the page tells it: `explain` for the words, the trace for the numbers behind them."""

from math import isfinite
from typing import Final

from trimtab.dashboard.pages.views import DecisionView, MetricView
from trimtab.dashboard.pages.why_not import down_limits, up_limits, why_not_less, why_not_more
from trimtab.decide.horizontal import Decision, DecisionReason, Record, explain
from trimtab.decide.horizontal.explain.explanation import MetricExplanation
from trimtab.decide.horizontal.explain.units import edges_of, is_average, is_percent
from trimtab.decide.horizontal.metrics.proposal import Proposal, Result
from trimtab.model.core.pod import CPU, MEMORY

SCALING: Final = "scaling"
STEADY: Final = "steady"
HELD: Final = "held"
PAUSED: Final = "paused"
PROBLEM: Final = "problem"
WAITING: Final = "waiting"

_STATES = {
    DecisionReason.SCALES_UP: SCALING,
    DecisionReason.SCALES_DOWN: SCALING,
    DecisionReason.EARLIER_RECOMMENDATION: SCALING,
    DecisionReason.ABOVE_MAXIMUM: SCALING,
    DecisionReason.BELOW_MINIMUM: SCALING,
    DecisionReason.PAUSED: PAUSED,
    DecisionReason.WITHIN_TOLERANCE: STEADY,
    DecisionReason.WITHIN_AFTER_FILLING: STEADY,
    DecisionReason.IDLE_AT_ZERO: STEADY,
    DecisionReason.ENOUGH: STEADY,
    DecisionReason.DIRECTION_UNSURE: HELD,
    DecisionReason.NO_READY_PODS: HELD,
    DecisionReason.DOWN_WINDOW: HELD,
    DecisionReason.UP_WINDOW: HELD,
    DecisionReason.LOSS_POLICY: HELD,
    DecisionReason.AT_MAXIMUM: HELD,
    DecisionReason.SURGE: HELD,
    DecisionReason.AT_MINIMUM: HELD,
    DecisionReason.UP_RATE: HELD,
    DecisionReason.DOWN_RATE: HELD,
    DecisionReason.UP_DISABLED: HELD,
    DecisionReason.DOWN_DISABLED: HELD,
}


def state_of(reason: DecisionReason) -> str:
    """Return the state; a reason that is in no other group is a problem that somebody has to look at."""
    return _STATES.get(reason, PROBLEM)


def decision_view(record: Record) -> DecisionView:
    """Tell one decision."""
    seen, decision = record.observation, record.decision
    told, trace = explain(record), decision.trace
    normalized = trace.normalized
    remembered = normalized.stabilized.recommendations if normalized else decision.memory.recommendations
    return DecisionView(
        reason=str(told.reason),
        state=state_of(told.reason),
        summary=told.summary,
        next_step=told.next_step,
        more=why_not_more(seen, decision),
        less=why_not_less(seen, decision),
        current=decision.current,
        desired=decision.desired,
        asked=trace.recommended,
        low=trace.min_replicas,
        high=trace.max_replicas,
        strategy=trace.strategy,
        counted=trace.counted_pods,
        left_out=len(trace.left_out),
        extra=trace.extra_pods,
        fallback=trace.selection_fallback,
        limit=told.limit,
        ignored=told.ignored_fields,
        tolerance_up=finite(trace.tolerance.up) or 0.0,
        tolerance_down=finite(trace.tolerance.down) or 0.0,
        metrics=tuple(
            _metric(words, found, decision)
            for words, found in zip(told.metrics, trace.proposals, strict=True)
        ),
        up=up_limits(seen, decision),
        down=down_limits(seen, decision),
        window=tuple((one.at, one.replicas) for one in remembered or ()),
    )


def _metric(words: MetricExplanation, found: Result, decision: Decision) -> MetricView:
    if not isinstance(found, Proposal):
        return MetricView(
            name=f"{found.type} metric",
            label=words.name,
            type=found.type,
            problem=words.problem,
            fallback=words.fallback,
            replicas=words.replicas,
            is_winner=words.is_winner,
        )
    value, target, up, down = numbers_of(found, decision)
    return MetricView(
        name=_full_name(found),
        label=words.name,
        type=found.type,
        unit=unit_of(found),
        is_per_pod=is_average(found.status),
        value=value,
        target=target,
        up=up,
        down=down,
        value_text=words.value,
        target_text=words.target,
        up_text=words.more_above,
        down_text=words.fewer,
        ratio=None if words.ratio is None else finite(words.ratio),
        replicas=words.replicas,
        is_winner=words.is_winner,
        notes=words.notes,
    )


def _full_name(proposal: Proposal) -> str:
    """Return what kind of number it is, for those who do not know the metric."""
    if is_percent(proposal.status):
        return f"{proposal.type} metric, percent of requests"
    return (
        f"{proposal.type} metric, average per pod"
        if is_average(proposal.status)
        else f"{proposal.type} metric"
    )


def numbers_of(proposal: Proposal, decision: Decision) -> tuple[float | None, ...]:
    """Return value, target, and the values beyond which it asks for more or fewer, in the metric's own unit."""
    divisor = 1.0 if is_percent(proposal.status) else 1000.0
    edges = edges_of(proposal, decision.trace.tolerance, decision.current)
    down = None if edges.down < 0 else finite(edges.down / divisor)
    return *(finite(amount / divisor) for amount in (proposal.value, proposal.target, edges.up)), down


def unit_of(proposal: Proposal) -> str:
    """Return the unit that a metric's numbers are in."""
    if is_percent(proposal.status):
        return "%"
    source = proposal.status.resource or proposal.status.container_resource
    return {CPU: "cores", MEMORY: "bytes"}.get(source.name, "") if source is not None else ""


def finite(number: float) -> float | None:
    """Return the number if JSON has a way to write it."""
    return number if isfinite(number) else None
