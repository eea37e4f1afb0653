"""Requests to create or update an HPA, as an API server processes them: default, drop, validate.

Fields of disabled features are dropped and do not make a request fail. They stay if the stored object already has
them (ratcheting): turning a gate off must not make objects uneditable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.model.core.meta import group_of
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import ErrorType, FieldError, FieldPath
from trimtab.model.hpa.manifest import InvalidObjectError, to_defaulted_v2, to_v2
from trimtab.model.hpa.metric_annotations import without_fields
from trimtab.model.hpa.replica_policies import FIELD as REPLICA_POLICIES
from trimtab.model.hpa.selection_strategy import FIELD, NATIVE_GROUP
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricSourceType
from trimtab.model.hpa.validation import spec as validation
from trimtab.model.hpa.validation.reference import ReferenceOptions, api_version_problem
from trimtab.model.hpa.validation.spec import (
    GROUP_NEEDED,
    GROUP_OPTIONAL,
    UPSTREAMS_NEGATIVE,
    Options,
    StoredHPA,
)
from trimtab.model.hpa.versions.canonical import canonical
from trimtab.model.json import wire
from trimtab.model.json.wire import Json, without_members

_DIRECTIONS = ("scaleUp", "scaleDown")
_BOUNDS = ("minReplicas", "maxReplicas")


@dataclass(frozen=True)
class RequestResult:
    """The server's answer: what it would store (nothing if it cannot be read), and why it does not."""

    stored: Json
    errors: tuple[FieldError, ...]


def create(
    data: Mapping[str, Any], gates: FeatureGates, rules: ServerRules = KUBERNETES_1_36
) -> RequestResult:
    """Return what a request to create an HPA of any served version stores, in v2."""
    try:
        sent = to_defaulted_v2(data)
    except InvalidObjectError as error:
        return RequestResult({}, error.errors)
    sent.pop("status", None)
    _drop_own_fields(sent)
    _drop_disabled(sent["spec"], {}, gates)
    stored = canonical(sent)
    hpa = wire.convert(stored, StoredHPA)
    options = _options(stored, hpa.spec, None, gates, rules)
    return RequestResult(stored, tuple(_declared(validation.validate(hpa, options), rules, _BOUNDS)))


def update(
    data: Mapping[str, Any],
    old: Mapping[str, Any],
    gates: FeatureGates,
    rules: ServerRules = KUBERNETES_1_36,
) -> RequestResult:
    """Return what a request to replace a stored HPA stores, with the old status."""
    was = to_defaulted_v2(old)
    try:
        sent = to_defaulted_v2(data) | {"status": was.get("status")}
    except InvalidObjectError as error:
        return RequestResult({}, error.errors)
    _drop_own_fields(sent)
    _drop_disabled(sent["spec"], was["spec"], gates)
    stored = canonical(sent)
    hpa, old_hpa = wire.convert(stored, StoredHPA), wire.convert(was, StoredHPA)
    options = _options(stored, hpa.spec, old_hpa.spec, gates, rules)
    errors = validation.validate_update(hpa, old_hpa, options)
    # Declarations check only what changed.
    changed = [name for name in _BOUNDS if stored["spec"].get(name) != was["spec"].get(name)]
    return RequestResult(stored, tuple(_declared(errors, rules, changed)))


def update_status(
    data: Mapping[str, Any], old: Mapping[str, Any], rules: ServerRules = KUBERNETES_1_36
) -> RequestResult:
    """Return what a request to replace the status of a stored HPA stores, with the old spec."""
    was = to_defaulted_v2(old)
    try:
        sent = to_v2(data) | {"spec": was["spec"]}
        stored = canonical(sent if rules.hpa_generations else without_condition_generations(sent))
    except InvalidObjectError as error:
        return RequestResult({}, error.errors)
    hpa, old_hpa = wire.convert(stored, StoredHPA), wire.convert(was, StoredHPA)
    return RequestResult(stored, tuple(validation.validate_status_update(hpa, old_hpa, rules)))


def _declared(errors: list[FieldError], rules: ServerRules, names: Iterable[str]) -> list[FieldError]:
    """Return the errors, with those of declarations last.

    `names` are the bounds of replicas that declarations check. The comparison of both bounds is none of them.
    """
    if not rules.declared_replicas:
        return errors
    paths = [FieldPath("spec").child(name) for name in names]
    of_declarations = [
        error
        for path in paths
        for error in errors
        if error.field == path.text and error.detail != validation.BELOW_MINIMUM
    ]
    others = [error for error in errors if error not in of_declarations]
    return [*others, *map(_in_words_of_declaration, of_declarations)]


def _in_words_of_declaration(error: FieldError) -> FieldError:
    return replace(error, detail="") if error.type is ErrorType.REQUIRED else error


def without_condition_generations(sent: Json) -> Json:
    """Return an HPA without the generations of its conditions, which only native HPAs of 1.37 have."""
    status = sent.get("status")
    if group_of(sent["apiVersion"]) != NATIVE_GROUP or not status or not status.get("conditions"):
        return sent
    conditions = [without_members(item, ("observedGeneration",)) for item in status["conditions"]]
    return {**sent, "status": {**status, "conditions": conditions}}


def _drop_own_fields(sent: Json) -> None:
    """Drop the fields that Kubernetes' own kind does not have."""
    if group_of(sent["apiVersion"]) == NATIVE_GROUP:
        sent["spec"]["metrics"] = without_fields(sent["spec"]["metrics"])
        sent["spec"].pop(REPLICA_POLICIES, None)


def _drop_disabled(spec: Json, old: Mapping[str, Any], gates: FeatureGates) -> None:
    """Drop the fields of features that are off and not in use."""
    if not gates.hpa_selection_strategy and old.get(FIELD) is None:
        spec.pop(FIELD, None)
    if not gates.hpa_configurable_tolerance and not _has_tolerance(old) and _has_tolerance(spec):
        spec["behavior"] = {
            name: without_members(rules, ("tolerance",)) if name in _DIRECTIONS else rules
            for name, rules in spec["behavior"].items()
        }


def _has_tolerance(spec: Mapping[str, Any]) -> bool:
    """Return whether either direction has a tolerance, which keeps both editable."""
    behavior = spec.get("behavior") or {}
    return any((behavior.get(name) or {}).get("tolerance") is not None for name in _DIRECTIONS)


def _options(
    stored: Json,
    spec: HorizontalPodAutoscalerSpec,
    old: HorizontalPodAutoscalerSpec | None,
    gates: FeatureGates,
    rules: ServerRules,
) -> Options:
    """Return what the gates and the stored object allow."""
    is_native = group_of(stored["apiVersion"]) == NATIVE_GROUP
    had_zero = old is not None and old.min_replicas == 0
    return Options(
        min_replicas_lower_bound=0 if gates.hpa_scale_to_zero or had_zero else 1,
        scale_target_ref=_target_options(spec, old),
        object_metrics=replace(GROUP_OPTIONAL, allow_invalid_api_version=_has_invalid_object(old)),
        negative_tolerance=UPSTREAMS_NEGATIVE if is_native else "must not be negative",
        rules=rules,
    )


def _target_options(
    spec: HorizontalPodAutoscalerSpec, old: HorizontalPodAutoscalerSpec | None
) -> ReferenceOptions:
    new_ref = spec.scale_target_ref
    if old is not None:
        old_ref = old.scale_target_ref
        if (old_ref.api_version, old_ref.kind) == (new_ref.api_version, new_ref.kind):
            return ReferenceOptions(allow_invalid_api_version=True)
    # The only scalable kind of the core group, whose name is empty.
    return GROUP_OPTIONAL if new_ref.kind == "ReplicationController" else GROUP_NEEDED


def _has_invalid_object(old: HorizontalPodAutoscalerSpec | None) -> bool:
    """Return whether a stored Object metric would be rejected today."""
    return old is not None and any(
        metric.type == MetricSourceType.OBJECT
        and metric.object is not None
        and bool(api_version_problem(metric.object.described_object.api_version, GROUP_OPTIONAL))
        for metric in old.metrics
    )
