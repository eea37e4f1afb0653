"""Every verdict as one of six states, which the overview can be filtered by."""

from typing import Final

from trimtab.decide.horizontal import Verdict

SCALING: Final = "scaling"
STEADY: Final = "steady"
HELD: Final = "held"
PAUSED: Final = "paused"
PROBLEM: Final = "problem"
WAITING: Final = "waiting"

_STATES = {
    Verdict.SCALES_UP: SCALING,
    Verdict.SCALES_DOWN: SCALING,
    Verdict.EARLIER_RECOMMENDATION: SCALING,
    Verdict.ABOVE_MAXIMUM: SCALING,
    Verdict.BELOW_MINIMUM: SCALING,
    Verdict.PAUSED: PAUSED,
    Verdict.WITHIN_TOLERANCE: STEADY,
    Verdict.WITHIN_AFTER_FILLING: STEADY,
    Verdict.IDLE_AT_ZERO: STEADY,
    Verdict.ENOUGH: STEADY,
    Verdict.DIRECTION_UNSURE: HELD,
    Verdict.NO_READY_PODS: HELD,
    Verdict.DOWN_WINDOW: HELD,
    Verdict.UP_WINDOW: HELD,
    Verdict.LOSS_POLICY: HELD,
    Verdict.AT_MAXIMUM: HELD,
    Verdict.SURGE: HELD,
    Verdict.AT_MINIMUM: HELD,
    Verdict.UP_RATE: HELD,
    Verdict.DOWN_RATE: HELD,
    Verdict.UP_DISABLED: HELD,
    Verdict.DOWN_DISABLED: HELD,
}


def state_of(verdict: Verdict) -> str:
    """Return the state; a verdict that is in no other group is a problem that somebody has to look at."""
    return _STATES.get(verdict, PROBLEM)
