"""What a decision says when it must not be carried out."""

import msgspec

from trimtab.decide.horizontal.conditions import ABLE_TO_SCALE, Conditions
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation import Observation
from trimtab.decide.horizontal.timing import wire_time


def only_told(seen: Observation, decision: Decision) -> Decision:
    """Return the decision with its scale write turned into a sentence of the status."""
    if decision.scale_to is None:
        return decision
    conditions = Conditions(decision.status.conditions, wire_time(decision.now))
    message = f"dry run: would scale from {decision.current} to {decision.scale_to}: {decision.reason}"
    conditions.set(ABLE_TO_SCALE, "True", "DryRun", message)
    status = msgspec.structs.replace(
        decision.status, conditions=conditions.done(), desired_replicas=decision.desired
    )
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        intent=None,
        status=status,
        status_changed=status != seen.hpa.status,
        observed_desired=decision.desired,
    )
