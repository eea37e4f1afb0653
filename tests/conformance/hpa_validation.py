"""Checkers of validation.jsonl: what an API server does to HorizontalPodAutoscalers and Scales."""

import json
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.versions import current
from trimtab.model.core.workloads import validate_scale
from trimtab.model.hpa import canonical, create_update, to_v2
from trimtab.model.hpa.defaults import (
    default,
    default_behavior,
    default_v1,
    with_default_behavior,
)
from trimtab.model.hpa.types import HPAScalingRules
from trimtab.model.hpa.validation import spec
from trimtab.model.hpa.validation.reference import ReferenceOptions
from trimtab.model.hpa.validation.spec import Options, StoredHPA
from trimtab.model.hpa.versions import v1
from trimtab.model.hpa.versions.canonical import canonical_as
from trimtab.model.hpa.versions.conversion import v2_to_v1
from trimtab.model.json import wire

_STEM = "validation"


@checks("function", "ValidateHorizontalPodAutoscaler", stem=_STEM)
def check_validate(case: Any) -> Any:
    return _compare_errors(case, spec.validate(_stored(case["hpa"]), _options(case)))


@checks("function", "ValidateHorizontalPodAutoscalerUpdate", stem=_STEM)
def check_validate_update(case: Any) -> Any:
    errors = spec.validate_update(_stored(case["hpa"]), _stored(case["oldHpa"]), _options(case))
    return _compare_errors(case, errors)


@checks("function", "ValidateScale", stem=_STEM)
def check_validate_scale(case: Any) -> Any:
    return _compare_errors(case, validate_scale(case["scale"], current().server))


@checks("function", "create", "update", "updateStatus", stem=_STEM)
def check_request(case: Any) -> Any:
    version = current()
    gates, server = version.gates(case), version.server
    match case["function"]:
        case "create":
            answer = create_update.create(case["hpa"], gates, server)
        case "update":
            answer = create_update.update(case["hpa"], case["oldHpa"], gates, server)
        case _:
            answer = create_update.update_status(case["hpa"], case["oldHpa"], server)
    wrong = _compare_errors(case, answer.errors), differences(case["expect"]["stored"], answer.stored)
    return "\n".join(filter(None, wrong)) or None


@checks("function", "default", stem=_STEM)
def check_default(case: Any) -> Any:
    fill = default_v1 if case["version"] == "autoscaling/v1" else default
    return differences(case["expect"]["output"], canonical(fill(case["input"])))


@checks("function", "defaultBehavior", stem=_STEM)
def check_default_behavior(case: Any) -> Any:
    filled = {**case["input"], "spec": with_default_behavior(case["input"]["spec"])}
    return differences(case["expect"]["output"], canonical(filled))


@checks("function", "generateScaleUpRules", "generateScaleDownRules", stem=_STEM)
def check_rules(case: Any) -> Any:
    field = "scaleUp" if "Up" in case["function"] else "scaleDown"
    filled = default_behavior({field: case["input"]})[field]
    return differences(case["expect"]["output"], canonical_as(filled, HPAScalingRules))


@checks("function", "convert", stem=_STEM)
def check_convert(case: Any) -> Any:
    data = case["input"]
    if case["applyDefaults"]:
        data = default_v1(data) if case["from"] == "autoscaling/v1" else default(data)
    if case["from"] == "autoscaling/v1":
        data = to_v2(data)
    data = v2_to_v1(data, exact=False) if case["to"] == "autoscaling/v1" else to_v2(data)
    return differences(_parsed(case["expect"]["output"]), _parsed(canonical(data)))


def _stored(data: Any) -> Any:
    return wire.convert(data, StoredHPA)


def _options(case: Any) -> Any:
    given = case["options"]
    return Options(
        given["minReplicasLowerBound"],
        _reference(given["scaleTargetRef"]),
        _reference(given["objectMetrics"]),
        rules=current().server,
    )


def _reference(given: Any) -> Any:
    return ReferenceOptions(given["allowEmptyAPIGroup"], given["allowInvalidAPIVersion"])


def _compare_errors(case: Any, errors: Any) -> Any:
    got = [
        {"field": error.field, "errorType": error.type, "detail": error.detail, "message": error.message}
        for error in errors
    ]
    return differences({"errors": _sorted(case["expect"]["errors"])}, {"errors": _sorted(got)})


def _sorted(errors: Any) -> Any:
    return sorted(errors, key=lambda error: (error["field"], error["errorType"], error["message"]))


def _parsed(data: Any) -> Any:
    """Read the annotations that hold JSON, so that they compare by content."""
    found = data["metadata"].get("annotations", {})
    read = {name: _json(text) if name in v1.ROUND_TRIP_ANNOTATIONS else text for name, text in found.items()}
    return {**data, "metadata": {**data["metadata"], **({"annotations": read} if read else {})}}


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
