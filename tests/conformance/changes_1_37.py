"""Where Kubernetes 1.37 answers the recorded cases of 1.36 otherwise.

Read from the sources of v1.36.3 and v1.37.1; the table of all differences is in
docs/decisions/compat-names-the-version-of-kubernetes.md.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.versions import Case, Change

_AMBIGUOUS = re.compile(r"are controlled by multiple HPAs: \[(\S+) (\S+?)(?: [^\]]*)?\]")
_OBJECT_ERROR = re.compile(r"unable to get metric (.*?): (\S*) on (\S*) ([^/\s]*)/(.*)", re.DOTALL)
_TOLERANCE = "HPAConfigurableTolerance"
_DIRECTIONS = ("scaleUp", "scaleDown")


def _texts(data: Any, change: Callable[[str], str]) -> Any:
    """Return JSON data with every text changed."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return {key: _texts(value, change) for key, value in data.items()}
    return [_texts(item, change) for item in data] if isinstance(data, list) else data


def _reworded(case: Case, pattern: re.Pattern[str], text: str) -> Case | None:
    changed = _texts(case, lambda old: pattern.sub(text, old))
    return None if changed == case else changed


def _ambiguous(case: Case) -> Case | None:
    return _reworded(case, _AMBIGUOUS, r"are controlled by more than one HPA (e.g. [\1 \2])")


def _object_error(case: Case) -> Case | None:
    return _reworded(case, _OBJECT_ERROR, r"unable to get metric \1 on \2 \3/\4: \5")


def _observed(case: Case) -> Case | None:
    """Let the status of every step name the generation of the HPA, which the recorded HPAs do not have."""
    if case.get("function") != "reconcile":
        return None
    steps = [
        {**_with_observed_hpas(step), "expect": _with_observed_status(step["expect"])}
        for step in case["steps"]
    ]
    return {**_with_observed_hpas(case), "steps": steps}


def _with_observed_hpas(part: Mapping[str, Any]) -> Case:
    if "hpas" not in part:
        return dict(part)
    return {
        **part,
        "hpas": [
            {**hpa, "status": {**hpa.get("status", {}), "observedGeneration": 0}} for hpa in part["hpas"]
        ],
    }


def _with_observed_status(expect: Mapping[str, Any]) -> Case:
    if expect.get("status") is None:
        return dict(expect)
    return {**expect, "status": {**expect["status"], "observedGeneration": 0}}


def _tolerance_locked(case: Case) -> Case | None:
    """Switch the gate on, and take away the tolerances that were ignored because it was off."""
    if (case.get("featureGates") or {}).get(_TOLERANCE) is not False:
        return None
    case = {**case, "featureGates": {**case["featureGates"], _TOLERANCE: True}}
    if case.get("function") == "reconcile":
        steps = [_without_tolerances(step, "hpas") for step in case["steps"]]
        return {**_without_tolerances(case, "hpas"), "steps": steps}
    is_in_use = '"tolerance"' in json.dumps(case.get("oldHpa"))
    return case if is_in_use else _without_tolerances(case, "hpa")


def _without_tolerances(part: Mapping[str, Any], name: str) -> Case:
    given = part.get(name)
    if given is None:
        return dict(part)
    return {**part, name: [_plain(hpa) for hpa in given] if isinstance(given, list) else _plain(given)}


def _plain(hpa: Any) -> Any:
    """Return an HPA without tolerances."""
    behavior = (hpa.get("spec") or {}).get("behavior")
    if not behavior:
        return hpa
    plain = {
        key: {field: value for field, value in rules.items() if field != "tolerance"}
        if key in _DIRECTIONS and isinstance(rules, Mapping)
        else rules
        for key, rules in behavior.items()
    }
    return {**hpa, "spec": {**hpa["spec"], "behavior": plain}}


def _declared_max_replicas(case: Case) -> Case | None:
    """Drop the detail of a missing maxReplicas where the declaration checks it: in a request that changes it."""
    if case.get("function") not in {"create", "update"} or "errors" not in case["expect"]:
        return None
    if case["function"] == "update" and _max_replicas(case["hpa"]) == _max_replicas(case["oldHpa"]):
        return None
    errors = [_without_detail(error) for error in case["expect"]["errors"]]
    if errors == case["expect"]["errors"]:
        return None
    return {**case, "expect": {**case["expect"], "errors": errors}}


def _max_replicas(hpa: Mapping[str, Any]) -> int:
    return (hpa.get("spec") or {}).get("maxReplicas") or 0


def _without_detail(error: Case) -> Case:
    if (error["field"], error["errorType"]) != ("spec.maxReplicas", "FieldValueRequired"):
        return error
    return {**error, "detail": "", "message": "spec.maxReplicas: Required value"}


CHANGES = (
    Change("ambiguous selector", "the message names two HPAs as an example", _ambiguous),
    Change("object metric error", "metric, object and cause are in the order that was meant", _object_error),
    Change("observedGeneration", "a status names the generation of the spec (0 without one)", _observed),
    Change("tolerance gate locked", "HPAConfigurableTolerance is GA and cannot be off", _tolerance_locked),
    Change("declared maxReplicas", "the declaration's error has no detail", _declared_max_replicas),
)
