"""Why not more replicas, and why not fewer: each direction in words, from the decision's own trail."""

from trimtab.decide.horizontal import Decision, Observation, Verdict, verdict_of
from trimtab.decide.horizontal.decision import is_only_told
from trimtab.decide.horizontal.explain.advice import advise, fewer, more
from trimtab.decide.horizontal.explain.change_reason import partly_held
from trimtab.decide.horizontal.explain.wording import SUMMARIES, next_step, reason_of, when
from trimtab.decide.horizontal.metrics.on_loss import words_of
from trimtab.decide.horizontal.metrics.proposal import Failure, StandIn

_STARTS = {Verdict.ABOVE_MAXIMUM, Verdict.BELOW_MINIMUM}


def why_not_more(seen: Observation, decision: Decision) -> str:
    """Say why there are not more replicas, or that there will be."""
    trail, current = decision.trail, decision.current
    if decision.desired > current:
        return _moves(seen, decision, "grows", "would grow")
    if (settled := _unmeasured(seen, decision)) is not None:
        return settled
    if trail.asked is not None and trail.asked > current:
        return _held(seen, decision)
    ways = more(seen, decision)
    there = f"There are {current}, which is maxReplicas." if current >= trail.highest else ""
    if not ways:
        return there or "No metric asks for more, and none would at any value now."
    return f"{there or 'No metric asks for more.'} It grows when {when(seen, decision, ways)}."


def why_not_less(seen: Observation, decision: Decision) -> str:
    """Say why there are not fewer replicas, or that there will be."""
    trail, current = decision.trail, decision.current
    if decision.desired < current:
        return _moves(seen, decision, "shrinks", "would shrink")
    if (settled := _unmeasured(seen, decision)) is not None:
        return settled
    if not current:
        return "There is nothing left to remove."
    if trail.asked is not None and trail.asked < current:
        return _held(seen, decision)
    if any(isinstance(one, Failure) or (isinstance(one, StandIn) and one.holds) for one in trail.proposals):
        return "A metric cannot be read, and replicas are not lowered on half the facts."
    if verdict_of(decision) in {Verdict.LOSS_POLICY, Verdict.OWNERS_UNREAD}:
        return f"{_stand_ins(decision)} Next: {_next(seen, decision)}.".lstrip()
    ways = fewer(seen, decision)
    there = f"There are {current}, which is minReplicas." if current <= trail.lowest else ""
    if not ways:
        return there or "The present replicas are needed, and no value of the metrics asks for fewer now."
    return f"{there or 'The present replicas are needed.'} It shrinks when {when(seen, decision, ways)}."


def _stand_ins(decision: Decision) -> str:
    """Say what the lost metrics count as."""
    lost = [one for one in decision.trail.proposals if isinstance(one, StandIn)]
    return " ".join(f"{one.label} cannot be read: {words_of(one)}." for one in lost)


def _moves(seen: Observation, decision: Decision, verb: str, would: str) -> str:
    text = f"It {verb} from {decision.current} to {decision.desired}"
    if is_only_told(seen):
        text = f"It {would} from {decision.current} to {decision.desired}, but nothing is scaled: {_next(seen, decision)}"
    held = partly_held(decision)
    return f"{text}; {held}." if held else f"{text}."


def _unmeasured(seen: Observation, decision: Decision) -> str | None:
    """Return the sentence for a decision in which no metric counted; both directions have the same reason."""
    if decision.trail.asked is not None:
        return None
    verdict = verdict_of(decision)
    if verdict in _STARTS:
        return f"{_sentence(SUMMARIES[verdict])} Metrics do not count until that is corrected."
    reason = _sentence(reason_of(seen, decision, verdict))
    return f"{reason} To change that: {_next(seen, decision)}."


def _held(seen: Observation, decision: Decision) -> str:
    why = reason_of(seen, decision, verdict_of(decision)).partition(", but ")
    return (
        f"The metrics ask for {decision.trail.asked}, but {why[2] or why[0]}. Next: {_next(seen, decision)}."
    )


def _next(seen: Observation, decision: Decision) -> str:
    verdict = verdict_of(decision)
    return next_step(seen, decision, verdict, advise(seen, decision, verdict))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
