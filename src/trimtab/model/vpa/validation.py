"""Is a VerticalPodAutoscaler acceptable? Upstream's rules in upstream's words, and those of `vpaScope`.

Container policies are looked at in `policy_validation`, VPAScope objects in `scope_validation`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtab.model.fielderror import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from trimtab.model.vpa.options import VPAOptions, policies_of
from trimtab.model.vpa.policy_validation import validate_policy, validate_startup_boost
from trimtab.model.vpa.types import PodUpdatePolicy, UpdateMode, VerticalPodAutoscaler

MAX_RECOMMENDERS = 1
SUPPORTED_MODES = sorted(mode for mode in UpdateMode if mode != UpdateMode.AUTO)
"""The modes to choose from; Auto is still accepted, with a warning."""

AUTO_IS_DEPRECATED = (
    'spec.updatePolicy: "Auto" mode is deprecated and will be removed in a future API version. '
    f"Use explicit update modes like: [{' '.join(SUPPORTED_MODES)}]. "
    "See https://github.com/kubernetes/autoscaler/issues/8424 for more details."
)

_SPEC = FieldPath("spec")


@dataclass
class Findings:
    """What validation found: errors refuse the object, warnings go to the user beside the answer."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def validate_vpa(vpa: VerticalPodAutoscaler, options: VPAOptions) -> Findings:
    """Check one VPA in the order in which upstream reports."""
    found = Findings()
    if options.is_create and vpa.spec.target_ref is None:
        hint = "If you're using v1beta1 version of the API, please migrate to v1"
        found.errors.append(required(_SPEC.child("targetRef"), hint))
    if vpa.spec.update_policy is not None:
        found.errors.extend(_check_update_policy(vpa.spec.update_policy, options))
        if vpa.spec.update_policy.update_mode == UpdateMode.AUTO:
            found.warnings.append(AUTO_IS_DEPRECATED)
    policies = _SPEC.child("resourcePolicy", "containerPolicies")
    for position, policy in enumerate(policies_of(vpa)):
        errors, warnings = validate_policy(policy, policies.index(position), options)
        found.errors.extend(errors)
        found.warnings.extend(warnings)
    found.errors.extend(validate_startup_boost(vpa.spec.startup_boost, _SPEC.child("startupBoost"), options))
    if len(vpa.spec.recommenders) > MAX_RECOMMENDERS:
        path = _SPEC.child("recommenders")
        found.errors.append(too_many(path, len(vpa.spec.recommenders), MAX_RECOMMENDERS))
    found.errors.extend(_check_scope(vpa, options))
    found.warnings.extend(_scope_warnings(vpa))
    return found


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
    scope = vpa.spec.vpa_scope
    if scope is None:
        return
    path = _SPEC.child("vpaScope")
    if not options.allow_vpa_scope:
        yield forbidden(path, "not supported when feature flag VPASelectorRefinement is disabled")
    elif not scope.name:
        yield required(
            path.child("name"), "name the VPAScope, in this namespace, that this VPA is limited to"
        )
    elif options.checked_scopes is not None and scope.name not in options.checked_scopes:
        yield not_found(path.child("name"), scope.name)


def _scope_warnings(vpa: VerticalPodAutoscaler) -> Iterator[str]:
    """Warn of modes that evict: an evicted leader loses its role, and its successor is evicted in turn."""
    policy = vpa.spec.update_policy
    mode = policy.update_mode if policy else UpdateMode.RECREATE
    if vpa.spec.vpa_scope is None or mode not in (UpdateMode.RECREATE, UpdateMode.AUTO):
        return
    how = (
        "evicts pods"
        if mode == UpdateMode.RECREATE
        else "evicts pods wherever they cannot be resized in place"
    )
    yield (
        f"spec.updatePolicy: {mode} {how}, and an evicted pod may lose the role that spec.vpaScope selects it by; "
        "use InPlaceOrRecreate or InPlace"
    )
