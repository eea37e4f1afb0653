"""Explains the operator's last decision from the status, for users who may not read the metrics."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import ratio_of, round_up
from trimtab.decide.horizontal.behavior.normalize import (
    SCALE_DOWN_LIMIT,
    SCALE_UP_LIMIT,
    TOO_FEW,
    TOO_MANY,
)
from trimtab.decide.horizontal.behavior.stabilization import SCALE_DOWN_STABILIZED, SCALE_UP_STABILIZED
from trimtab.decide.horizontal.explain.reason import DecisionReason
from trimtab.decide.horizontal.explain.wording import SUMMARIES, describe_unreadable
from trimtab.decide.horizontal.metrics.combine import LEAVES_OUT_ALL
from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import POLICY
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.decide.horizontal.status.metrics_status import COUNTED_FROM, IGNORED
from trimtab.decide.horizontal.status.scale_status import FAILED_GET_SCALE, UNABLE_TO_GET
from trimtab.decide.horizontal.status.selection_status import UNREADABLE
from trimtab.model.hpa.metric_kinds import current_of, plain_names, status_of, target_of
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerStatus,
    HpaCondition,
    MetricSpec,
    MetricStatus,
    ScalingPolicySelect,
)
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
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


_WORDS = {
    "ScalingDisabled": DecisionReason.PAUSED,
    "InvalidSelector": DecisionReason.SELECTOR_INVALID,
    "AmbiguousSelector": DecisionReason.AMBIGUOUS,
    SCALE_DOWN_STABILIZED: DecisionReason.DOWN_WINDOW,
    SCALE_UP_STABILIZED: DecisionReason.UP_WINDOW,
    TOO_MANY: DecisionReason.AT_MAXIMUM,
    TOO_FEW: DecisionReason.AT_MINIMUM,
    SCALE_UP_LIMIT: DecisionReason.UP_RATE,
    SCALE_DOWN_LIMIT: DecisionReason.DOWN_RATE,
}
"""Our words for upstream's reasons of conditions."""
_STORED = {str(reason): text for reason, text in SUMMARIES.items()}
"""The words for a stored reason. A newer operator may have others."""
NOT_DECIDED = "NotDecidedYet"


class StatusReason(NamedTuple):
    """Why the replicas are what they are, according to a status."""

    word: str
    """A `DecisionReason`, or upstream's reason of a condition where the status says no more."""
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


_DEFAULT_TOLERANCE = Tolerance()


def reason_from_status(
    hpa: HorizontalPodAutoscaler, tolerance: Tolerance = _DEFAULT_TOLERANCE
) -> StatusReason:
    """Return the reason of the last decision, also of one that kube-controller-manager made.

    HPAs of our own kind store its word. Its words, and those of native HPAs, are derived from the rest of the status.
    """
    derived, stored = _derived_reason(hpa, tolerance), hpa.status.reason
    if not stored or stored == derived.word:
        return derived
    return StatusReason(stored, _STORED.get(stored, derived.message))


def _derived_reason(hpa: HorizontalPodAutoscaler, tolerance: Tolerance) -> StatusReason:
    status = hpa.status
    active = status.condition(ConditionType.SCALING_ACTIVE)
    able = status.condition(ConditionType.ABLE_TO_SCALE)
    limited = status.condition(ConditionType.SCALING_LIMITED)
    for failed in (able, active):
        if failed is not None and failed.status == "False":
            return _failure(hpa, failed)
    if able is None:
        return StatusReason(NOT_DECIDED, "no operator has decided about it yet")
    if status.desired_replicas != status.current_replicas:
        is_up = status.desired_replicas > status.current_replicas
        change = f"from {status.current_replicas} to {status.desired_replicas}"
        return StatusReason(DecisionReason.SCALES_UP if is_up else DecisionReason.SCALES_DOWN, change)
    # A window comes before the bounds: they may cut a remembered recommendation, which holds nothing.
    if able.reason in {SCALE_DOWN_STABILIZED, SCALE_UP_STABILIZED}:
        return StatusReason(_WORDS[able.reason], able.message)
    if limited is not None and limited.status == "True":
        return StatusReason(_limit_word(hpa, limited), limited.message)
    if not status.current_replicas:
        return StatusReason(DecisionReason.IDLE_AT_ZERO, able.message)
    return _winning_policy(active) or _standstill(hpa, tolerance) or StatusReason(able.reason, able.message)


def _failure(hpa: HorizontalPodAutoscaler, failed: HpaCondition) -> StatusReason:
    """Return the reason that a failed condition gives."""
    message = plain_names(failed.message, hpa.spec.metrics)
    if failed.reason == FAILED_GET_SCALE:
        message = describe_unreadable(hpa.spec.scale_target_ref, message.removeprefix(UNABLE_TO_GET))
    left_out = LEAVES_OUT_ALL in failed.message
    word = DecisionReason.ALL_LEFT_OUT if left_out else _WORDS.get(failed.reason, failed.reason)
    return StatusReason(word, message)


def _limit_word(hpa: HorizontalPodAutoscaler, limited: HpaCondition) -> str:
    """Return the word for a limit. Upstream has one reason for a rate and for a direction that is disabled."""
    word = _WORDS.get(limited.reason, limited.reason)
    behavior = hpa.spec.behavior or HorizontalPodAutoscalerBehavior()
    for rate, rules, disabled in (
        (DecisionReason.UP_RATE, behavior.scale_up, DecisionReason.UP_DISABLED),
        (DecisionReason.DOWN_RATE, behavior.scale_down, DecisionReason.DOWN_DISABLED),
    ):
        if word == rate and rules is not None and rules.select_policy == ScalingPolicySelect.DISABLED:
            return disabled
    return word


def _winning_policy(active: HpaCondition | None) -> StatusReason | None:
    """Return the replica policy that asks for the replicas, or None if a metric does."""
    before, _, policy = ("" if active is None else active.message).partition(f"{COUNTED_FROM}{POLICY} ")
    if before or not policy:
        return None
    name, _, why = policy.partition(": ")
    return StatusReason(DecisionReason.REPLICA_POLICY, f"{POLICY} {name} asks for that many: {why}")


class _Asked(NamedTuple):
    """What a metric asks for by the value in the status."""

    replicas: int
    is_within: bool
    """Whether the value is within the tolerance of its target."""


def _standstill(hpa: HorizontalPodAutoscaler, tolerance: Tolerance) -> StatusReason | None:
    """Return why nothing changes although nothing limits it, or None if the values of the status do not say.

    The status has neither the pods nor the samples that are missing. Where these matter, only the operator has the reason.
    """
    status = hpa.status
    asked = [
        _asked(metric, status_of(metric, index, status.current_metrics), status.current_replicas, tolerance)
        for index, metric in enumerate(hpa.spec.metrics)
    ]
    known = [found for found in asked if found is not None]
    most = max((found.replicas for found in known), default=0)
    if most > status.current_replicas:
        return None  # missing samples or pods that are not ready keep it from growing
    if most < status.current_replicas:
        return _hold(hpa, is_complete=len(known) == len(asked) and bool(known))
    winner = next(found for found in known if found.replicas == most)
    word = DecisionReason.WITHIN_TOLERANCE if winner.is_within else DecisionReason.ENOUGH
    return StatusReason(word, SUMMARIES[word])


def _hold(hpa: HorizontalPodAutoscaler, *, is_complete: bool) -> StatusReason | None:
    """Return what keeps replicas that the metrics do not ask for."""
    status = hpa.status
    lost = _true(status, ConditionType.METRIC_LOST)
    if is_complete or (lost is not None and lost.reason == IGNORED):
        for kind in (
            ConditionType.SELECTION_FALLBACK,
            ConditionType.PLUGIN_FAILED,
            ConditionType.CACHES_STALE,
        ):
            if (found := _true(status, kind)) is not None:
                return StatusReason(_hold_word(found), found.message)
    if lost is not None:
        return StatusReason(DecisionReason.LOSS_POLICY, lost.message)
    return None


def _true(status: HorizontalPodAutoscalerStatus, kind: ConditionType) -> HpaCondition | None:
    found = status.condition(kind)
    return found if found is not None and found.status == "True" else None


def _hold_word(condition: HpaCondition) -> DecisionReason:
    if condition.type == ConditionType.CACHES_STALE:
        return DecisionReason.CACHES_STALE
    return DecisionReason.OWNERS_UNREAD if condition.reason == UNREADABLE else DecisionReason.PLUGIN_FAILED


def _asked(metric: MetricSpec, status: MetricStatus, current: int, tolerance: Tolerance) -> _Asked | None:
    """Return what a metric asks for if all pods are ready and measured, or None if it was not read."""
    target, value = target_of(metric), current_of(status)
    pairs: Sequence[tuple[float | None, float | None]] = (
        (value.average_utilization, target.average_utilization),
        *(
            (None if read is None else read.as_float(), None if wanted is None else wanted.as_float())
            for read, wanted in ((value.average_value, target.average_value), (value.value, target.value))
        ),
    )
    read, wanted = next(((read, wanted) for read, wanted in pairs if wanted is not None), (None, None))
    if read is None or wanted is None:
        return None
    ratio = ratio_of(read, wanted)
    if not isfinite(ratio):
        return None
    if tolerance.covers(ratio):
        return _Asked(current, is_within=True)
    return _Asked(int(round_up(ratio * current)), is_within=False)


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
