"""What stands in for a metric that is lost: nothing, what it last asked for, or a fixed size.

Without a policy a lost metric holds: others may raise the replicas, nobody lowers them (upstream's rule). A policy is
the user's word that something else is better. It never acts on a metric whose spec is wrong, and it never brings a
workload to zero: that takes a metric that was read (docs/decisions/0063-what-a-lost-metric-counts-as.md).
"""

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import EventToRecord
from trimtab.decide.horizontal.memory import LastGood
from trimtab.decide.horizontal.metrics.metric_keys import key_of
from trimtab.decide.horizontal.metrics.proposal import Failure, LossFallback, Proposal
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import METRIC_LOST
from trimtab.model.hpa.metric_fields import DEFAULT_LAST_GOOD_SECONDS
from trimtab.model.hpa.metric_names import label_of
from trimtab.model.hpa.types import LossPolicy, MetricLoss, MetricSpec
from trimtab.model.times import format_time

IGNORED = "MetricIgnored"
LAST_GOOD = "LastGoodValue"
TOO_OLD = "LastGoodValueTooOld"
FALL_BACK = "FallBackReplicas"
ALL_READ = "EveryMetricRead"


class LossPolicies:
    """The policies of one decision: who is lost, what stands in, and what is remembered for next time."""

    __slots__ = ("_draft", "_known", "_remembered", "lost")

    def __init__(self, draft: DecisionBuilder) -> None:
        """Begin with what the last decision remembered."""
        self._draft = draft
        self._known = {one.key: one for one in draft.memory.last_good}
        self._remembered: list[LastGood] = []
        self.lost: list[LossFallback] = []

    def take(self, spec: MetricSpec, result: Proposal | Failure) -> Proposal | Failure | LossFallback:
        """Remember a good result; let the metric's policy speak for a lost one."""
        loss = spec.on_loss
        if loss is None or not self._draft.seen.compat.loss_policies:
            return result
        if isinstance(result, Proposal):
            if loss.policy == LossPolicy.LAST_GOOD:
                self._remembered.append(LastGood(key_of(spec), result.replicas, self._draft.now))
            return result
        if result.is_misconfigured or result.is_spec_error or loss.policy not in _STAND_INS:
            return result
        found = LossFallback(type=spec.type, label=label_of(spec), policy=loss.policy, failure=result)
        found = (
            self._last_good(found, spec, loss) if loss.policy == LossPolicy.LAST_GOOD else _fixed(found, loss)
        )
        self.lost.append(found)
        return found

    def _last_good(self, found: LossFallback, spec: MetricSpec, loss: MetricLoss) -> LossFallback:
        """Repeat the last answer: the replicas, not the value, which would multiply the replicas it brought about."""
        known = self._known.get(key_of(spec))
        if known is None:
            return found
        self._remembered.append(msgspec.structs.replace(known, is_lost=True))
        age = DEFAULT_LAST_GOOD_SECONDS if loss.max_age_seconds is None else loss.max_age_seconds
        until = known.at + age
        replicas = known.replicas if self._draft.now <= until else None
        return msgspec.structs.replace(found, replicas=replicas, at=known.at, until=until)

    def finish(self) -> None:
        """Keep what is to be remembered, and tell who is lost and who is back."""
        draft = self._draft
        remembered = tuple(self._remembered)
        if remembered != draft.memory.last_good:
            draft.memory = msgspec.structs.replace(draft.memory, last_good=remembered)
        if self.lost:
            self._tell_lost()
        elif not any(spec.on_loss for spec in draft.seen.hpa.spec.metrics):
            if draft.seen.hpa.status.condition(METRIC_LOST) is not None:
                draft.conditions.remove(METRIC_LOST)
        elif draft.conditions.is_true(METRIC_LOST):
            message = "every metric that has a loss policy can be read"
            draft.conditions.set(METRIC_LOST, "False", ALL_READ, message)
            draft.events.append(EventToRecord(type="Normal", reason="MetricFound", message=message))

    def _tell_lost(self) -> None:
        draft = self._draft
        message = "; ".join(
            f"{one.type} metric {one.label} cannot be read: {words_of(one)}" for one in self.lost
        )
        draft.conditions.set(METRIC_LOST, "True", reason_of(self.lost[0]), message)
        if draft.may_repeat("MetricLost"):
            draft.warn("MetricLost", message)


_STAND_INS = {LossPolicy.IGNORE, LossPolicy.LAST_GOOD, LossPolicy.REPLICAS}


def _fixed(found: LossFallback, loss: MetricLoss) -> LossFallback:
    if loss.policy == LossPolicy.IGNORE or loss.replicas is None:
        return found
    return msgspec.structs.replace(found, replicas=loss.replicas)


def reason_of(found: LossFallback) -> str:
    """Return the condition's reason for one lost metric."""
    if found.policy == LossPolicy.LAST_GOOD:
        return TOO_OLD if found.replicas is None else LAST_GOOD
    return IGNORED if found.policy == LossPolicy.IGNORE else FALL_BACK


def words_of(found: LossFallback) -> str:
    """Say what a lost metric counts as; the text does not change from sync to sync."""
    if found.policy == LossPolicy.IGNORE:
        return "it is ignored, and the other metrics decide"
    if found.policy == LossPolicy.REPLICAS:
        return f"its fall-back of {found.replicas} replicas counts"
    if found.at is None or found.until is None:
        return "no good value of it is known, so nothing is lowered"
    at, until = format_time(wire_time(found.at)), format_time(wire_time(found.until))
    if found.replicas is None:
        return f"its last good value, of {at}, is too old since {until}, so nothing is lowered"
    return f"its last good value, of {at}, counts until {until} and asks for {found.replicas}"
