"""Ages, selectors and labels as text, for the rows of built-in kinds."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from trimtab.model.json.wire import convert
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.times import parse_time
from trimtab_lab.storage.codec import JsonObject

Cells = Callable[[JsonObject, datetime], list[Any]]
UNSET = "<none>"
UNKNOWN = "<unknown>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400
#: Below so many seconds: the unit to show, its letter, and the smaller unit shown beside it, if any.
STEPS = (
    (10 * MINUTE, MINUTE, "m", 1, "s"),
    (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"),
    (2 * DAY, HOUR, "h", 0, ""),
    (8 * DAY, DAY, "d", HOUR, "h"),
    (2 * YEAR, DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", DAY, "d"),
)


def age(since: datetime, now: datetime) -> str:
    """Return the time since a moment as `kubectl get` shows it."""
    seconds = int((now - since).total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for below, unit, letter, small_unit, small_letter in STEPS:
        if seconds < below:
            large, small = seconds // unit, seconds % unit // small_unit if small_unit else 0
            return f"{large}{letter}" + (f"{small}{small_letter}" if small else "")
    return f"{seconds // YEAR}y"


def age_of(obj: JsonObject, now: datetime, *path: str) -> str:
    """Return the age of an object, or the time since another time in it."""
    value: Any = obj
    for name in path or ("metadata", "creationTimestamp"):
        value = value.get(name) if isinstance(value, dict) else None
    return age(parse_time(value), now) if value else UNKNOWN


def selector_text(selector: JsonObject | None) -> str:
    """Return a label selector as text."""
    if selector is None:
        return UNSET
    try:
        return str(Selector.from_label_selector(convert(selector, LabelSelector))) or UNSET
    except (SelectorError, ValueError):
        return "<invalid>"


def labels_text(labels: JsonObject | None) -> str:
    """Return labels as text."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or UNSET


def find_condition(obj: JsonObject, kind: str) -> JsonObject | None:
    """Return the condition of this type, or None."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def name_of(obj: JsonObject) -> str:
    """Return the name of an object."""
    return str(obj["metadata"].get("name", ""))
