"""Loss policies: what a metric counts as while it cannot be read.

Without a policy a lost metric holds, as upstream has it: other metrics may raise the replicas and none may lower them. With
`onLoss` it counts as nothing, as its last good proposal, or as a fixed number of replicas. A policy never replaces a metric
whose spec is wrong, and never brings a workload to zero (docs/decisions/each-metric-sets-its-own-loss-policy.md).
"""

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.memory import LastGood
from trimtab.decide.horizontal.metrics.proposal import Failure, LossFallback, Proposal, metric_key
from trimtab.model.hpa.metric_fields import DEFAULT_LAST_GOOD_SECONDS
from trimtab.model.hpa.metric_names import label_of
from trimtab.model.hpa.types import LossPolicy, MetricLoss, MetricSpec
from trimtab.model.times import format_time

_FALLBACKS = {LossPolicy.IGNORE, LossPolicy.LAST_GOOD, LossPolicy.REPLICAS}


class LossPolicies:
    """Applies the loss policies of one decision, and collects the fallbacks and what to remember."""

    __slots__ = ("_known", "_now", "fallbacks", "last_good")

    def __init__(self, known: tuple[LastGood, ...], now: float) -> None:
        """Start from the last good proposals that the memory holds."""
        self._known = {good.key: good for good in known}
        self._now = now
        self.fallbacks: list[LossFallback] = []
        self.last_good: list[LastGood] = []

    def apply(
        self, spec: MetricSpec, loss: MetricLoss, result: Proposal | Failure
    ) -> Proposal | Failure | LossFallback:
        """Return the result itself, or the fallback of a metric that is lost."""
        if isinstance(result, Proposal):
            if loss.policy == LossPolicy.LAST_GOOD:
                self.last_good.append(LastGood(metric_key(spec), result.replicas, self._now))
            return result
        if result.is_misconfigured or result.is_spec_error or loss.policy not in _FALLBACKS:
            return result
        fallback = LossFallback(type=spec.type, label=label_of(spec), policy=loss.policy, failure=result)
        if loss.policy == LossPolicy.LAST_GOOD:
            fallback = self._with_last_good(fallback, spec, loss)
        elif loss.policy == LossPolicy.REPLICAS:
            fallback = msgspec.structs.replace(fallback, replicas=loss.replicas)
        self.fallbacks.append(fallback)
        return fallback

    def _with_last_good(self, fallback: LossFallback, spec: MetricSpec, loss: MetricLoss) -> LossFallback:
        """Repeat the last replicas. The last value would multiply the replicas that it brought about."""
        known = self._known.get(metric_key(spec))
        if known is None:
            return fallback
        self.last_good.append(msgspec.structs.replace(known, is_lost=True))
        age = DEFAULT_LAST_GOOD_SECONDS if loss.max_age_seconds is None else loss.max_age_seconds
        until = known.at + age
        replicas = known.replicas if self._now <= until else None
        return msgspec.structs.replace(fallback, replicas=replicas, at=known.at, until=until)


def describe_fallback(fallback: LossFallback) -> str:
    """Return what a lost metric counts as, in words that do not change per sync."""
    if fallback.policy == LossPolicy.IGNORE:
        return "it is ignored, and the other metrics decide"
    if fallback.policy == LossPolicy.REPLICAS:
        return f"its fall-back of {fallback.replicas} replicas counts"
    if fallback.at is None or fallback.until is None:
        return "no good value of it is known, so nothing is lowered"
    at, until = format_time(wire_time(fallback.at)), format_time(wire_time(fallback.until))
    if fallback.replicas is None:
        return f"its last good value, of {at}, is too old since {until}, so nothing is lowered"
    return f"its last good value, of {at}, counts until {until} and asks for {fallback.replicas}"
