"""Upgrades vertical records of format 1 to format 2, which has other field names and the same content."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_RECORD = {"before": "stateBefore", "after": "stateAfter", "verdicts": "podResults"}
_ACTION = {"outcome": "result", "originals": "annotationsBefore", "annotations": "annotationsAfter"}
_RESULTS = {"would": "dry run", "later": "rate limited"}
_STATE = {
    "resizesSeen": "resizesFirstSeen",
    "requested": "disruptions",
    "brake": "evictionLimits",
    "conflictsTold": "reportedConflicts",
}
_DISRUPTION = {
    "at": "requestedAt",
    "told": "reportedStatus",
    "isSeen": "isObserved",
    "lostAt": "responseLostAt",
    "isRead": "isChecked",
}
_KINDS = {"return": "revert"}
_LIMITS = {"refusals": "backoffs"}
_TRIAL = {"fruitless": "ineffective"}
_SETTINGS = {"brake": "evictionLimits"}
_LIMIT_SETTINGS = {
    "fruitlessLimit": "maxIneffective",
    "fruitlessPauseSeconds": "ineffectivePauseSeconds",
    "refusalBackoffSeconds": "backoffSeconds",
    "refusalBackoffLimitSeconds": "maxBackoffSeconds",
}


def upgrade_update(record: Json) -> Json:
    """Return the record of an update loop in format 2."""
    upgraded = _renamed(record, _RECORD)
    for name in ("stateBefore", "stateAfter"):
        upgraded[name] = _upgrade_state(upgraded.get(name, {}))
    settings = _renamed(upgraded.get("settings", {}), _SETTINGS)
    settings["evictionLimits"] = _renamed(settings.get("evictionLimits", {}), _LIMIT_SETTINGS)
    actions = [_upgrade_action(action) for action in upgraded.get("actions", ())]
    return {**upgraded, "version": 2, "settings": settings, "actions": actions}


def upgrade_admission(record: Json) -> Json:
    """Return the record of an admission in format 2."""
    return {**record, "version": 2}


def _upgrade_action(action: Json) -> Json:
    upgraded = _renamed(action, _ACTION)
    return {**upgraded, "result": _RESULTS.get(upgraded["result"], upgraded["result"])}


def _upgrade_state(state: Json) -> Json:
    upgraded = _renamed(state, _STATE)
    limits = _renamed(upgraded.get("evictionLimits", {}), _LIMITS)
    trials = {creator: _renamed(trial, _TRIAL) for creator, trial in limits.get("trials", {}).items()}
    return {
        **upgraded,
        "disruptions": {
            uid: _upgrade_disruption(disruption)
            for uid, disruption in upgraded.get("disruptions", {}).items()
        },
        "evictionLimits": {**limits, "trials": trials},
    }


def _upgrade_disruption(disruption: Json) -> Json:
    upgraded = _renamed(disruption, _DISRUPTION)
    return {**upgraded, "kind": _KINDS.get(upgraded["kind"], upgraded["kind"])}


def _renamed(data: Json, names: Mapping[str, str]) -> Json:
    return {names.get(name, name): value for name, value in data.items()}
