"""Explains the operator's last decision from the status, for users who may not read the metrics."""

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.model.hpa.metric_names import plain_names
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire
from trimtab.model.times import format_time

NOT_ALLOWED = "NotAllowed"
_CONDITIONS = (
    ConditionType.ABLE_TO_SCALE,
    ConditionType.SCALING_ACTIVE,
    ConditionType.SCALING_LIMITED,
    ConditionType.SCALED_TO_ZERO,
    ConditionType.FIELDS_IGNORED,
    ConditionType.CLOCK_WRONG,
    ConditionType.CACHES_STALE,
)


class StatusExplanation(Wire):
    """An HPA as its status shows it."""

    reason: str
    summary: str
    operator: tuple[str, ...]
    """What the operator last decided; empty if it has not decided yet."""
    next_step: str

    def __str__(self) -> str:
        lines = [f"{self.reason}: {self.summary}", *(f"operator: {line}" for line in self.operator)]
        return "\n".join([*lines, f"next: {self.next_step}"])


def forbidden_metric(observation: Observation) -> str:
    """Return why the user may not read a metric, or an empty text if all can be read."""
    for samples in observation.samples:
        if isinstance(samples, FetchFailure) and samples.is_forbidden:
            return plain_names(samples.message, observation.hpa.spec.metrics)
    return ""


def explain_from_status(hpa: HorizontalPodAutoscaler, why: str) -> StatusExplanation:
    """Explain the last decision to a user who may not read its metrics."""
    return StatusExplanation(
        reason=NOT_ALLOWED,
        summary=f"you may not read a metric of this HPA, so nothing can be decided here: {why}",
        operator=tuple(_last_decision(hpa)),
        next_step="get the right to read the metric, or ask the operator itself with --operator",
    )


def _last_decision(hpa: HorizontalPodAutoscaler) -> list[str]:
    status = hpa.status
    if not status.conditions:
        return []
    scaled = (
        "" if status.last_scale_time is None else f", last scaled at {format_time(status.last_scale_time)}"
    )
    lines = [f"{status.current_replicas} replicas, {status.desired_replicas} desired{scaled}"]
    for kind in _CONDITIONS:
        found = status.condition(kind)
        if found is not None:
            message = plain_names(found.message, hpa.spec.metrics)
            lines.append(f"{found.type} {found.status}, {found.reason}: {message}")
    return lines
