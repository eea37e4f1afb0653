"""Rules of VPAs and VPAScopes, in upstream's words where upstream has the rule.

The webhook applies `validate_vpa` and `validate_scope`. The API server applies `schema_errors`, as part of the CRD's
schema. `policy_validation` holds the rules of container policies.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    name_errors,
    not_found,
    not_supported,
    quantity_errors,
    required,
    too_many,
)
from trimtab.model.labels.selector import selector_problems
from trimtab.model.vpa.defaults import VPAOptions, policies_of
from trimtab.model.vpa.policy_validation import validate_policy, validate_startup_boost
from trimtab.model.vpa.types import (
    SCOPE_ANNOTATION,
    ContainerControlledValues,
    ContainerResourcePolicy,
    EvictionChangeRequirement,
    PodUpdatePolicy,
    UpdateMode,
    VerticalPodAutoscaler,
    VPAScope,
)

MAX_RECOMMENDERS = 1
MAX_NAME_LENGTH = 253
SUPPORTED_MODES = sorted(mode for mode in UpdateMode if mode != UpdateMode.AUTO)
"""The modes that messages list. Auto is still accepted, with a warning."""

AUTO_IS_DEPRECATED = (
    'spec.updatePolicy: "Auto" mode is deprecated and will be removed in a future API version. '
    f"Use explicit update modes like: [{' '.join(SUPPORTED_MODES)}]. "
    "See https://github.com/kubernetes/autoscaler/issues/8424 for more details."
)

_SPEC = FieldPath("spec")
_SCOPE_ANNOTATION = FieldPath(f"metadata.annotations[{SCOPE_ANNOTATION}]")


@dataclass
class Findings:
    """Errors, which reject the object, and warnings for the user."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def validate_vpa(vpa: VerticalPodAutoscaler, options: VPAOptions) -> Findings:
    """Check a VPA in the order of upstream's errors."""
    findings = Findings()
    if options.is_create and vpa.spec.target_ref is None:
        hint = "If you're using v1beta1 version of the API, please migrate to v1"
        findings.errors.append(required(_SPEC.child("targetRef"), hint))
    if vpa.spec.update_policy is not None:
        findings.errors.extend(_check_update_policy(vpa.spec.update_policy, options))
        if vpa.spec.update_policy.update_mode == UpdateMode.AUTO:
            findings.warnings.append(AUTO_IS_DEPRECATED)
    policies = _SPEC.child("resourcePolicy", "containerPolicies")
    for position, policy in enumerate(policies_of(vpa)):
        errors, warnings = validate_policy(policy, policies.index(position), options)
        findings.errors.extend(errors)
        findings.warnings.extend(warnings)
    findings.errors.extend(
        validate_startup_boost(vpa.spec.startup_boost, _SPEC.child("startupBoost"), options)
    )
    if len(vpa.spec.recommenders) > MAX_RECOMMENDERS:
        path = _SPEC.child("recommenders")
        findings.errors.append(too_many(path, len(vpa.spec.recommenders), MAX_RECOMMENDERS))
    findings.errors.extend(_check_scope(vpa, options))
    findings.warnings.extend(_scope_warnings(vpa))
    return findings


def _check_update_policy(policy: PodUpdatePolicy, options: VPAOptions) -> Iterator[FieldError]:
    path = _SPEC.child("updatePolicy")
    mode = policy.update_mode
    if mode is None:
        yield required(path.child("updateMode"), "updateMode is required if UpdatePolicy is used")
    elif mode not in set(UpdateMode):
        yield not_supported(path.child("updateMode"), mode, SUPPORTED_MODES)
    elif mode == UpdateMode.IN_PLACE and not options.allow_in_place:
        detail = "in order to use UpdateMode InPlace, you must enable feature gate InPlace in the admission-controller args"
        yield forbidden(path.child("updateMode"), detail)
    if policy.min_replicas is not None and policy.min_replicas <= 0:
        yield invalid(path.child("minReplicas"), policy.min_replicas, "minReplicas has to be positive")
    seconds = policy.evict_after_oom_seconds
    if seconds is not None and not options.allow_per_vpa_config:
        detail = "not supported when feature flag PerVPAConfig is disabled"
        yield forbidden(path.child("evictAfterOOMSeconds"), detail)
    elif seconds is not None and seconds < 1:
        yield invalid(path.child("evictAfterOOMSeconds"), seconds, "must be greater than or equal to 1")


def _check_scope(vpa: VerticalPodAutoscaler, options: VPAOptions) -> Iterator[FieldError]:
    names = vpa.scope_names
    if not names:
        return
    path, name_path = _SPEC.child("vpaScope"), _SPEC.child("vpaScope", "name")
    if vpa.spec.vpa_scope is None:
        path = name_path = _SCOPE_ANNOTATION
    if not options.allow_vpa_scope:
        yield forbidden(path, "not supported when feature flag VPASelectorRefinement is disabled")
    elif not names[0]:
        yield required(name_path, "name the VPAScope, in this namespace, that this VPA is limited to")
    elif len(names) > 1:
        yield invalid(_SCOPE_ANNOTATION, names[1], f"must be {names[0]}, as spec.vpaScope.name, or absent")
    elif options.checked_scopes is not None and names[0] not in options.checked_scopes:
        yield not_found(name_path, names[0])


def _scope_warnings(vpa: VerticalPodAutoscaler) -> Iterator[str]:
    """Warn of an annotation without effect, and of modes that evict, because they evict one leader after the other."""
    if not vpa.is_native and SCOPE_ANNOTATION in vpa.metadata.annotations:
        yield f"{_SCOPE_ANNOTATION.text}: counts on native VPAs only and has no effect here: set spec.vpaScope instead"
    policy = vpa.spec.update_policy
    mode = policy.update_mode if policy else UpdateMode.RECREATE
    if not vpa.scope_names or mode not in (UpdateMode.RECREATE, UpdateMode.AUTO):
        return
    how = (
        "evicts pods"
        if mode == UpdateMode.RECREATE
        else "evicts pods wherever they cannot be resized in place"
    )
    yield (
        f"spec.updatePolicy: {mode} {how}, and an evicted pod may lose the role that its VPAScope selects it by; "
        "use InPlaceOrRecreate or InPlace"
    )


def validate_scope(scope: VPAScope) -> list[FieldError]:
    """Check a VPAScope and report errors at its selectors."""
    selectors = {"nodeSelector": scope.spec.node_selector, "podSelector": scope.spec.pod_selector}
    return [
        invalid(_SPEC.child(name), part, problem)
        for name, selector in selectors.items()
        if selector is not None
        for part, problem in selector_problems(selector)
    ]


def schema_errors(vpa: VerticalPodAutoscaler) -> Iterator[FieldError]:
    """Yield what the CRD's schema rejects and the webhook does not check."""
    if vpa.spec.target_ref is not None:
        for name, text in (("kind", vpa.spec.target_ref.kind), ("name", vpa.spec.target_ref.name)):
            if not text:
                yield required(_SPEC.child("targetRef", name))
            yield from name_errors(text, MAX_NAME_LENGTH, _SPEC.child("targetRef", name))
    policies = _SPEC.child("resourcePolicy", "containerPolicies")
    for position, policy in enumerate(policies_of(vpa)):
        yield from _check_amounts(policy, policies.index(position))
        values = policy.controlled_values
        if values is not None and values not in set(ContainerControlledValues):
            path = policies.index(position).child("controlledValues")
            yield not_supported(path, values, ContainerControlledValues)
    yield from _check_evictions(vpa)
    for position, recommender in enumerate(vpa.spec.recommenders):
        if not recommender.name:
            yield required(_SPEC.child("recommenders").index(position).child("name"))


def _check_amounts(policy: ContainerResourcePolicy, path: FieldPath) -> Iterator[FieldError]:
    for bound, amounts in (("minAllowed", policy.min_allowed), ("maxAllowed", policy.max_allowed)):
        for name, amount in amounts.items():
            amount_path = path.child(bound).key(name)
            yield from quantity_errors(amount, amount_path)
            if amount.sign < 0:
                yield invalid(amount_path, str(amount), "must be greater than or equal to 0")


def _check_evictions(vpa: VerticalPodAutoscaler) -> Iterator[FieldError]:
    requirements = vpa.spec.update_policy.eviction_requirements if vpa.spec.update_policy else ()
    for position, requirement in enumerate(requirements):
        path = _SPEC.child("updatePolicy", "evictionRequirements").index(position)
        if not requirement.resources:
            yield required(path.child("resources"))
        if requirement.change_requirement not in set(EvictionChangeRequirement):
            change = requirement.change_requirement
            yield not_supported(path.child("changeRequirement"), change, EvictionChangeRequirement)
