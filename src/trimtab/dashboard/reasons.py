"""Why not more replicas, and why not fewer: each direction in words, from the decision's own trail."""

from trimtab.dashboard.limits import down_window
from trimtab.decide.horizontal import Decision, Observation, Verdict, verdict_of
from trimtab.decide.horizontal.loss import words_of
from trimtab.decide.horizontal.proposals.proposal import Failure, Proposal, StandIn
from trimtab.decide.horizontal.units import break_even, one_less, shown, told_name
from trimtab.decide.horizontal.wording import SUMMARIES, next_step

_BOUNDS = {Verdict.AT_MAXIMUM: "this is maxReplicas", Verdict.AT_MINIMUM: "this is minReplicas"}
_STARTS = {Verdict.ABOVE_MAXIMUM, Verdict.BELOW_MINIMUM}


def why_not_more(decision: Decision) -> str:
    """Say why there are not more replicas, or that there will be."""
    trail, current = decision.trail, decision.current
    if decision.desired > current:
        return _moves("grows", decision)
    if (settled := _unmeasured(decision)) is not None:
        return settled
    if trail.asked is not None and trail.asked > current:
        return _held(decision)
    if current >= trail.highest:
        return f"There are {current}, which is maxReplicas."
    wanted = [
        f"{told_name(one)} is above {shown(one, break_even(one, trail.tolerance)[0])}"
        for one in _proposals(decision)
    ]
    return f"No metric asks for more. It grows when {_joined(wanted, 'or')}."


def why_not_less(seen: Observation, decision: Decision) -> str:
    """Say why there are not fewer replicas, or that there will be."""
    trail, current = decision.trail, decision.current
    if decision.desired < current:
        return _moves("shrinks", decision)
    if (settled := _unmeasured(decision)) is not None:
        return settled
    if trail.asked is not None and trail.asked < current:
        return _held(decision)
    if current <= trail.lowest:
        return (
            f"There are {current}, which is minReplicas." if current else "There is nothing left to remove."
        )
    if any(isinstance(one, Failure) or (isinstance(one, StandIn) and one.holds) for one in trail.proposals):
        return "A metric cannot be read, and replicas are not lowered on half the facts."
    if verdict_of(decision) == Verdict.LOSS_POLICY:
        return f"{_stand_ins(decision)} Next: {next_step(decision, Verdict.LOSS_POLICY)}."
    wanted = [
        f"{told_name(one)} is at {shown(one, _fewer(one, decision))} or less" for one in _proposals(decision)
    ]
    window = down_window(seen)
    stays = f" and stays so for {window:g} s" if window else ""
    return f"The present replicas are needed. It shrinks when {_joined(wanted, 'and')}{stays}."


def _stand_ins(decision: Decision) -> str:
    """Say what the lost metrics count as."""
    lost = [one for one in decision.trail.proposals if isinstance(one, StandIn)]
    return " ".join(f"{one.label} cannot be read: {words_of(one)}." for one in lost)


def _fewer(proposal: Proposal, decision: Decision) -> float:
    _, down = break_even(proposal, decision.trail.tolerance)
    return min(one_less(proposal, decision.current), down)


def _moves(verb: str, decision: Decision) -> str:
    asked, desired = decision.trail.asked, decision.desired
    text = f"It {verb} from {decision.current} to {desired}"
    if asked is None or asked == desired:
        return f"{text}."
    normalized = decision.trail.normalized
    why = ""
    if normalized is not None and normalized.is_limited:
        why = normalized.limited.reason
    elif normalized is not None:
        why = normalized.stabilized.reason
    return f"{text}; the metrics ask for {asked}, {_LIMITS.get(why, 'which is not allowed at once')}."


_LIMITS = {
    "TooManyReplicas": "but this is maxReplicas",
    "TooFewReplicas": "but this is minReplicas",
    "ScaleUpLimit": "but the scale-up policies allow no more in this period",
    "ScaleDownLimit": "but the scale-down policies allow no less in this period",
    "ScaleDownStabilized": "but more was recommended within the scale-down window",
    "ScaleUpStabilized": "but less was recommended within the scale-up window",
}


def _unmeasured(decision: Decision) -> str | None:
    """Return the sentence for a decision in which no metric counted; both directions have the same reason."""
    if decision.trail.asked is not None:
        return None
    verdict = verdict_of(decision)
    if verdict in _STARTS:
        return f"{_sentence(SUMMARIES[verdict])} Metrics do not count until that is corrected."
    return f"{_sentence(SUMMARIES[verdict])} To change that: {next_step(decision, verdict)}."


def _held(decision: Decision) -> str:
    verdict, asked = verdict_of(decision), decision.trail.asked
    why = _BOUNDS.get(verdict) or SUMMARIES[verdict]
    return f"The metrics ask for {asked}, but {why}. Next: {next_step(decision, verdict)}."


def _proposals(decision: Decision) -> list[Proposal]:
    return [one for one in decision.trail.proposals if isinstance(one, Proposal)]


def _joined(parts: list[str], word: str) -> str:
    return f", {word} ".join(parts) if parts else "a metric can be read"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
