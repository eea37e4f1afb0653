"""Upgrades the JSON of records in format 1, which has other names for the same values.

The shapes are the same: each name has exactly one new name. One event message was reworded. Data that does not have the
shape of a record stays as it is, so that the decoder names what is wrong.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class _Names(NamedTuple):
    """What is called otherwise in one kind of object."""

    fields: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}
    """New values of a field, by the field's new name."""
    inner: Mapping[str, "_Names"] = {}
    """Names in the objects below, by the field's new name."""
    each: "_Names | None" = None
    """Names in every value, where the object maps free keys."""


_MEMORY = _Names({"refused": "rejectedSince", "told": "lastEventTimes"})
_COMPAT = _Names(
    {
        "refuseAbsurdSamples": "rejectImplausibleSamples",
        "tellExternalChanges": "reportExternalChanges",
        "tellExtraPods": "reportExtraPods",
        "tellIgnoredFields": "reportIgnoredFields",
    }
)
_OWNER = _Names(
    {"why": "reason", "right": "permission"}, {"type": {"gone": "notFound", "unread": "unavailable"}}
)
_OBSERVATION = _Names(
    {"rivals": "conflictingHpas", "readings": "samples"},
    inner={"memory": _MEMORY, "compat": _COMPAT, "owners": _Names(each=_OWNER)},
)
_FAILURE = _Names({"isRefused": "isRejected"})
_PROPOSAL = _Names(
    {"refused": "rejectedSamples", "isRefused": "isRejected"},
    {"result": {"standIn": "fallback"}},
    {"failure": _FAILURE},
)
_TRACE = _Names(
    {
        "lowest": "minReplicas",
        "highest": "maxReplicas",
        "counted": "countedPods",
        "extra": "extraPods",
        "surge": "surgePods",
        "fallback": "selectionFallback",
        "asked": "recommended",
        "stop": "stoppedBy",
    },
    inner={"leftOut": _Names({"why": "reason"}), "proposals": _PROPOSAL},
)
_DECISION = _Names({"trail": "trace"}, inner={"memory": _MEMORY, "trace": _TRACE})
_RECORD = _Names(inner={"observation": _OBSERVATION, "decision": _DECISION})

_CHANGED_ELSEWHERE = re.compile(
    r"replicas went from (-?\d+) to (-?\d+) by another hand than this autoscaler's\Z"
)


def upgrade(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 in format 2."""
    new: dict[str, Any] = _renamed(record, _RECORD) | {"version": 2}
    decision = new.get("decision")
    for event in (decision.get("events") or ()) if isinstance(decision, dict) else ():
        if isinstance(event, dict) and isinstance(event.get("message"), str):
            event["message"] = _CHANGED_ELSEWHERE.sub(
                r"replicas changed from \1 to \2 outside this autoscaler", event["message"]
            )
    return new


def _renamed(data: Any, names: _Names) -> Any:
    if isinstance(data, list):
        return [_renamed(item, names) for item in data]
    if not isinstance(data, Mapping):
        return data
    if names.each is not None:
        return {key: _renamed(value, names.each) for key, value in data.items()}
    new = {names.fields.get(name, name): value for name, value in data.items()}
    for name, words in names.values.items():
        if isinstance(new.get(name), str):
            new[name] = words.get(new[name], new[name])
    for name, inner in names.inner.items():
        if name in new:
            new[name] = _renamed(new[name], inner)
    return new
