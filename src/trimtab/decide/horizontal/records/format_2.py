"""Upgrades the JSON of records in format 2, whose programs lacked some rulings and had another default of a gate.

Data that does not have the shape of a record stays as it is, so that the decoder names what is wrong.
"""

from collections.abc import Mapping
from typing import Any

_RULINGS = {"conditionGenerations": False, "waitForFirstSamples": False}
"""The rulings that came later and change decisions."""
_GATES = {"hpa_scale_to_zero": False}
"""The gates whose default changed later."""


def upgrade(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of format 2 in format 3."""
    new = {**record, "version": 3}
    observation = record.get("observation")
    if not isinstance(observation, Mapping):
        return new
    compat, gates = observation.get("compat", {}), observation.get("gates", {})
    changed: dict[str, Any] = {}
    if isinstance(compat, Mapping):
        changed["compat"] = {**_RULINGS, **compat}
    if isinstance(gates, Mapping):
        changed["gates"] = {**_GATES, **gates}
    return {**new, "observation": {**observation, **changed}}
