"""The library's way to a decision: an observation as an object, plain data or JSON."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.decide.horizontal import Observation, Record
from trimtab.decide.horizontal.records.record import WELL, decide_and_complete
from trimtab.model.json import wire


def decide_observation(observation: Observation | Mapping[str, Any] | str | bytes, now: datetime) -> Record:
    """Decide how many replicas the target of an HPA gets, and return the decision as a record.

    `observation` is that of a record, or plain data or JSON of the same shape. `now` needs a time zone. The record's
    `decision.desired` is the number of replicas; `explain` gives the reason. Raise ValueError if the observation has another
    shape, with the field.
    """
    if now.tzinfo is None:
        raise ValueError(f"now: {now} has no time zone; write datetime.now(UTC)")
    if isinstance(observation, str | bytes):
        observation = wire.decode(observation, Observation)
    elif not isinstance(observation, Observation):
        observation = wire.convert(observation, Observation)
    return decide_and_complete(observation, now.timestamp(), WELL)
