"""Validation and admission of VPA objects (kinds `validate` and `vpaAdmission` of admission.jsonl)."""

import re
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError
from trimtab.model.groups import NATIVE_VPA_GROUP
from trimtab.model.json import wire
from trimtab.model.vpa.admission import Review, review_vpa
from trimtab.model.vpa.defaults import VPAOptions
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.model.vpa.validation import validate_vpa


@checks("kind", "validate", stem="admission")
def validate(case: dict[str, Any]) -> str | None:
    options = case["input"]["options"]
    found = validate_vpa(
        wire.convert(case["input"]["vpa"], VerticalPodAutoscaler),
        VPAOptions(
            is_create=options["isVPACreate"],
            allow_cpu_startup_boost=options["allowCPUStartupBoost"],
            allow_per_vpa_config=options["allowPerVPAConfig"],
            allow_in_place=options["allowInPlace"],
            existing_controlled_resources=frozenset(options["existingControlledResources"]),
        ),
    )
    got = {"errors": _in_order([_shown(error) for error in found.errors]), "warnings": found.warnings}
    return differences({**case["expect"], "errors": _in_order(case["expect"]["errors"])}, got)


@checks("kind", "vpaAdmission", stem="admission")
def vpa_admission(case: dict[str, Any]) -> str | None:
    asked = case["input"]
    gates = FeatureGates.of(
        dict.fromkeys(("PerVPAConfig", "InPlace", "CPUStartupBoost"), False) | asked["featureGates"]
    )
    review = Review(
        asked["operation"], asked["name"], asked["object"], asked["oldObject"], group=NATIVE_VPA_GROUP
    )
    answer = review_vpa(review, gates, checks_creates=False)
    got = {
        "allowed": answer.allowed,
        "patch": answer.patch or None,
        "warnings": answer.warnings,
        "status": answer.status,
    }
    return differences(_comparable(case["expect"]), _comparable(got))


def _shown(error: FieldError) -> dict[str, Any]:
    return {
        "type": error.type.value,
        "field": error.field,
        "badValue": error.bad_value,
        "detail": error.detail,
        "message": error.message,
    }


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Put the causes in an order that does not depend on upstream's walk over maps, and split the message by cause."""
    status = answer["status"]
    if status is None:
        return answer
    causes = status["details"]["causes"]
    head = status["message"].partition(" is invalid: ")[0]
    parts = sorted(f"{cause['field']}: {cause['message']}" for cause in causes)
    is_whole = all(part in status["message"] for part in parts)
    return {
        **answer,
        "status": {
            **status,
            "message": [head, is_whole, len(status["message"])],
            "details": {**status["details"], "causes": _in_order(causes)},
        },
    }


def _in_order(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort each run of errors about one policy's minAllowed and maxAllowed; all the others keep their place."""
    result: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for error in [*errors, None]:
        if error and re.search(r"\.(min|max)Allowed\[\w+\]$", error["field"]):
            same = not run or run[0]["field"].rpartition(".")[0] == error["field"].rpartition(".")[0]
            if not same:
                result += sorted(run, key=lambda one: (one["field"], one["message"]))
                run = []
            run.append(error)
            continue
        result += sorted(run, key=lambda one: (one["field"], one["message"]))
        run = []
        if error:
            result.append(error)
    return result
