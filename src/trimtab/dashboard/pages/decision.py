"""The view of one decision: words from `explain`, numbers from the decision trace."""

from math import isfinite
from typing import Final

import msgspec

from trimtab.dashboard.pages.views import DecisionView, MetricView, ReadingView
from trimtab.dashboard.pages.why_not import down_limits, up_limits, why_not_less, why_not_more
from trimtab.decide.horizontal import Decision, Record, explain
from trimtab.decide.horizontal.explain import MetricExplanation
from trimtab.decide.horizontal.metrics.combine import Result
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.reasons import ROWS
from trimtab.decide.horizontal.units import edges_of, format_amount, is_average, is_percent
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa.metric_kinds import UNKNOWN, current_of, label_of, measured_by, metric_readings
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.readable import readable_amount

_UNKNOWN: Final = "unknown"
_AVERAGE: Final = " (avg)"


def decision_view(record: Record) -> DecisionView:
    """Return the view of a decision."""
    observation, decision = record.observation, record.decision
    explanation, trace = explain(record), decision.trace
    return DecisionView(
        reason=str(explanation.reason),
        state=ROWS[explanation.reason].state,
        summary=explanation.summary,
        next_step=explanation.next_step,
        more=why_not_more(observation, decision),
        less=why_not_less(observation, decision),
        current=explanation.current,
        desired=explanation.desired,
        asked=trace.recommended,
        low=trace.min_replicas,
        high=trace.max_replicas,
        strategy=trace.strategy,
        counted=trace.counted_pods,
        left_out=len(trace.left_out),
        extra=trace.extra_pods,
        fallback=trace.selection_fallback,
        limit=explanation.limit,
        ignored=explanation.ignored_fields,
        policies=tuple(map(str, explanation.policies)),
        tolerance_up=finite(trace.tolerance.up) or 0.0,
        tolerance_down=finite(trace.tolerance.down) or 0.0,
        metrics=tuple(
            _metric(words, result, decision)
            for words, result in zip(explanation.metrics, trace.proposals, strict=True)
        ),
        up=up_limits(observation, decision),
        down=down_limits(observation, decision),
        window=tuple(
            (recommendation.at, recommendation.replicas)
            for recommendation in decision.memory.recommendations or ()
        ),
    )


def without_pods(view: DecisionView) -> DecisionView:
    """Return the view without notes on metrics, which name single pods."""
    metrics = tuple(msgspec.structs.replace(metric, notes=()) for metric in view.metrics)
    return msgspec.structs.replace(view, metrics=metrics)


def _metric(words: MetricExplanation, result: Result, decision: Decision) -> MetricView:
    if not isinstance(result, Proposal):
        return MetricView(
            name=f"{result.type} metric",
            label=words.name,
            type=result.type,
            problem=words.problem,
            fallback=words.fallback,
            replicas=words.replicas,
            is_winner=words.is_winner,
        )
    value, target, up, down = numbers_of(result, decision)
    return MetricView(
        name=_full_name(result),
        label=words.name,
        type=result.type,
        unit=unit_of(result),
        is_per_pod=is_average(result.status),
        value=value,
        target=target,
        up=up,
        down=down,
        value_text=words.value,
        per_pod_text=_per_pod(result),
        total_text=_total(result),
        target_text=words.target,
        up_text=words.more_above,
        down_text=words.fewer,
        ratio=None if words.ratio is None else finite(words.ratio),
        replicas=words.replicas,
        is_winner=words.is_winner,
        notes=words.notes,
    )


def _per_pod(proposal: Proposal) -> str:
    """Return the average amount per pod behind a percentage, or an empty text."""
    average = _average_milli(proposal)
    return _amount(proposal, average) if average is not None and is_percent(proposal.status) else ""


def _total(proposal: Proposal) -> str:
    """Return the amount of all measured pods together, or an empty text if the value contains it."""
    average = _average_milli(proposal)
    if average is None or proposal.total is not None or not proposal.pods:
        return ""
    return _amount(proposal, average * proposal.pods)


def _average_milli(proposal: Proposal) -> int | None:
    average = current_of(proposal.status).average_value
    return None if average is None else average.milli_value()


def _amount(proposal: Proposal, milli: int) -> str:
    return readable_amount(measured_by(proposal.status).resource, milli)


def _full_name(proposal: Proposal) -> str:
    if is_percent(proposal.status):
        return f"{proposal.type} metric, percent of requests"
    return f"{proposal.type} metric" + (", average per pod" if is_average(proposal.status) else "")


def view_readings(record: Record) -> tuple[ReadingView, ...]:
    """Return value and target of each metric of a decision, for the overview."""
    decision, hpa = record.decision, record.observation.hpa
    proposals = decision.trace.proposals
    if len(proposals) != len(hpa.spec.metrics):  # a decision without metrics, such as at a paused workload
        return view_stored_readings(msgspec.structs.replace(hpa, status=decision.status))
    return tuple(
        _reading(label_of(metric), result, decision) if isinstance(result, Proposal) else stored
        for metric, result, stored in zip(
            hpa.spec.metrics, proposals, view_stored_readings(hpa, is_lost=True), strict=True
        )
    )


def view_stored_readings(hpa: HorizontalPodAutoscaler, *, is_lost: bool = False) -> tuple[ReadingView, ...]:
    """Return value and target of each metric from an HPA's status, or no value if it is lost."""
    return tuple(
        ReadingView(
            name=reading.name,
            value=_UNKNOWN if is_lost or reading.current == UNKNOWN else _spaced(reading.current),
            target=_spaced(reading.target.removesuffix(_AVERAGE)),
            is_per_pod=reading.target.endswith(_AVERAGE),
            is_out=is_lost,
        )
        for reading in metric_readings(hpa)
    )


def _spaced(text: str) -> str:
    return text.replace("%", " %")


def _reading(name: str, proposal: Proposal, decision: Decision) -> ReadingView:
    value, target, up, down = numbers_of(proposal, decision)
    return ReadingView(
        name=name,
        value=format_amount(proposal, proposal.value),
        target=format_amount(proposal, proposal.target),
        is_per_pod=is_average(proposal.status),
        ratio=value / target if value is not None and target else None,
        is_out=value is not None and ((up is not None and value > up) or (down is not None and value < down)),
    )


def numbers_of(proposal: Proposal, decision: Decision) -> tuple[float | None, ...]:
    """Return value, target, upper and lower edge in the metric's own unit.

    Above the upper edge the metric asks for more replicas, at or below the lower edge for fewer.
    """
    divisor = 1.0 if is_percent(proposal.status) else 1000.0
    edges = edges_of(proposal, decision.trace.tolerance, decision.current)
    down = None if edges.down < 0 else finite(edges.down / divisor)
    return *(finite(amount / divisor) for amount in (proposal.value, proposal.target, edges.up)), down


def unit_of(proposal: Proposal) -> str:
    """Return the unit of a metric's numbers."""
    if is_percent(proposal.status):
        return "%"
    return {CPU: "cores", MEMORY: "bytes"}.get(measured_by(proposal.status).resource, "")


def finite(number: float) -> float | None:
    """Return the number, or None if JSON cannot express it."""
    return number if isfinite(number) else None
