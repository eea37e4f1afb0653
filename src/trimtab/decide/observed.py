"""The library's way to a decision: an observation as an object, plain data or JSON."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from trimtab.decide.horizontal import Observation, Record
from trimtab.decide.horizontal.plugin_calls import decide_with_plugins, names_plugins
from trimtab.decide.horizontal.records.record import WELL, decide_and_complete
from trimtab.model.json import wire
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import load_plugins


def decide_observation(
    observation: Observation | Mapping[str, Any] | str | bytes, now: datetime, *, plugins: Iterable[str] = ()
) -> Record:
    """Decide how many replicas the target of an HPA gets, and return the decision as a record.

    `observation` is that of a record, or plain data or JSON of the same shape. `now` needs a time zone. The record's
    `decision.desired` is the number of replicas; `explain` gives the reason. Plug-ins that the HPA names and whose answers the
    observation does not have are called if `plugins` names them. Without them nothing is lowered, and the record says so. Raise
    ValueError if the observation has another shape, with the field, or if a plug-in cannot be loaded.
    """
    if now.tzinfo is None:
        raise ValueError(f"now: {now} has no time zone; write datetime.now(UTC)")
    if isinstance(observation, str | bytes):
        observation = wire.decode(observation, Observation)
    elif not isinstance(observation, Observation):
        observation = wire.convert(observation, Observation)
    is_answered = observation.filter_answer is not None or observation.policy_answers
    if names_plugins(observation.hpa.spec) and not is_answered:
        guards = Guards(load_plugins(plugins), advice="install its package and name it in plugins")
        observation, _ = decide_with_plugins(observation, guards, now)
    return decide_and_complete(observation, now.timestamp(), WELL)
