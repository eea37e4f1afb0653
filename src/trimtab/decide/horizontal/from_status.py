"""The last decision as the cluster stores it, for callers that may not make it again."""

from typing import NamedTuple

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.decide.horizontal.reasons import ROWS, AskedByPolicy, Code, Reason, Set, Unreadable, describe
from trimtab.decide.horizontal.selection.selector_check import AMBIGUOUS, INVALID
from trimtab.decide.horizontal.status.conditions import COUNTED_FROM, FAILED_GET_SCALE, UNABLE_TO_GET
from trimtab.model.hpa.annotations import REASON_ANNOTATION
from trimtab.model.hpa.metric_kinds import plain_names
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    HpaCondition,
)
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import format_time

NOT_ALLOWED = "NotAllowed"
NOT_DECIDED = "NotDecidedYet"
_CONDITIONS = (
    ConditionType.ABLE_TO_SCALE,
    ConditionType.SCALING_ACTIVE,
    ConditionType.SCALING_LIMITED,
    ConditionType.SCALED_TO_ZERO,
    ConditionType.FIELDS_IGNORED,
    ConditionType.CACHES_STALE,
    ConditionType.BESIDE_NATIVE,
    ConditionType.NATIVE_UNSEEN,
)


_WORDS = {
    condition.reason: code
    for code in (
        Code.PAUSED,
        Code.DOWN_WINDOW,
        Code.UP_WINDOW,
        Code.AT_MAXIMUM,
        Code.AT_MINIMUM,
        Code.UP_RATE,
        Code.DOWN_RATE,
    )
    for condition in ROWS[code].conditions
    if isinstance(condition, Set)
} | {INVALID: Code.SELECTOR_INVALID, AMBIGUOUS: Code.AMBIGUOUS}
"""Our words for upstream's reasons of conditions."""


class StatusReason(NamedTuple):
    """Why the replicas are what they are, according to a status."""

    word: str
    """A `Code`, or upstream's reason of a condition where kube-controller-manager decided."""
    message: str


def has_readable_target(status: HorizontalPodAutoscalerStatus) -> bool:
    """Return whether the replicas of a status are known. Those of a target that cannot be read are old, or zero."""
    able = status.condition(ConditionType.ABLE_TO_SCALE)
    return able is None or able.status != "False" or able.reason != FAILED_GET_SCALE


def is_decided(status: HorizontalPodAutoscalerStatus) -> bool:
    """Return whether the desired replicas of a status are those of a decision that succeeded."""
    able, active = (
        status.condition(ConditionType.ABLE_TO_SCALE),
        status.condition(ConditionType.SCALING_ACTIVE),
    )
    return able is not None and able.status != "False" and (active is None or active.status != "False")


def stored_reason(hpa: HorizontalPodAutoscaler) -> str:
    """Return the code that the last decision stored, or an empty text."""
    return hpa.status.reason or hpa.metadata.annotations.get(REASON_ANNOTATION, "")


def reason_from_status(hpa: HorizontalPodAutoscaler) -> StatusReason:
    """Return the reason of the last decision, also of one that kube-controller-manager made."""
    stored = stored_reason(hpa)
    if not stored:
        return _upstreams_reason(hpa)
    if stored not in set(Code):  # a newer operator has others
        return StatusReason(stored, _upstreams_reason(hpa).message)
    return StatusReason(stored, _stored_message(hpa, Code(stored)))


def _stored_message(hpa: HorizontalPodAutoscaler, code: Code) -> str:
    """Return the words of a stored code: of the condition that has its facts, else of the table."""
    status, row = hpa.status, ROWS[code]
    if code in {Code.SCALES_UP, Code.SCALES_DOWN}:
        return f"from {status.current_replicas} to {status.desired_replicas}"
    found = next((known for kind in row.shown_by if (known := status.condition(kind)) is not None), None)
    if found is None:
        return row.says
    message = plain_names(found.message, hpa.spec.metrics)
    if code is Code.SCALE_UNREADABLE:
        target, message = str(hpa.spec.scale_target_ref), message.removeprefix(UNABLE_TO_GET)
        return describe(Reason(code=code, facts=Unreadable(target=target, message=message)))
    if code is Code.REPLICA_POLICY:
        name, _, why = message.removeprefix(COUNTED_FROM).partition(": ")
        return describe(Reason(code=code, facts=AskedByPolicy(name=name, replicas=0, reason=why)))
    return message


def _upstreams_reason(hpa: HorizontalPodAutoscaler) -> StatusReason:
    """Return what the conditions of kube-controller-manager say, in our words where we have one for it."""
    status = hpa.status
    able, active = (
        status.condition(ConditionType.ABLE_TO_SCALE),
        status.condition(ConditionType.SCALING_ACTIVE),
    )
    if able is None:
        return StatusReason(NOT_DECIDED, "no operator has decided about it yet")
    for failed in (able, active):
        if failed is not None and failed.status == "False":
            return _in_our_words(hpa, failed)
    if status.desired_replicas != status.current_replicas:
        is_up = status.desired_replicas > status.current_replicas
        change = f"from {status.current_replicas} to {status.desired_replicas}"
        return StatusReason(Code.SCALES_UP if is_up else Code.SCALES_DOWN, change)
    limited = status.condition(ConditionType.SCALING_LIMITED)
    # A window comes before the bounds: they may cut a remembered recommendation, which holds nothing.
    is_limited = able.reason not in _WORDS and limited is not None and limited.status == "True"
    return _in_our_words(hpa, limited if is_limited and limited is not None else able)


def _in_our_words(hpa: HorizontalPodAutoscaler, condition: HpaCondition) -> StatusReason:
    if condition.reason == Code.SCALE_UNREADABLE:
        return StatusReason(condition.reason, _stored_message(hpa, Code.SCALE_UNREADABLE))
    word = _WORDS.get(condition.reason, condition.reason)
    return StatusReason(word, plain_names(condition.message, hpa.spec.metrics))


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
    lines = [f"{counted(status.current_replicas, 'replica')}, {status.desired_replicas} desired{scaled}"]
    for kind in _CONDITIONS:
        found = status.condition(kind)
        if found is not None:
            message = plain_names(found.message, hpa.spec.metrics)
            lines.append(f"{found.type} {found.status}, {found.reason}: {message}")
    return lines
